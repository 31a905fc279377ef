"""A whole search as a function: `search`, which blocks, and `asearch`, which does not."""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar

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
R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchArguments:
    """The arguments of `search` and `asearch`; the docstring of `asearch` says what each means."""

    problem: ProblemName | None = field(default=None, kw_only=False)
    device: str = "cpu"
    models: str | Sequence[str] = ()
    run_dir: Path | str | None = None
    rounds: int | None = None
    ideas: int | None = None
    implementations: int | None = None
    strategy: str | None = None
    budget: Budget | None = None
    rng_seed: int | None = None
    resume: bool = False
    park: bool = False
    bank: Path | str | None = None
    replay: Path | str | None = None
    replay_timings: bool = False
    replay_else: str = ""
    replay_strict: bool = False
    on_event: OnEvent | None = None
    stop: RunControl | None = None
    config: RunnableConfig | None = None

    @classmethod
    def of_call(cls, function: str, *args: Any, **kwargs: Any) -> Self:
        """Return the arguments of a call; TypeError in the function's name where it does not take them."""
        try:
            inspect.signature(cls).bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{function}() {error}") from None
        return cls(*args, **kwargs)

    async def request(self) -> SearchRequest:
        """Return the search that is asked for.

        Raises:
            InputError: a value is of another kind than it must be, or there is no such recording.
        """
        counts = {"rounds": self.rounds, "ideas": self.ideas, "implementations": self.implementations}
        return SearchRequest(
            problem=self.problem,
            run_dir=checked("run_dir", self.run_dir or None),
            device=self.device,
            models=model_names(self.models),
            settings=_stated(**counts, strategy=self.strategy),
            budget=self.budget,
            rng_seed=0 if self.rng_seed is None else self.rng_seed,
            resume=self.resume,
            max_rounds=self.rounds if self.resume else None,
            park=self.park,
            bank=checked("bank", self.bank or None),
            replay=await _recording(self.replay, self.rng_seed),
            replay_timings=self.replay_timings,
            replay_else=self.replay_else,
            replay_strict=self.replay_strict,
        )


def _taking(arguments: Callable[P, object]) -> Callable[[Callable[..., R]], Callable[P, R]]:
    """Give a function that hands all it gets to a record the signature of that record, for type checkers and `help` too."""

    def signed(function: Callable[..., R]) -> Callable[P, R]:
        returned = inspect.signature(function).return_annotation
        taken = inspect.signature(arguments).replace(return_annotation=returned)
        function.__signature__ = taken  # type: ignore[attr-defined]  # typeshed does not know what `inspect` reads
        return function

    return signed


@_taking(SearchArguments)
async def asearch(*args: Any, **kwargs: Any) -> SearchResult:  # noqa: D417  # its arguments are the record's fields
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
    return await _search(SearchArguments.of_call("asearch", *args, **kwargs))


@_taking(SearchArguments)
def search(*args: Any, **kwargs: Any) -> SearchResult:
    """`asearch` for a caller that waits."""  # `help` shows the docstring of both, set below
    # It works inside a running event loop too, which stands still meanwhile. An interrupt lets the steps in flight end, a
    # second one does not.
    from langgraph.runtime import RunControl

    asked = SearchArguments.of_call("search", *args, **kwargs)
    control, on_event = asked.stop or RunControl(), viewer_of(asked.on_event)

    def drain() -> None:  # in the search's thread, so that `on_event` is never called in two at once
        control.request_drain("interrupted")
        reason = "interrupted: stopping after the steps in flight (again: now)"
        on_event({"event": "stopped", "outcome": "stopping", "reason": reason})

    return run_blocking(_search(dataclasses.replace(asked, stop=control)), drain=drain, note=_how_to_go_on)


search.__doc__ = asearch.__doc__  # what `help` shows: the arguments of both


async def _search(asked: SearchArguments) -> SearchResult:
    return await run_search(await asked.request(), on_event=asked.on_event, stop=asked.stop, config=asked.config)


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


def _how_to_go_on(result: SearchResult) -> str:
    return f"the search ended in state {result.state}; go on: search(resume=True, run_dir={str(result.run_dir)!r})"
