"""Ridgeline as a library: `search()` and `evaluate()`, which block, and a LangChain tool for an agent."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ridgeline.graph.session.arguments import checked
from ridgeline.graph.session.blocking import run_blocking
from ridgeline.graph.session.evaluation import Evaluation
from ridgeline.graph.session.options import RUNS, ProblemName, SearchRequest
from ridgeline.graph.session.outputs import SearchResult
from ridgeline.graph.session.replaying import find_recording
from ridgeline.graph.session.session import OnEvent, run_resolved, run_search
from ridgeline.problems.spec import Budget
from ridgeline.tools.errors import RunError

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool


OnEvaluation = Callable[[Evaluation], None]
OnWait = Callable[[str], None]


def search(
    problem: ProblemName | None = None,
    *,
    device: str = "cpu",
    models: str | Sequence[str] = (),
    run_dir: Path | str | None = None,
    rounds: int | None = None,
    ideas: int | None = None,
    implementations: int | None = None,
    strategy: str | None = None,
    budget: Budget | None = None,
    rng_seed: int | None = None,
    resume: bool = False,
    park: bool = False,
    bank: Path | str | None = None,
    replay: Path | str | None = None,
    replay_timings: bool = False,
    replay_else: str = "",
    replay_strict: bool = False,
    on_event: OnEvent | None = None,
) -> SearchResult:
    """Search for a faster kernel and return the verified best one; blocks, also inside a running event loop.

    `problem` is a problem.yaml, its folder, the name of a shipped problem, or a loaded ProblemSpec. Without `models` the
    problem's are used, else the keyless one. The run folder defaults to `runs/<problem>-<time>-<process>`, with `resume`
    to the problem's newest unfinished run in `runs`. Inside an event loop await `run_search(SearchOptions(...))` instead.
    With `park` the call returns in state `waiting` where every branch waits for a mailbox or a batch.

    `replay` is a recorded run, its name in `runs`, or a file of `ridgeline export --replay`: its models' answers are given
    again, with `replay_timings` its measurements too. It brings the problem, the models and the random seed along. A call
    that was not recorded goes to the model `replay_else`; without one its answer is left out, or with `replay_strict` the
    search ends there.

    Raises:
        InputError: invalid input; one line says how to fix it.
        EngineError: the machine failed; the search can be resumed with `resume=True` and its `run_dir`.
    """
    if replay and rng_seed is not None:
        raise RunError("rng_seed: a replay decides by the recorded one; leave it out")
    settings = {"rounds": rounds, "ideas": ideas, "implementations": implementations, "strategy": strategy}
    request = SearchRequest(
        problem=problem,
        run_dir=checked("run_dir", run_dir or None),
        device=device,
        models=_names(models),
        settings={name: value for name, value in settings.items() if value is not None},
        budget=budget,
        rng_seed=0 if rng_seed is None else rng_seed,
        resume=resume,
        max_rounds=rounds if resume else None,
        park=park,
        bank=checked("bank", bank or None),
        replay=find_recording(checked("replay", replay), RUNS) if replay else None,
        replay_timings=replay_timings,
        replay_else=replay_else,
        replay_strict=replay_strict,
    )
    checked("on_event", on_event)
    return run_blocking(run_resolved(request.resolve(), on_event=on_event))


def search_tool(*, device: str = "cpu", models: str | Sequence[str] = (), runs_dir: Path | str = RUNS) -> BaseTool:
    """Return a LangChain tool with which an agent runs a whole search; its answer is the content of result.json.

    The host chooses the device, the models and the folder of runs; the agent cannot change them.
    """
    from langchain_core.tools import StructuredTool

    async def search_kernel(problem: str, rounds: int = 3) -> str:
        """Search for a kernel faster than PyTorch for `problem` (a problem.yaml or a shipped problem's name)."""
        request = SearchRequest(
            problem=problem,
            runs_dir=checked("runs_dir", runs_dir),
            device=device,
            models=_names(models),
            settings={"rounds": rounds},
        )
        result = await run_search(request)
        return json.dumps(result.report)

    return StructuredTool.from_function(coroutine=search_kernel)


def _names(models: str | Sequence[str]) -> tuple[str, ...]:
    checked("models", models)
    return (models,) if isinstance(models, str) else tuple(models)
