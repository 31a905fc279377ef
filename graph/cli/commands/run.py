"""`ridgeline run`: begin a search or go on with one, show it, and say how it ended."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from ridgeline.checkpoints.archive import FILE_NAME, Archive
from ridgeline.checkpoints.result import STATE_WORDS
from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.checkpoints.runs import UNFINISHED, check_vacant, find_run, newest_unfinished, read_run
from ridgeline.graph.cli.summary import closing_lines, resume_command, resume_line
from ridgeline.graph.cli.view.board import Board, recall
from ridgeline.graph.cli.view.progress import LiveView, PlainView, View
from ridgeline.graph.models.registry import OFFLINE
from ridgeline.graph.session.api import RUNS, changed_settings, default_run_dir, find_problem
from ridgeline.graph.session.driver import SearchOptions, SearchResult, make_models_for, run_search, with_begun
from ridgeline.graph.session.machine import check_machine, target_of
from ridgeline.graph.session.run_log import log_to
from ridgeline.problems.spec import Budget, ProblemSpec
from ridgeline.tools.errors import ProblemError, RunError
from ridgeline.tools.machine.places import home_dir

if TYPE_CHECKING:
    from langgraph.runtime import RunControl

    from ridgeline.graph.models.requests import KernelModel

logger = logging.getLogger(__name__)

SIGNALS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}
"""128 + the signal's number, as shells report it."""

AT_ONCE = "stopped at once"

SHAPE = ("rounds", "ideas", "implementations", "repairs", "tune_trials", "strategy")
"""The options that change the problem's search settings."""


@dataclass(slots=True, kw_only=True)
class Stop:
    """The signal that asked for an end, if any."""

    number: int | None = None


def execute(args: argparse.Namespace) -> int:
    """Run the search and return 0, or 129, 130 or 143 after a signal."""
    options = options_of(args)
    console = Console(stderr=args.json, highlight=False)
    warnings = _ignored(args, options)
    result, stop = search_shown(console, options, warnings=warnings, is_plain=args.plain)
    tell_end(console, options, result)
    if result is not None and args.json:
        sys.stdout.write(json.dumps(result.report) + "\n")
    if stop.number is not None and (result is None or result.state == "stopped"):
        return SIGNALS[signal.Signals(stop.number)]
    return 0


def search_shown(
    console: Console, options: SearchOptions, *, warnings: Sequence[str] = (), is_plain: bool
) -> tuple[SearchResult | None, Stop]:
    """Run a search in view of the user; None in place of its result when a second signal cut it short."""
    models = make_models_for(options)
    names = tuple(model.name for model in models)
    target_of(options.problem, options.device)  # a device that is not there is told before anything is announced
    if not options.resume:
        check_vacant(options.run_dir)
        check_machine(options.device, allow_unsafe=options.allow_unsafe)
    _announce(console, options, names, was_named=options.resume or bool(options.models))
    for warning in warnings:
        console.print(warning, markup=False, soft_wrap=True)
    board = Board(problem=options.problem.name, device=options.device, models=names)
    if options.resume:
        _tell_resumed(console, board, options.run_dir)
    stop = Stop()
    with ExitStack() as stack:
        stack.enter_context(log_to(options.run_dir / "run.log"))
        view = _view(board, console, is_plain=is_plain)
        stack.callback(view.close)
        result = asyncio.run(_search(options, models, view, stop))
        if stop.number is not None:
            board.settle(STATE_WORDS.get(result.state, result.state) if result else AT_ONCE)
    return result, stop


async def _search(options: SearchOptions, models: list[KernelModel], view: View, stop: Stop) -> SearchResult | None:
    """Run the search; None when a second signal cut it short (it can be resumed all the same)."""
    from langgraph.runtime import RunControl

    control = RunControl()
    search = asyncio.ensure_future(run_search(options, on_event=view.show, stop=control, models=models))
    loop = asyncio.get_running_loop()
    for number in SIGNALS:
        loop.add_signal_handler(number, _on_signal(number, stop, control, view, search.cancel))
    try:
        return await search
    except asyncio.CancelledError:
        if stop.number is None:
            raise
        return None
    finally:
        for number in SIGNALS:
            loop.remove_signal_handler(number)


def _on_signal(
    number: int, stop: Stop, control: RunControl, view: View, cut_short: Callable[[], object]
) -> Callable[[], None]:
    """Return the handler: the first signal lets running steps end, the second does not wait for them."""

    def handle() -> None:
        if stop.number is not None:
            cut_short()
            return
        stop.number = number
        name = signal.Signals(number).name
        logger.info("%s: stopping after the steps in flight", name)
        reason = f"{name}: stopping after the steps in flight (again: now)"
        view.show({"event": "stopped", "outcome": "stopping", "reason": reason})
        control.request_drain(name)

    return handle


# ------------------------------------------------------------------------------------------------------- what to run


def options_of(args: argparse.Namespace) -> SearchOptions:
    """Return what the words of the command line ask of a search."""
    resumed = _resumed(args)
    problem = _problem(args, resumed)
    changes = {name: getattr(args, name) for name in SHAPE if getattr(args, name) is not None}
    options = SearchOptions(
        problem=problem,
        run_dir=resumed or (Path(args.run_dir) if args.run_dir else default_run_dir(problem)),
        device=args.device or "cpu",
        models=tuple(args.model or ()),
        settings=changed_settings(problem, changes),
        budget=Budget(usd=args.max_usd, tokens=args.max_tokens, wall_s=args.max_wall_s, gpu_s=args.max_gpu_s),
        rng_seed=args.rng_seed or 0,
        resume=resumed is not None,
        max_rounds=args.rounds,
        bank=_bank(args.bank),
        allow_unsafe=args.unsafe_no_sandbox,
    )
    return with_begun(options)


def _ignored(args: argparse.Namespace, options: SearchOptions) -> list[str]:
    """Return a line on the options that a resumed search does not take, and one on --rounds while it is unfinished."""
    if not options.resume:
        return []
    begun = read_run(options.run_dir) or RunRecord()
    kept = dict(begun.settings or {}) | {"rng_seed": begun.rng_seed, "device": begun.device_name}
    differing = [
        f"--{name.replace('_', '-')} {getattr(args, name)} (it has {kept.get(name)})"
        for name in (*SHAPE[1:], "rng_seed", "device")
        if getattr(args, name) not in (None, kept.get(name))
    ]
    lines = [f"warning: ignored, a search keeps what it began with: {', '.join(differing)}"] if differing else []
    lines += _changed_keys(begun.problem or {}, options.problem)
    if args.rounds and begun.state in UNFINISHED:
        lines.append("warning: --rounds is ignored until the search is finished; then --resume --rounds N extends it")
    return lines


def _changed_keys(was: Mapping[str, Any], problem: ProblemSpec) -> list[str]:
    """Return a line on what problem.yaml says otherwise now and a search keeps (what it may not change ends it)."""
    now = problem.model_dump(mode="json")
    keys = [key for key in ("seeds", "ideas", "search", "models", "budget") if key in was and was[key] != now[key]]
    if not keys:
        return []
    said = "changed in problem.yaml since this search began, which keeps its settings and what it took from there"
    return [f"warning: {', '.join(keys)} {said}; options change models, budget and, once it is over, rounds"]


def _resumed(args: argparse.Namespace) -> Path | None:
    """Return the run folder to go on with, or None for a new search.

    `--resume problem.yaml` means the problem: argparse cannot tell an option's optional value from what follows it.
    """
    if args.resume is None:
        return None
    if args.resume and args.problem is None and _names_problem(args.resume):
        args.problem, args.resume = args.resume, ""
    runs = Path(args.run_dir).parent if args.run_dir else RUNS
    if args.resume:
        return find_run(runs, args.resume)
    if args.run_dir:
        return find_run(runs, args.run_dir)
    if args.problem is None:
        raise ProblemError("run: --resume needs to know of what: ridgeline run problem.yaml --resume, or --resume RUN")
    name = find_problem(args.problem).name
    found = newest_unfinished(runs, name)
    if found is None:
        raise RunError(f"{runs}: no unfinished run of {name}; leave --resume out to begin one")
    return found


def _names_problem(text: str) -> bool:
    return text.endswith((".yaml", ".yml"))


def _problem(args: argparse.Namespace, resumed: Path | None) -> ProblemSpec:
    if args.problem is not None:
        return find_problem(args.problem)
    if resumed is None:
        raise ProblemError(
            "run: no problem was named; try ridgeline run quickstart, or ridgeline run path/to/problem.yaml "
            "(ridgeline problems lists what ships, ridgeline new makes one of your own module)"
        )
    with Archive.open_read_only(resumed) as archive:
        path = archive.run().problem_path
    if not path:
        raise RunError(f"{resumed}: does not say which problem it searched; name its problem.yaml too")
    return find_problem(path)


def _bank(text: str | None) -> Path | None:
    if text == "none":
        return None
    return Path(text) if text else home_dir() / "bank.sqlite"


# ------------------------------------------------------------------------------------------------------ what is shown


def _announce(console: Console, options: SearchOptions, names: tuple[str, ...], *, was_named: bool) -> None:
    verb = "going on with" if options.resume else "searching"
    say = f"{verb} {options.problem.name} on {options.device} with {', '.join(names)}\nrun folder {options.run_dir}"
    console.print(say, markup=False, soft_wrap=True)
    if names == (OFFLINE,) and not was_named:
        hint = "no model was named: the offline model composes kernels itself (--model openai:o3 needs a key)"
        console.print(hint, markup=False, soft_wrap=True)


def _tell_resumed(console: Console, board: Board, run_dir: Path) -> None:
    """Say what a resumed search finds done, and fill its board with it."""
    with Archive.open_read_only(run_dir) as archive:
        console.print(resume_line(archive), markup=False, soft_wrap=True)
        recall(board, archive)


def _view(board: Board, console: Console, *, is_plain: bool) -> View:
    is_live = console.is_terminal and not console.is_dumb_terminal and not is_plain
    return LiveView(board, console) if is_live else PlainView(board, console)


def tell_end(console: Console, options: SearchOptions, result: SearchResult | None) -> None:
    """Print how a search ended and where everything lies."""
    for line in closing_lines(result) if result else _cut_short_lines(options.run_dir):
        console.print(line, markup=False, soft_wrap=True)


def _cut_short_lines(run_dir: Path) -> list[str]:
    """Return the last lines of a run that a second signal ended; one that had stored nothing yet cannot be resumed."""
    said = f"{AT_ONCE}: the steps in flight are lost, what had ended before is stored"
    is_stored = (run_dir / FILE_NAME).is_file()
    return ["", said, f"resume:  {resume_command(run_dir)}"] if is_stored else ["", AT_ONCE]
