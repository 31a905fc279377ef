"""Run one search in a run folder: lock, archive, saver, engine, stream, and how it ended.

The command line and the library both come through `run_search`; it is the only place that opens things.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import shutil
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ridgeline.checkpoints.archive import FILE_NAME, Archive
from ridgeline.checkpoints.journal import Journal
from ridgeline.checkpoints.runs import check_graph_version, lock_run
from ridgeline.checkpoints.saver import open_saver, prune
from ridgeline.graph.models import make_models
from ridgeline.graph.pool import ModelPool
from ridgeline.tools.errors import InputError, RunError

if TYPE_CHECKING:
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
    from langgraph.runtime import RunControl

    from ridgeline.checkpoints.bank import Bank
    from ridgeline.graph.context import SearchContext
    from ridgeline.graph.events import SearchEvent
    from ridgeline.graph.requests import KernelModel
    from ridgeline.problems.spec import Budget, ProblemSpec, SearchSettings
    from ridgeline.tools.engine import Engine, ProblemOnDevice

logger = logging.getLogger(__name__)

THREAD_ID = "search"
CHECKPOINTS = "search.sqlite"
OnEvent = Callable[["SearchEvent"], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions:
    """What a search is asked to do. A resumed one keeps the settings, models and random seed that it began with."""

    problem: ProblemSpec
    run_dir: Path
    device: str = "cpu"
    models: tuple[str, ...] = ()  # empty: the problem's, else offline
    settings: SearchSettings | None = None  # None: the problem's
    budget: Budget | None = None  # None: the problem's
    rng_seed: int = 0
    resume: bool = False
    max_rounds: int | None = None  # on a finished search: extend it to this many rounds
    bank: Path | None = None
    allow_unsafe: bool = False
    prices: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """How a search ended; everything it measured is in `run_dir`."""

    run_dir: Path
    state: str  # finished, stopped, budget, at_floor, stalled, no_gain
    rounds: int
    best_id: str | None
    best_source: str | None
    best_source_path: Path | None
    speedup: float | None  # eager / best
    certified: bool
    report: dict[str, Any]  # the content of result.json


async def run_search(
    options: SearchOptions,
    *,
    on_event: OnEvent | None = None,
    stop: RunControl | None = None,
    engine: Engine | None = None,
    models: list[KernelModel] | None = None,
) -> SearchResult:
    """Run or resume a search to its end, or until `stop.request_drain()`; then it can be resumed exactly there.

    `engine` and `models` replace what the options would open; an engine that is passed in is not closed.

    Raises:
        InputError: the user's to mend, one line; nothing was started, or the search can be resumed.
        EngineError: the machine failed; the search can be resumed.
    """
    is_new = not options.run_dir.exists()
    context: SearchContext | None = None
    try:
        async with open_context(options, engine=engine, models=models) as context:
            async with open_saver(options.run_dir / CHECKPOINTS) as saver:
                state = await _drive(context, saver, options, on_event, stop)
            return await asyncio.to_thread(_result, options.run_dir, context.archive, state)
    except InputError:
        if is_new and (context is None or context.target.description is None):
            # a mistake found before anything was measured leaves nothing to resume
            shutil.rmtree(options.run_dir, ignore_errors=True)
        raise


def make_models_for(options: SearchOptions) -> list[KernelModel]:
    """Return the models of these options; ModelError before anything is started.

    A resumed search takes the models it began with unless others are named.
    """
    names = options.models or _begun_models(options) or tuple(options.problem.models)
    prices = {name: price.model_dump() for name, price in options.problem.prices.items()} | dict(options.prices)
    budget = options.budget or options.problem.budget
    return make_models(names, prices=prices, needs_prices=budget.usd is not None)


def _begun_models(options: SearchOptions) -> tuple[str, ...]:
    if not options.resume:
        return ()
    with Archive.open(options.run_dir, create=False) as archive:
        return tuple(archive.run().get("models", ()))


@contextlib.asynccontextmanager
async def open_context(
    options: SearchOptions, *, engine: Engine | None = None, models: list[KernelModel] | None = None
) -> AsyncIterator[SearchContext]:
    """Give the context of a search in its run folder, which is locked; everything opened is closed with the block.

    For a host that runs the graph itself, under its own checkpointer: `make_graph(GraphConfig(context=context))`.
    `run_search` does the same with a checkpointer in the run folder. What can be mended by the user is found out in an
    order in which a mistake leaves nothing half-written; raises InputError as `run_search` does.
    """
    from ridgeline.graph.build import GRAPH_VERSION
    from ridgeline.graph.context import SearchContext
    from ridgeline.graph.engines import open_engine, target_of
    from ridgeline.problems.spec import SearchSettings

    made = models if models is not None else make_models_for(options)
    target = target_of(options.problem, options.device)
    async with contextlib.AsyncExitStack() as stack:
        stack.enter_context(lock_run(options.run_dir))
        if engine is None:
            log = options.run_dir / "run.log"
            engine = await stack.enter_async_context(open_engine(log=log, allow_unsafe=options.allow_unsafe))
        archive = await asyncio.to_thread(Archive.open, options.run_dir / FILE_NAME, create=not options.resume)
        stack.callback(archive.close)
        await asyncio.to_thread(check_graph_version, archive, GRAPH_VERSION)
        begun = await asyncio.to_thread(_begin, archive, options, target, made)
        yield SearchContext(
            problem=options.problem,
            target=target,
            archive=archive,
            journal=Journal(archive),
            engine=engine,
            models=ModelPool(made),
            settings=SearchSettings.model_validate(begun["settings"]),
            budget=options.budget or options.problem.budget,
            bank=_open_bank(options, stack),
            rng_seed=int(begun["rng_seed"]),
            wall_before_s=float(begun.get("wall_s", 0.0)),
        )


def _open_bank(options: SearchOptions, stack: contextlib.AsyncExitStack) -> Bank | None:
    if options.bank is None:
        return None
    from ridgeline.checkpoints.bank import Bank

    bank = Bank.open(options.bank)
    stack.callback(bank.close)
    return bank


def _begin(
    archive: Archive, options: SearchOptions, target: ProblemOnDevice, models: list[KernelModel]
) -> dict[str, Any]:
    """Store what the search is, or check that a resumed one is still the same; returns the stored run."""
    reference_sha256 = hashlib.sha256(target.reference_source.encode()).hexdigest()
    begun = archive.run()
    if "settings" in begun:
        if not options.resume:
            raise RunError(f"{options.run_dir}: holds a search already; pass --resume, or choose another --run-dir")
        if begun.get("reference_source_sha256") != reference_sha256:
            raise RunError(f"{options.run_dir}: the reference or its sizes changed since this search began; start anew")
        archive.save_run({"state": "running"})
        return archive.run()
    problem = options.problem
    settings = options.settings or problem.search
    archive.save_run(
        {
            "problem": problem.model_dump(mode="json"),
            "problem_path": str(problem.path),
            "device": target.device.to_json(),
            "device_name": options.device,
            "settings": settings.model_dump(mode="json"),
            "rng_seed": options.rng_seed,
            "models": [model.name for model in models],
            "reference_source_sha256": reference_sha256,
            "state": "running",
            "started_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "wall_s": 0.0,
        }
    )
    return archive.run()


async def _drive(
    context: SearchContext,
    saver: AsyncSqliteSaver,
    options: SearchOptions,
    on_event: OnEvent | None,
    stop: RunControl | None,
) -> str:
    """Stream the graph; returns the state it ended in, which is stored with the wall time however it ends."""
    from langgraph.errors import GraphDrained

    state = "interrupted"
    try:
        state = await _stream(context, saver, options, on_event, stop)
    except GraphDrained:
        state = "stopped"
    except asyncio.CancelledError:
        state = "stopped"
        raise
    finally:
        wall_s = context.wall_before_s + time.monotonic() - context.started_s
        context.archive.save_run({"state": state if state != "interrupted" else "running", "wall_s": wall_s})
    return state


async def _stream(
    context: SearchContext,
    saver: AsyncSqliteSaver,
    options: SearchOptions,
    on_event: OnEvent | None,
    stop: RunControl | None,
) -> str:
    """Stream the graph to its end and return its outcome."""
    from ridgeline.graph.build import make_graph

    graph = make_graph()
    graph.checkpointer = saver
    config: Any = {"configurable": {"thread_id": THREAD_ID}}
    snapshot = await graph.aget_state(config)
    given = _input(options, has_checkpoint=snapshot.created_at is not None, is_over=not snapshot.next)
    stream = graph.astream(
        given,
        config,
        context=context,
        stream_mode=["custom", "updates"],
        subgraphs=True,
        version="v2",
        durability="sync",
        control=stop,
    )
    async for part in stream:
        if part["type"] == "custom" and on_event is not None:
            on_event(part["data"])
        elif part["type"] == "updates" and not part["ns"] and "select" in part["data"]:
            await prune(saver, THREAD_ID)
    return str((await graph.aget_state(config)).values["outcome"])


def _input(options: SearchOptions, *, has_checkpoint: bool, is_over: bool) -> dict[str, int] | None:
    """Return the graph's input: None resumes where it was, `max_rounds` starts or extends.

    Passing the first input again would run everything again.
    """
    rounds = {"max_rounds": options.max_rounds} if options.max_rounds else {}
    if not has_checkpoint:
        return rounds
    return rounds if is_over and rounds else None


def _result(run_dir: Path, archive: Archive, state: str) -> SearchResult:
    """Write result.json, the best source and the report, and return what a caller wants of them."""
    from ridgeline.checkpoints.result import write_run_outputs

    report = write_run_outputs(run_dir, archive)
    best = report.get("best") or {}
    best_id = best.get("id")
    certificate = archive.certificate()
    return SearchResult(
        run_dir=run_dir,
        state=state,
        rounds=int(report.get("rounds", 0)),
        best_id=best_id,
        best_source=archive.candidate(best_id).source if best_id else None,
        best_source_path=run_dir / best["source_path"] if best_id else None,
        speedup=best.get("speedup"),
        certified=bool(certificate and certificate.get("passed")),
        report=report,
    )
