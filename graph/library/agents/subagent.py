"""A search as a sub-agent: what deepagents calls a CompiledSubAgent, and a node for any graph whose state has `messages`.

It has no model of its own: the task's text is read by fixed rules, and the answer is the search's figures and paths.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langchain_core.runnables import Runnable, RunnableLambda
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.runtime import RunControl

from ridgeline.graph.library.agents.agent_search import AgentSearch
from ridgeline.graph.library.agents.answers import PlainAnswer, search_words
from ridgeline.graph.library.agents.task_text import read_task
from ridgeline.graph.library.blocking import run_blocking
from ridgeline.graph.search.events import OnEvent
from ridgeline.graph.session.options import RUNS
from ridgeline.graph.session.problem import ProblemName
from ridgeline.problems.spec import Budget
from ridgeline.tools.errors import RidgelineError, one_line
from ridgeline.tools.records.printable import printable

DESCRIPTION = (
    "Searches for a native kernel that is faster than PyTorch for one problem, verifies it and certifies the gain. Takes "
    "minutes to hours. It understands no more of a task than these: `problem: NAME`, `rounds: N`, and `resume: RUN` to go on "
    "with a run. NAME is {offered}."
)


class SubAgent(TypedDict):
    """A sub-agent as deepagents takes it."""

    name: str
    description: str
    runnable: Runnable[Any, Any]


class _Asked(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


class _Answered(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]
    structured_response: PlainAnswer | None  # None: the last message says what is missing, or what failed


def subagent(
    *,
    device: str = "cpu",
    models: str | Sequence[str] = (),
    runs_dir: Path | str = RUNS,
    problems: Sequence[ProblemName] | None = None,
    budget: Budget | None = None,
    settings: Mapping[str, Any] | None = None,
    on_event: OnEvent | None = None,
    name: str = "kernel-search",
) -> SubAgent:
    """Return a sub-agent that runs a search for the problem that its task names; arguments as those of `search_tool`.

    Its runnable is a compiled graph, to be awaited or called, of `messages`; it returns `messages` with one more and
    `structured_response`, the answer as data. A task that names no problem is answered with what to name. Nothing of it
    needs deepagents.

    Raises:
        InputError: an argument is invalid.
    """
    search = AgentSearch.of(
        device=device,
        models=models,
        runs_dir=runs_dir,
        problems=problems,
        budget=budget,
        settings=settings,
        on_event=on_event,
        resume_words="give the task `resume: {run}`",
    )

    async def answer(state: _Asked, stop: RunControl | None = None) -> _Answered:
        words, found = await _answer(search, _task_of(state["messages"]), stop)
        return {"messages": [AIMessage(words, name=name)], "structured_response": found}

    def answer_and_wait(state: _Asked) -> _Answered:
        stop = RunControl()
        return run_blocking(answer(state, stop), drain=lambda: stop.request_drain("interrupted"))

    builder = StateGraph(_Answered, input_schema=_Asked, output_schema=_Answered)
    builder.add_node("search", RunnableLambda(answer_and_wait, answer, name="search"), input_schema=_Asked)
    builder.add_edge(START, "search")
    builder.add_edge("search", END)
    description = DESCRIPTION.format(offered=search.offers.in_words)
    return {"name": name, "description": description, "runnable": builder.compile(name=name)}


async def _answer(search: AgentSearch, task: str, stop: RunControl | None) -> tuple[str, PlainAnswer | None]:
    """Return the answer in words and as data; words alone where the task cannot be done as it stands."""
    offers = search.offers
    try:
        wish = read_task(task, offers.names)
        if not (wish.resume or wish.problem or offers.only):
            return f"Which problem? The task names none. Write `problem: NAME`; NAME is {offers.in_words}.", None
        found, _ = await search.run(wish, stop)
    except RidgelineError as error:
        return f"Nothing was found: {printable(one_line(error))}", None
    return search_words(found), found


def _task_of(messages: Sequence[AnyMessage]) -> str:
    """Return the text of the last message of a human, or of whoever wrote last where there is none."""
    of_humans = [message for message in messages if isinstance(message, HumanMessage)]
    said = [str(message.text) for message in (of_humans or messages)]
    return said[-1] if said else ""
