"""A whole search as a function: `search`, which blocks, and `asearch`, which does not."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec

from ridgeline.graph.library.blocking import run_blocking
from ridgeline.graph.search.events import OnEvent, viewer_of
from ridgeline.graph.session.arguments import checked, model_names
from ridgeline.graph.session.options import RUNS, SearchRequest
from ridgeline.graph.session.outputs import SearchResult
from ridgeline.graph.session.problem import ProblemName
from ridgeline.graph.session.replaying import find_recording
from ridgeline.graph.session.session import run_search
from ridgeline.problems.spec import Budget
from ridgeline.tools.errors import RunError

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.runtime import RunControl

P = ParamSpec("P")


async def asearch(
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
    stop: RunControl | None = None,
    config: RunnableConfig | None = None,
) -> SearchResult:
    """Search for a faster kernel and return the verified best one; `asearch` lets the event loop go on, `search` blocks.

    Args:
        problem: a problem.yaml, its folder, the name of a shipped problem, or a loaded ProblemSpec.
        device: cpu, cuda or cuda:N.
        models: provider:name, as openai:o3; `offline` needs no key; left out: the problem's, else offline. One or several.
        run_dir: the run's folder; left out: `runs/<problem>-<time>-<process>`, with `resume` the problem's newest
            unfinished run in `runs`.
        rounds: rounds of ideas before the search ends; with `resume`, extend a search that is over to this many rounds.
        ideas: new ideas a round.
        implementations: kernels written for each idea, side by side.
        strategy: `branch`: many ideas a round; `revision`: one lineage, one idea at a time, no idea memory.
        budget: limits of finding kernels; timing PyTorch's compiled configurations and the certificate take minutes more.
            A stop bounds these too, and a resumed search goes on with them.
        rng_seed: random seed of the search's choices.
        resume: go on with a run that was stopped, parked or killed, or whose budget was spent.
        park: end where every branch waits for answers; a resumed search goes on. It returns in state `waiting` then.
        bank: a seed bank, the fastest kernels of earlier searches; left out: none.
        replay: a recorded run, its name in `runs`, or a file of `ridgeline export --replay`: its models' answers are given
            again. It brings the problem, the models and the random seed along.
        replay_timings: give its measurements again too.
        replay_else: the model that a call which was not recorded goes to; without one its answer is left out.
        replay_strict: end at such a call.
        on_event: called with each event.
        stop: `stop.request_drain()`, from any thread, ends the search after the steps in flight, in state `stopped`.
            `search` does so at an interrupt and raises KeyboardInterrupt then, at a second one without those steps.
        config: goes to LangGraph.

    Raises:
        InputError: invalid input; one line says how to fix it.
        EngineError: the machine failed; the search can be resumed with `resume=True` and its `run_dir`.
    """
    request = SearchRequest(
        problem=problem,
        run_dir=checked("run_dir", run_dir or None),
        device=device,
        models=model_names(models),
        settings=_stated(rounds=rounds, ideas=ideas, implementations=implementations, strategy=strategy),
        budget=budget,
        rng_seed=0 if rng_seed is None else rng_seed,
        resume=resume,
        max_rounds=rounds if resume else None,
        park=park,
        bank=checked("bank", bank or None),
        replay=await _recording(replay, rng_seed),
        replay_timings=replay_timings,
        replay_else=replay_else,
        replay_strict=replay_strict,
    )
    return await run_search(request, on_event=on_event, stop=stop, config=config)


async def _recording(replay: Path | str | None, rng_seed: int | None) -> Path | None:
    """Return what is to be replayed, None for a search of its own; RunError where it has another random seed."""
    if not replay:
        return None
    if rng_seed is not None:
        raise RunError("rng_seed: a replay decides by the recorded one; leave it out")
    return await asyncio.to_thread(find_recording, checked("replay", replay), RUNS)


def _stated(**settings: float | str | None) -> dict[str, float | str]:
    """Return the settings that a caller gave."""
    return {name: value for name, value in settings.items() if value is not None}


def _blocking(work: Callable[P, Coroutine[Any, Any, SearchResult]]) -> Callable[P, SearchResult]:
    """Return the blocking twin of a search; an interrupt lets the steps in flight end, a second one does not."""
    signature = inspect.signature(work)

    @functools.wraps(work)
    def search(*args: P.args, **kwargs: P.kwargs) -> SearchResult:
        from langgraph.runtime import RunControl

        try:
            signature.bind(*args, **kwargs)
        except TypeError as error:  # else it would name the twin, which nobody has called
            raise TypeError(f"search() {error}") from None
        given: dict[str, Any] = kwargs  # asearch's own
        control: RunControl = given.get("stop") or RunControl()
        given["stop"], on_event = control, viewer_of(given.get("on_event"))

        def drain() -> None:  # in the search's thread, so that `on_event` is never called in two at once
            control.request_drain("interrupted")
            reason = "interrupted: stopping after the steps in flight (again: now)"
            on_event({"event": "stopped", "outcome": "stopping", "reason": reason})

        return run_blocking(work(*args, **kwargs), drain=drain, note=_how_to_go_on)

    search.__name__ = search.__qualname__ = "search"
    return search


def _how_to_go_on(result: SearchResult) -> str:
    return f"the search ended in state {result.state}; go on: search(resume=True, run_dir={str(result.run_dir)!r})"


search = _blocking(asearch)
"""`asearch` for a caller that waits, also inside a running event loop, which stands still meanwhile."""
