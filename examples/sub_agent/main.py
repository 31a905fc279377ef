"""A deep agent that hands a search to its sub-agent: `python main.py`."""

from __future__ import annotations

import json
from typing import Any

from deepagents import create_deep_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage

from ridgeline import subagent


class Scripted(GenericFakeChatModel):
    """Stands in for your chat model, so that no key is needed: it says what it was given, in order."""

    def bind_tools(self, *_: Any, **__: Any) -> Scripted:
        """Return itself: it knows which sub-agent it calls."""
        return self


def main() -> None:
    """Let the deep agent give its sub-agent one task, and show what came back."""
    kernels = subagent(settings={"tune_trials": 0})
    task = {"description": "problem: quickstart\nrounds: 1", "subagent_type": kernels["name"]}
    call = {"name": "task", "args": task, "id": "call-1"}
    model = Scripted(messages=iter([AIMessage("", tool_calls=[call]), AIMessage("The sub-agent is done.")]))
    agent = create_deep_agent(model, subagents=[kernels])
    state = agent.invoke({"messages": [("user", "Make the quickstart module faster.")]})
    print(json.dumps(json.loads(state["messages"][-2].content), indent=2))
    print(state["messages"][-1].content)


if __name__ == "__main__":
    main()
