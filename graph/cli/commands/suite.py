"""`ridgeline suite`: one search after the other, resumable as a whole, and one table at the end."""

from __future__ import annotations

import argparse
import contextlib
import json
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from ridgeline.checkpoints.report.suite_page import FILE_NAME as PAGE_NAME
from ridgeline.checkpoints.runs.folders import refuse_held
from ridgeline.checkpoints.runs.suite import (
    DONE,
    FAST_P,
    FILE_NAME,
    Row,
    RowState,
    Suite,
    find_suite,
    read_suite,
    scores,
)
from ridgeline.graph.cli import EXIT_PARKED
from ridgeline.graph.cli.arguments import NEWEST
from ridgeline.graph.cli.console import make_console
from ridgeline.graph.cli.foreground import StopSignal, run_shown
from ridgeline.graph.cli.request import SHAPE, request_of_words
from ridgeline.graph.cli.suite_options import RENEWED, check_options, given_options
from ridgeline.graph.cli.summary import ridgeline_program
from ridgeline.graph.session.machine import check_machine
from ridgeline.graph.session.options import RUNS, SearchRequest
from ridgeline.graph.session.suite import REFUSALS, Ended, default_suite_dir, holds_search, new_suite, run_suite
from ridgeline.tools.errors import RunError
from ridgeline.tools.wording import counted

if TYPE_CHECKING:
    from rich.console import Console


def execute(args: argparse.Namespace) -> int:
    """Run the suite; 0 also with refused problems, 75 with a parked search, 1 when one failed by no fault of its problem's."""
    console = make_console(stderr=args.json)
    folder, suite = _planned(args, console)
    _check(folder, suite)
    console.print(f"suite of {counted(len(suite.rows), 'problem')}\nfolder {folder}", markup=False, soft_wrap=True)
    stop = StopSignal()

    def search(row: Row, run_dir: Path, is_begun: bool) -> Ended:  # noqa: FBT001  the suite's own protocol
        resolved = _request(suite, row, run_dir, is_begun=is_begun).resolve()
        result, stopped = run_shown(console, resolved, is_plain=args.plain)
        stop.number = stopped.number
        return Ended(result=result, is_last=stop.number is not None)

    def tell(index: int, row: Row) -> None:
        if row.state == "running":
            console.print(f"\n[{index + 1}/{len(suite.rows)}] {row.name}", markup=False, soft_wrap=True)
        elif row.reason:
            console.print(f"{row.state}: {row.reason}", markup=False, soft_wrap=True)

    planned = suite if args.resume is None else None
    ended = run_suite(folder, planned, search, tell, options=suite.options)
    _print(console, ended, folder)
    if args.json:
        sys.stdout.write(json.dumps(ended.to_json()) + "\n")
    return _exit_code(ended, stop)


def _exit_code(ended: Suite, stop: StopSignal) -> int:
    if ended.state != "finished" and (code := stop.exit_code()) is not None:
        return code
    if any(row.state is RowState.FAILED for row in ended.rows):
        return 1
    return EXIT_PARKED if any(row.state is RowState.WAITING for row in ended.rows) else 0


def _request(suite: Suite, row: Row, run_dir: Path, *, is_begun: bool) -> SearchRequest:
    """Return the request for one row's search; a search that has begun keeps its own settings and rounds."""
    kept = (*SHAPE, "rng_seed") if is_begun else ()
    words = {name: value for name, value in suite.options.items() if name not in kept}
    return request_of_words(words, problem=row.problem, run_dir=run_dir, resume=is_begun)


def _planned(args: argparse.Namespace, console: Console) -> tuple[Path, Suite]:
    """Return the suite's folder, and the suite: the plan of a new one, or what the folder holds with renewed options."""
    given = given_options(vars(args))
    if args.resume is None:
        if not args.problems:
            raise RunError(
                "suite: no problem was named; try ridgeline suite quickstart softmax, or a folder of problems"
            )
        folder = Path(args.out) if args.out else default_suite_dir()
        return folder, new_suite(folder, args.problems, given)
    if args.problems or args.out:
        raise RunError("suite: --resume goes on with the problems and the folder it began with; leave them out")
    folder = find_suite(RUNS, "" if args.resume is NEWEST else args.resume)
    suite = read_suite(folder)
    check_options(folder / FILE_NAME, suite.options)
    if ignored := [f"--{name.replace('_', '-')}" for name in given if name not in RENEWED]:
        said = f"warning: ignored, a suite keeps what it began with: {', '.join(ignored)}"
        console.print(said, markup=False, soft_wrap=True)
    renewed = {name: value for name, value in given.items() if name in RENEWED}
    return folder, replace(suite, options=suite.options | renewed)


def _check(folder: Path, suite: Suite) -> None:
    """Refuse what every search that is left would meet: a device, a compiler, a model, a bank. Nothing is written."""
    from ridgeline.tools.machine.devices import detect_device

    refuse_held(folder)
    device = suite.options.get("device", "cpu")
    detect_device(device)
    left = [row for row in suite.rows if row.state not in DONE]
    if left:
        check_machine(device, allow_unsafe="unsafe_no_sandbox" in suite.options)
    for row in left:
        run_dir = folder / row.run
        with contextlib.suppress(*REFUSALS):  # these make a row of the suite
            _request(suite, row, run_dir, is_begun=holds_search(run_dir)).resolve()


# ------------------------------------------------------------------------------------------------------ what is shown


def _print(console: Console, suite: Suite, folder: Path) -> None:
    table = Table(box=None, pad_edge=False)
    for name in ("problem", "state", "vs eager", "vs best baseline", "certified", "class"):
        table.add_column(name, overflow="fold")
    for row in suite.rows:
        certified = "yes" if row.certified else "no" if row.correct else ""
        times = (_times(row.speedup), _times(row.speedup_vs_best))
        table.add_row(row.name, row.state, *times, certified, row.precision_class or "")
    console.print()
    console.print(table)
    for row in suite.rows:
        if row.reason:
            console.print(Text(f"{row.name}: {row.state}: {row.reason}"), soft_wrap=True)
    for line in _score_lines(suite):
        console.print(line, markup=False, soft_wrap=True)
    console.print(f"\nsuite:   {folder / FILE_NAME}", markup=False, soft_wrap=True)
    console.print(f"page:    {folder / PAGE_NAME}", markup=False, soft_wrap=True)
    if suite.state != "finished" or any(row.state not in DONE for row in suite.rows):
        command = shlex.join([ridgeline_program() or "ridgeline", "suite", "--resume", str(folder.absolute())])
        console.print(f"resume:  {command}", markup=False, soft_wrap=True)


def _score_lines(suite: Suite) -> list[str]:
    found = scores(suite.rows)
    number = found["problems"]
    counts = f"{found['correct']} of {counted(number, 'problem')} with a correct kernel, {found['certified']} certified"
    lines = [f"\n{counts}; fast_p is the share of all {number} that are correct and faster than p"]
    for key, words in (("over_eager", "eager PyTorch of the class"), ("over_best_baseline", "the best baseline")):
        score = found[key]
        shares = ", ".join(f"fast_{p:g} {score['fast_p'][f'{p:g}']:.0%}" for p in FAST_P)
        mean = f"{score['geometric_mean']:.2f}x" if score["geometric_mean"] else "none"
        lines.append(f"over {words}: {shares}; geometric mean of {counted(score['kernels'], 'kernel')}: {mean}")
    return lines


def _times(speedup: float | None) -> str:
    return f"{speedup:.2f}x" if speedup is not None else ""
