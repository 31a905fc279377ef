"""A search, and the judging of one kernel, as LangChain tools for an agent.

What a model reads is the message's content, short JSON; what a program wants is its artifact.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from ridgeline.graph.library.agents.agent_search import AgentSearch, Wish
from ridgeline.graph.library.agents.answers import evaluation_answer, for_model
from ridgeline.graph.library.agents.call import Message, make_tool
from ridgeline.graph.library.agents.host import host_of_call
from ridgeline.graph.library.agents.offers import Offers
from ridgeline.graph.library.evaluation import aevaluate
from ridgeline.graph.search.events import OnEvent
from ridgeline.graph.session.arguments import checked, whole_source
from ridgeline.graph.session.options import RUNS
from ridgeline.graph.session.problem import ProblemName
from ridgeline.problems.numbers import NoBool
from ridgeline.problems.spec import Budget

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool
    from langgraph.runtime import RunControl

SEARCHES = (
    "Search for a native kernel that is faster than PyTorch for one problem, verify it and certify the gain. Takes minutes "
    "to hours. Answers with the speedup and its 95 % interval, the idea, doubts, the path of the source, and how to go on. "
    "`problem` is {offered}."
)
EVALUATES = (
    "Judge one kernel source that you wrote for a problem: compile it, check it against the PyTorch reference on secret "
    "inputs, time it. A kernel that fails comes with the reason; a wrong signature with the right one. `problem` is "
    "{offered}."
)


class _SearchArguments(BaseModel):
    model_config = ConfigDict(extra="forbid")

    problem: Annotated[str | None, Field(description="Which problem; the tool's description lists them.")] = None
    rounds: Annotated[
        Annotated[int, Field(ge=1), NoBool] | None,
        Field(description="Rounds of ideas; with `resume`, of the whole search."),
    ] = None
    resume: Annotated[str | None, Field(description="The run_dir of an earlier answer, to go on with it.")] = None
    show_source: Annotated[bool, Field(description="Put the best kernel's source in the answer.")] = False


class _EvaluateArguments(BaseModel):
    model_config = ConfigDict(extra="forbid")

    source: Annotated[str, Field(description="One complete kernel source.")]
    problem: Annotated[str | None, Field(description="Which problem; the tool's description lists them.")] = None


def search_tool(
    *,
    device: str = "cpu",
    models: str | Sequence[str] = (),
    runs_dir: Path | str = RUNS,
    problems: Sequence[ProblemName] | None = None,
    budget: Budget | None = None,
    settings: Mapping[str, Any] | None = None,
    on_event: OnEvent | None = None,
    name: str = "search_kernel",
) -> BaseTool:
    """Return a LangChain tool with which an agent runs a whole search; it can be awaited and called.

    All that stands here the host chooses, and the agent cannot change it: the agent names the problem, its rounds, or a run
    in `runs_dir` to go on with. With `problems` it may name these alone. `settings` are single ones of problem.yaml's
    `search`. Events go to the custom stream of the graph in which the tool is called, each with the run's folder as
    `run_dir`, and to `on_event`.

    Raises:
        InputError: one of these is invalid.
    """
    search = AgentSearch.of(
        device=device,
        models=models,
        runs_dir=runs_dir,
        problems=problems,
        budget=budget,
        settings=settings,
        on_event=on_event,
        resume_words=f'call {name} with resume="{{run}}"',
    )

    async def work(stop: RunControl, asked: _SearchArguments) -> Message:
        wish = Wish(problem=asked.problem, rounds=asked.rounds, resume=asked.resume, shows_source=asked.show_source)
        answer, record = await search.run(wish, stop)
        return for_model(answer), record

    description = SEARCHES.format(offered=search.offers.in_words)
    return make_tool(name, description, _SearchArguments, work, drains=True)


def evaluate_tool(
    *, device: str = "cpu", problems: Sequence[ProblemName] | None = None, name: str = "evaluate_kernel"
) -> BaseTool:
    """Return a LangChain tool that judges one kernel which the agent wrote; it can be awaited and called.

    A kernel that fails is an answer, not an error. With `problems`, the agent may name these alone.

    Raises:
        InputError: one of these is invalid.
    """
    checked("device", device)
    offers = Offers.of(problems)

    async def work(stop: RunControl, asked: _EvaluateArguments) -> Message:
        write = host_of_call().write
        evaluation = await aevaluate(
            await asyncio.to_thread(offers.find, asked.problem),
            whole_source(asked.source),
            device=device,
            on_wait=lambda words: write({"event": "warning", "message": words}),
        )
        return for_model(evaluation_answer(evaluation)), evaluation.to_dict()

    return make_tool(name, EVALUATES.format(offered=offers.in_words), _EvaluateArguments, work)
