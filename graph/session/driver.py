"""Run one search in a run folder: lock, archive, saver, engine, stream, and how it ended.

The command line and the library both come through `run_search`; it is the only place that opens things.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shutil
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ridgeline.checkpoints.archive import FILE_NAME, Archive
from ridgeline.checkpoints.journal import Journal
from ridgeline.checkpoints.own_files import refuse_links
from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.checkpoints.runs import check_graph_version, check_vacant, lock_run
from ridgeline.checkpoints.saver import open_saver, prune
from ridgeline.graph.models.pool import ModelPool
from ridgeline.graph.models.registry import make_models
from ridgeline.graph.session.resume import check_same, extension, source_sha256
from ridgeline.problems.spec import Budget
from ridgeline.tools.errors import DeviceError, InputError, NotBegun, RunError, StorageError

if TYPE_CHECKING:
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
    from langgraph.runtime import RunControl

    from ridgeline.checkpoints.bank import Bank
    from ridgeline.graph.models.requests import KernelModel
    from ridgeline.graph.search.context import SearchContext
    from ridgeline.graph.search.events import SearchEvent
    from ridgeline.problems.spec import ProblemSpec, SearchSettings
    from ridgeline.tools.engine import Engine
    from ridgeline.tools.machine.waits import Listener, Wait
    from ridgeline.tools.records.problem import Target

logger = logging.getLogger(__name__)

THREAD_ID = "search"
CHECKPOINTS = "search.sqlite"
OnEvent = Callable[["SearchEvent"], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions:
    """What a search is asked to do.

    A resumed one keeps the device, settings and random seed that it began with, and its models and budget when none are
    given.
    """

    problem: ProblemSpec
    run_dir: Path
    device: str = "cpu"
    models: tuple[str, ...] = ()  # empty: the problem's, else offline
    settings: SearchSettings | None = None  # None: the problem's
    budget: Budget | None = None  # None: the problem's; limits that are given replace single ones
    rng_seed: int = 0
    resume: bool = False
    max_rounds: int | None = None  # on a finished search: extend it to this many rounds
    bank: Path | None = None
    allow_unsafe: bool = False


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
        async with open_context(options, engine=engine, models=models, on_event=on_event, stop=stop) as context:
            async with open_saver(options.run_dir / CHECKPOINTS) as saver:
                state = await _drive(context, saver, options, on_event, stop)
            return await asyncio.to_thread(_result, options.run_dir, context.archive, state)
    except InputError:
        if is_new and (context is None or context.described_target is None):
            # a mistake found before anything was measured leaves nothing to resume
            shutil.rmtree(options.run_dir, ignore_errors=True)
        raise


def with_begun(options: SearchOptions) -> SearchOptions:
    """Return the options of a resumed search with what it began with: its device, and models and budget unless given.

    A new search's options come back with the problem's models and budget in the place of those not given.
    """
    begun = RunRecord()
    if options.resume:
        refuse_links(options.run_dir)
        with Archive.open(options.run_dir, create=False) as archive:
            begun = archive.run()
    limits = begun.budget or options.problem.budget.model_dump()
    given = options.budget.model_dump(exclude_none=True) if options.budget else {}
    return replace(
        options,
        device=begun.device_name or options.device,
        models=options.models or begun.models or tuple(options.problem.models),
        budget=Budget.model_validate(dict(limits) | given),
    )


def make_models_for(options: SearchOptions) -> list[KernelModel]:
    """Return the models of these options; ModelError before anything is started."""
    options = with_begun(options)
    prices = {name: price.model_dump() for name, price in options.problem.prices.items()}
    needs_prices = options.budget is not None and options.budget.usd is not None
    return make_models(options.models, prices=prices, needs_prices=needs_prices)


@contextlib.asynccontextmanager
async def open_context(
    options: SearchOptions,
    *,
    engine: Engine | None = None,
    models: list[KernelModel] | None = None,
    on_event: OnEvent | None = None,
    stop: RunControl | None = None,
) -> AsyncIterator[SearchContext]:
    """Give the context of a search in its run folder, which is locked; everything opened is closed with the block.

    For a host that runs the graph itself, under its own checkpointer: `make_graph(GraphConfig(context=context))`.
    `run_search` does the same with a checkpointer in the run folder. What can be mended by the user is found out in an
    order in which a mistake leaves nothing half-written; raises InputError as `run_search` does. `on_event` gets what
    the engine tells outside of the graph: that another process has the device. Once `stop` is asked to drain, steps that
    wait for their turn are dropped: they raise NotBegun.
    """
    from ridgeline.graph.build import GRAPH_VERSION
    from ridgeline.graph.search.compiled import end_compiled
    from ridgeline.graph.search.context import SearchContext, stored_target
    from ridgeline.graph.search.coverage import ensure_interface
    from ridgeline.graph.session.machine import check_machine, measuring_devices, open_engine, target_of
    from ridgeline.problems.spec import SearchSettings
    from ridgeline.tools.machine.load import busy_words, cores_in_use
    from ridgeline.tools.remembering import RememberingEngine

    options = with_begun(options)
    made = models if models is not None else make_models_for(options)
    target = target_of(options.problem, options.device)
    if not options.resume:
        check_vacant(options.run_dir)
        ensure_interface(options.problem, target.device.kind, [model.name for model in made])
    if engine is None and not options.resume:  # a search that is over needs neither
        await asyncio.to_thread(check_machine, options.device, allow_unsafe=options.allow_unsafe)
    async with contextlib.AsyncExitStack() as stack:
        stack.enter_context(lock_run(options.run_dir))
        watch: Callable[[], float] | None = None
        if engine is None:
            opened = open_engine(
                options.device,
                log=options.run_dir / "run.log",
                allow_unsafe=options.allow_unsafe,
                on_wait=_on_wait(on_event),
                is_stopping=lambda: stop is not None and stop.drain_requested,
            )
            engine = await stack.enter_async_context(opened)
            watch = cores_in_use
            if on_event is not None and (words := await asyncio.to_thread(busy_words, target.device)):
                on_event({"event": "warning", "message": words})
        archive = await asyncio.to_thread(Archive.open, options.run_dir / FILE_NAME, create=not options.resume)
        stack.callback(archive.close)
        await asyncio.to_thread(check_graph_version, archive, GRAPH_VERSION)
        begun = await asyncio.to_thread(_begin, archive, options, target, made)
        context = SearchContext(
            problem=options.problem,
            target=target,
            described_target=await asyncio.to_thread(stored_target, archive, target),
            archive=archive,
            journal=Journal(archive),
            engine=RememberingEngine(engine, archive),
            models=ModelPool(made),
            settings=SearchSettings.model_validate(begun.settings),
            budget=options.budget or Budget(),
            bank=_open_bank(options, stack),
            rng_seed=begun.rng_seed or 0,
            wall_before_s=begun.wall_s or 0.0,
            devices=len(measuring_devices(options.device, target.device)),
            cores_in_use=watch,
        )
        stack.push_async_callback(end_compiled, context)
        yield context


def _on_wait(on_event: OnEvent | None) -> Listener:
    def tell(wait: Wait | None) -> None:
        if on_event is not None:
            device, holder, is_news = (wait.device, wait.holder, wait.is_news) if wait else ("", "", False)
            holders = wait.holders if wait else 0
            on_event({"event": "waiting", "device": device, "holder": holder, "holders": holders, "is_news": is_news})

    return tell


def _open_bank(options: SearchOptions, stack: contextlib.AsyncExitStack) -> Bank | None:
    if options.bank is None:
        return None
    from ridgeline.checkpoints.bank import Bank
    from ridgeline.tools.machine.places import home_dir

    try:
        bank = Bank.open(options.bank)
    except StorageError as error:
        if options.bank != home_dir() / "bank.sqlite":
            raise
        logger.warning("going on without the seed bank: %s", error)
        return None
    stack.callback(bank.close)
    return bank


def _begin(archive: Archive, options: SearchOptions, target: Target, models: list[KernelModel]) -> RunRecord:
    """Store the search's request, or check that a resumed search is still the same; return the stored run."""
    begun = archive.run()
    budget = (options.budget or Budget()).model_dump()
    if begun.has_begun:
        if not options.resume:
            raise RunError(f"{options.run_dir}: holds a search already; pass --resume, or choose another --run-dir")
        check_same(options.run_dir, begun, target)
        archive.save_run(RunRecord(state="running", budget=budget))
        return archive.run()
    problem = options.problem
    settings = options.settings or problem.search
    archive.save_run(
        RunRecord(
            problem=problem.model_dump(mode="json"),
            problem_path=str(problem.path),
            device=target.device,
            device_name=options.device,
            settings=settings.model_dump(mode="json"),
            strategy=settings.strategy,
            budget=budget,
            versions=_versions(target),
            rng_seed=options.rng_seed,
            models=tuple(model.name for model in models),
            reference_source=target.reference_source,
            reference_source_sha256=source_sha256(target),
            state="running",
            started_at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            wall_s=0.0,
        )
    )
    return archive.run()


def _versions(target: Target) -> dict[str, str]:
    """Return the compiler's version; none where an engine elsewhere compiles."""
    from ridgeline.tools.build.toolchain import find_toolchain

    with contextlib.suppress(DeviceError):  # the engine says so itself, when it is the one to compile
        return {"compiler": find_toolchain(target.device.kind).version}
    return {}


async def _drive(
    context: SearchContext,
    saver: AsyncSqliteSaver,
    options: SearchOptions,
    on_event: OnEvent | None,
    stop: RunControl | None,
) -> str:
    """Stream the graph; returns the state it ended in, which is stored with the wall time however it ends."""
    from langgraph.errors import GraphDrained

    state = "running"  # what a search is that a fault ended: resumable
    try:
        state = await _stream(context, saver, options, on_event, stop)
    except (GraphDrained, NotBegun):
        state = "stopped"
    except asyncio.CancelledError:
        state = "stopped"
        raise
    finally:
        wall_s = context.wall_before_s + time.monotonic() - context.started_s
        tier = _sandbox_tier(context.archive)
        context.archive.save_run(RunRecord(state=state, wall_s=wall_s, sandbox_tier=tier))
    return state


def _sandbox_tier(archive: Archive) -> str | None:
    """Return the tier of isolation that the candidates ran in; None before one has run."""
    tiers = (e.verdict.sandbox_tier for e in archive.evaluations() if e.verdict is not None)
    return next((tier for tier in tiers if tier), None)


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
    if snapshot.created_at is None:
        given: dict[str, int] | None = {"max_rounds": options.max_rounds} if options.max_rounds else {}
    elif snapshot.next:
        given = None  # where it was; passing the first input again would run everything again
    else:
        given, reason = await extension(context, snapshot.values, options.max_rounds)
        if given is None:
            if reason and on_event is not None:
                on_event({"event": "warning", "message": f"nothing is left to do: {reason}"})
            return str(snapshot.values["outcome"])
        await asyncio.to_thread(_forget_winner, context.archive, options.run_dir)
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


def _forget_winner(archive: Archive, run_dir: Path) -> None:
    archive.forget_winner()
    for name in ("certificate.json", "certificate.md"):
        (run_dir / name).unlink(missing_ok=True)


def _write_header(run_dir: Path, archive: Archive) -> None:
    """Write problem.h beside the best kernel, which includes it: with it the source compiles anywhere."""
    from ridgeline.checkpoints.own_files import replace_file
    from ridgeline.tools.build.header import problem_header
    from ridgeline.tools.records.vocabulary import Interface

    description, run = archive.description(), archive.run()
    if description is None or run.problem is None or run.device is None:
        return
    interface = Interface(run.problem["interface"])
    if interface is Interface.MODULE:
        return
    header = problem_header(description.signature, run.device.kind, interface)
    replace_file(run_dir / "problem.h", header)


def _result(run_dir: Path, archive: Archive, state: str) -> SearchResult:
    """Write result.json, the best source and the report, and return what a caller wants of them."""
    from ridgeline.checkpoints.report.outputs import write_run_outputs

    report = write_run_outputs(run_dir, archive)
    _write_header(run_dir, archive)
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
