"""A suite: one search after the other in one folder, resumable as a whole."""

from __future__ import annotations

import os
import re
import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ridgeline.checkpoints.runs.folders import LOCK_NAME, lock_run, read_run
from ridgeline.checkpoints.runs.suite import (
    DONE,
    ENDED,
    FILE_NAME,
    Row,
    RowState,
    Suite,
    SuiteState,
    read_suite,
    write_suite,
)
from ridgeline.checkpoints.runs.vacant import refuse_foreign
from ridgeline.graph.session.options import RUNS
from ridgeline.graph.session.outputs import SearchResult
from ridgeline.graph.session.problem import find_problem
from ridgeline.problems.spec import FILE_NAME as PROBLEM_FILE
from ridgeline.problems.spec import ProblemSpec
from ridgeline.tools.errors import DeviceError, EngineError, ProblemError, RunError, UncoveredError
from ridgeline.tools.machine.logs import logger_of

logger = logger_of(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """End of one search of a suite: its result, and `is_last` when a signal asked the suite to end too."""

    result: SearchResult | None  # None: cut short by a second signal
    is_last: bool = False


SearchOne = Callable[[Row, Path, bool], Ended]
"""Searches a row's problem in a run folder; the flag says that the folder holds a search to go on with."""

REFUSALS = (ProblemError, DeviceError, UncoveredError)
"""Errors that concern one problem: a row of the suite. Every other InputError concerns all searches and ends it."""

OnRow = Callable[[int, Row], None]


def new_suite(folder: Path, problems: Sequence[str], options: dict[str, Any]) -> Suite:
    """Return the plan of a new suite; nothing is written.

    Raises:
        InputError: a problem that cannot be loaded, none at all, or a folder that holds a suite or other things.
    """
    if (folder / FILE_NAME).exists():
        words = shlex.join(["--resume", str(folder)])
        raise RunError(f"{folder}: holds a suite already; go on with it by {words}, or choose another --out")
    refuse_foreign(folder, {LOCK_NAME}, "suite's; name a new --out")
    specs = [spec for name in problems for spec in _specs(name)]
    digits = max(2, len(str(len(specs))))
    rows = tuple(
        Row(name=spec.name, problem=str(spec.path), run=f"{number:0{digits}}-{spec.name}")
        for number, spec in enumerate(specs, start=1)
    )
    return Suite(options=options, rows=rows)


def _specs(name: str) -> Iterator[ProblemSpec]:
    """Yield the problem that `name` means; of a folder without a problem.yaml, every problem below it."""
    folder = Path(name)
    if not folder.is_dir() or (folder / PROBLEM_FILE).exists():
        yield find_problem(name)
        return
    found = sorted(folder.rglob(PROBLEM_FILE), key=lambda path: _natural(str(path)))
    if not found:
        raise ProblemError(f"{folder}: no {PROBLEM_FILE} in it or below; name a problem or a folder of problems")
    yield from (find_problem(path) for path in found)


def _natural(text: str) -> list[tuple[int, str]]:
    """Return a sort key by which kb1_9 comes before kb1_10."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", text)]


def default_suite_dir(runs_dir: Path = RUNS) -> Path:
    """Return a new folder's path: `runs/suite-TIME-PROCESS`."""
    return runs_dir / f"suite-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"


def run_suite(
    folder: Path,
    planned: Suite | None,
    search: SearchOne,
    on_row: OnRow,
    *,
    options: dict[str, Any] | None = None,
) -> Suite:
    """Run the searches that are left of a suite and return the suite; suite.json holds its progress at any instant.

    Args:
        folder: the suite's folder, locked until the end; made when missing.
        planned: a new suite; None for the suite that the folder holds.
        search: runs one search.
        on_row: gets each row before its search begins and after the search ended.
        options: take the place of the options that the folder's suite began with.

    Raises:
        InputError: an error that every search would meet (none of REFUSALS): a model's key, a disk, a sandbox. The suite
            can be resumed.
    """
    with lock_run(folder):
        suite = replace(planned or read_suite(folder), state=SuiteState.RUNNING)
        suite = suite if options is None else replace(suite, options=options)
        _store(folder, suite)
        try:
            for index, row in enumerate(suite.rows):
                if row.state in DONE:
                    continue
                suite = suite.with_row(index, replace(row, state=RowState.RUNNING))
                _store(folder, suite)
                on_row(index, suite.rows[index])
                ended, is_last = _search(folder, suite.rows[index], search)
                suite = suite.with_row(index, ended)
                on_row(index, ended)
                _store(folder, suite)
                if is_last:
                    break
        finally:
            rows = tuple(_halted(row) for row in suite.rows)
            is_over = all(row.state in ENDED for row in rows)
            suite = replace(suite, rows=rows, state=SuiteState.FINISHED if is_over else SuiteState.STOPPED)
            _store(folder, suite)
    return suite


def _store(folder: Path, suite: Suite) -> None:
    """Write suite.json, and the page that shows it."""
    from ridgeline.checkpoints.report.suite_page import write_suite_page

    write_suite(folder, suite)
    write_suite_page(folder, suite)


def _halted(row: Row) -> Row:
    """Return a row of a suite that ends; one whose search an error cut short is stopped."""
    return replace(row, state=RowState.STOPPED) if row.state is RowState.RUNNING else row


def holds_search(run_dir: Path) -> bool:
    """Say whether a row's run folder holds a search to go on with."""
    begun = read_run(run_dir)
    return begun is not None and begun.has_begun


def _search(folder: Path, row: Row, search: SearchOne) -> tuple[Row, bool]:
    """Run one search and return its row, and whether the suite ends after it."""
    run_dir = folder / row.run
    is_begun = holds_search(run_dir)
    try:
        ended = search(row, run_dir, is_begun)
    except REFUSALS as error:
        logger.info("%s: refused: %s", row.name, error)
        return replace(row, state=RowState.REFUSED, reason=str(error)), False
    except EngineError as error:
        logger.info("%s: failed: %s", row.name, error)
        return replace(row, state=RowState.FAILED, reason=str(error)), False
    result = ended.result
    if result is None:
        return replace(row, state=RowState.STOPPED), True
    return row.ended(result.report, state=result.state, certified=result.certified), ended.is_last
