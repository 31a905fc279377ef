"""The call of an agent's tool: awaited or blocking, with errors that come back to the model.

A mistake and a failure of the machine become a message of status "error" in one line, so that the agent goes on.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from langchain_core.tools import StructuredTool, ToolException
from langgraph.runtime import RunControl

from ridgeline.graph.library.agents.answers import PlainAnswer
from ridgeline.graph.library.blocking import run_blocking
from ridgeline.problems.mistakes import explain_mistake
from ridgeline.tools.errors import InputError, RidgelineError, one_line
from ridgeline.tools.records.printable import printable

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool
    from pydantic import BaseModel

A = TypeVar("A", bound="BaseModel")
P = ParamSpec("P")
R = TypeVar("R")

Message = tuple[str, PlainAnswer]
"""A tool message's content and its artifact."""


def make_tool(
    name: str,
    description: str,
    arguments: type[A],
    work: Callable[[RunControl, A], Awaitable[Message]],
    *,
    drains: bool = False,
) -> BaseTool:
    """Return a tool that awaits `work` with the arguments of a call, or blocks until it has ended.

    With `drains`, an interrupt of the blocking caller asks the control that `work` gets to drain; else it cancels the work.
    """

    async def called(stop: RunControl, bare: Sequence[Any], given: dict[str, Any]) -> Message:
        if bare:
            raise InputError(
                f"{name}: got a bare text; give its arguments by name: {', '.join(arguments.model_fields)}"
            )
        return await work(stop, arguments.model_validate(given))

    async def call(*bare: Any, **given: Any) -> Message:
        return await telling_model(called)(RunControl(), bare, given)

    def call_and_wait(*bare: Any, **given: Any) -> Message:
        stop = RunControl()
        drain = functools.partial(stop.request_drain, "interrupted") if drains else None
        return run_blocking(telling_model(called)(stop, bare, given), drain=drain, note=lambda message: message[0])

    return StructuredTool.from_function(
        func=call_and_wait,
        coroutine=call,
        name=name,
        description=description,
        args_schema=arguments,
        response_format="content_and_artifact",
        handle_tool_error=True,
        handle_validation_error=mistakes_in(arguments),
    )


def mistakes_in(arguments: type[BaseModel]) -> Callable[[Any], str]:
    """Return the function that words pydantic's error over a tool's arguments, as its `handle_validation_error`."""
    return lambda error: explain_mistake(error.errors(), arguments, {})


def telling_model(work: Callable[P, Awaitable[R]]) -> Callable[P, Coroutine[Any, Any, R]]:
    """Return the coroutine function with Ridgeline's own errors as the one that a tool tells its model."""

    @functools.wraps(work)
    async def told(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return await work(*args, **kwargs)
        except RidgelineError as error:
            raise ToolException(printable(one_line(error))) from error

    return told
