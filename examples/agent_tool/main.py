"""An agent that has a kernel searched for: `python main.py`."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage

from ridgeline import search_tool


class Scripted(GenericFakeChatModel):
    """Stands in for your chat model, so that no key is needed: it says what it was given, in order."""

    def bind_tools(self, *_: Any, **__: Any) -> Scripted:
        """Return itself: it knows which tool it calls."""
        return self


async def main() -> None:
    """Let the agent call the tool once, show the events on its way, then what its model was told."""
    tool = search_tool(problems=["quickstart"], settings={"tune_trials": 0})
    call = {"name": tool.name, "args": {"problem": "quickstart", "rounds": 1}, "id": "call-1"}
    model = Scripted(messages=iter([AIMessage("", tool_calls=[call]), AIMessage("The search is done.")]))
    agent = create_agent(model, [tool])
    state: dict[str, Any] = {}
    asked = {"messages": [("user", "Make the quickstart module faster.")]}
    async for mode, part in agent.astream(asked, stream_mode=["custom", "values"]):
        if mode == "values":
            state = part
        elif part["event"] in ("round_started", "candidate_done", "certify"):
            print("event:", part["event"], part.get("candidate_id", ""), part.get("step", ""))
    print(json.dumps(json.loads(state["messages"][-2].content), indent=2))
    print(state["messages"][-1].content)


if __name__ == "__main__":
    asyncio.run(main())
