"""A chat model that answers from a script, for the agents of these tests; it keeps what it was asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from pydantic import Field


class ScriptedAgent(BaseChatModel):
    """Calls the tools of `calls`, (name, arguments) each, one a turn, and then says that it is done."""

    calls: list[tuple[str, dict[str, Any]]]
    asked: list[list[BaseMessage]] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool], **_: Any) -> Runnable:
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        self.asked.append(messages)
        turn = sum(isinstance(message, ToolMessage) for message in messages)
        if turn < len(self.calls):
            name, arguments = self.calls[turn]
            call = {"name": name, "args": arguments, "id": f"call-{turn}"}
            message = AIMessage("", tool_calls=[call])
        else:
            message = AIMessage("done")
        return ChatResult(generations=[ChatGeneration(message=message)])


def tool_messages(state: dict[str, Any]) -> list[ToolMessage]:
    """Return what the agent's tools answered."""
    return [message for message in state["messages"] if isinstance(message, ToolMessage)]
