"""`ridgeline suite`: one search after the other, resumable as a whole, and one table at the end."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ridgeline.checkpoints.suite import DONE, FAILED, FAST_P, FILE_NAME, Row, Suite, find_suite, read_suite, scores
from ridgeline.graph.cli.foreground import Stop, run_shown
from ridgeline.graph.cli.request import SHAPE, request_of
from ridgeline.graph.cli.summary import ridgeline_program
from ridgeline.graph.session.machine import check_machine
from ridgeline.graph.session.options import RUNS, SearchRequest
from ridgeline.graph.session.suite import Ended, default_suite_dir, new_suite, run_suite
from ridgeline.tools.errors import RunError
from ridgeline.tools.wording import counted

OPTIONS = (
    *SHAPE,
    "model",
    "device",
    "bank",
    "max_usd",
    "max_tokens",
    "max_wall_s",
    "max_gpu_s",
    "rng_seed",
    "unsafe_no_sandbox",
)
"""Options that each search of a suite takes over from the suite's beginning."""


def execute(args: argparse.Namespace) -> int:
    """Run the suite; 0 also with refused problems, 1 when a search failed by no fault of its problem's."""
    console = Console(stderr=args.json, highlight=False)
    folder, planned = _planned(args, console)
    suite = planned or read_suite(folder)
    _check_machine(suite, is_new=planned is not None)
    console.print(f"suite of {counted(len(suite.rows), 'problem')}\nfolder {folder}", markup=False, soft_wrap=True)
    stop = Stop()

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

    ended = run_suite(folder, planned, search, tell)
    _print(console, ended, folder)
    if args.json:
        sys.stdout.write(json.dumps(ended.to_json()) + "\n")
    return _exit_code(ended, stop)


def _exit_code(ended: Suite, stop: Stop) -> int:
    if ended.state != "finished" and (code := stop.exit_code()) is not None:
        return code
    return 1 if any(row.state == FAILED for row in ended.rows) else 0


def _request(suite: Suite, row: Row, run_dir: Path, *, is_begun: bool) -> SearchRequest:
    """Return the request for one row's search; a search that has begun keeps its own settings and rounds."""
    kept = (*SHAPE, "rng_seed") if is_begun else ()
    words = {name: value for name, value in suite.options.items() if name not in kept}
    return request_of(words, problem=row.problem, run_dir=run_dir, resume=is_begun)


def _planned(args: argparse.Namespace, console: Console) -> tuple[Path, Suite | None]:
    """Return the suite's folder, and its plan when it is a new one."""
    words = {name: getattr(args, name) for name in OPTIONS}
    given = {name: value for name, value in words.items() if value is not None and value is not False}
    if args.resume is None:
        if not args.problems:
            raise RunError(
                "suite: no problem was named; try ridgeline suite quickstart softmax, or a folder of problems"
            )
        folder = Path(args.out) if args.out else default_suite_dir()
        return folder, new_suite(folder, args.problems, _absolute(given))
    if args.problems or args.out:
        raise RunError("suite: --resume goes on with the problems and the folder it began with; leave them out")
    if given:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        console.print(f"warning: ignored, a suite keeps what it began with: {names}", markup=False, soft_wrap=True)
    return find_suite(RUNS, args.resume), None


def _absolute(given: dict[str, Any]) -> dict[str, Any]:
    """Return the options with an absolute path: a suite may be resumed from another folder."""
    bank = given.get("bank")
    return given | ({"bank": str(Path(bank).absolute())} if bank and bank != "none" else {})


def _check_machine(suite: Suite, *, is_new: bool) -> None:
    """Refuse a missing device, compiler or sandbox once and not for every problem."""
    from ridgeline.tools.machine.devices import detect_device

    device = suite.options.get("device", "cpu")
    detect_device(device)
    if is_new:
        check_machine(device, allow_unsafe="unsafe_no_sandbox" in suite.options)


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
    if suite.state != "finished" or any(row.state not in DONE for row in suite.rows):
        command = shlex.join([ridgeline_program() or "ridgeline", "suite", "--resume", str(folder)])
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
