"""The list of runs that `ridgeline show` prints without a run's name."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.history.over_pytorch import speedup_vs_best
from ridgeline.checkpoints.report.wording import (
    best_configuration,
    best_of_torch_doubt,
    doubt,
    ending,
    name_of_place,
)
from ridgeline.checkpoints.result import choose_best
from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.checkpoints.runs.folders import read_run, run_folders, state_now
from ridgeline.checkpoints.storage.strict_json import finite
from ridgeline.checkpoints.stored_certificate import certifies
from ridgeline.graph.session.options import RUNS
from ridgeline.tools.errors import StorageError
from ridgeline.tools.records.vocabulary import RunState
from ridgeline.tools.wording import ratio_words

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedRun:
    """A run's entry of `show --json`."""

    run: str
    problem: str
    state: str
    best_id: str | None
    speedup: float | None  # eager / best
    speedup_ci95: list[float] | None
    speedup_vs_best: float | None  # the fastest of PyTorch's configurations / best
    certified: bool
    error: str | None  # what is damaged


def print_runs(console: Console, *, as_json: bool) -> int:
    """Print every run of ./runs, oldest first, with its problem, how it ended and its best kernel's figure."""
    found = [(run, record) for run in run_folders(RUNS) if (record := read_run(run)) is not None]
    listed = [_entry(run, record) for run, record in found]
    if as_json:
        sys.stdout.write(json.dumps(finite([asdict(entry) for entry in listed]), indent=2) + "\n")
        return 0
    for entry, (_, record) in zip(listed, found, strict=True):
        words = f"{entry.run}  {_state_words(entry.state, record.stop_reason)}{_best_words(entry)}"
        console.print(words, markup=False, soft_wrap=True)
    if not found:
        console.print(f"there is no run in {RUNS}; ridgeline run quickstart begins one", markup=False, soft_wrap=True)
    return 0


def _entry(run: Path, record: RunRecord) -> ListedRun:
    """Return a run's entry, with the figures that were read before anything damaged."""
    best, over_best, certified, fault = None, None, False, None
    try:
        with Archive.open_read_only(run) as archive:
            best = choose_best(archive)
            over_best = speedup_vs_best(best.evaluation, archive.baselines()) if best else None
            certified = certifies(archive.certificate(), best.candidate.id if best else None)
    except StorageError as error:  # of one run among others
        fault = str(error)
    return ListedRun(
        run=run.name,
        problem=record.problem_name,
        state=state_now(run, record),
        best_id=best.candidate.id if best else None,
        speedup=best.evaluation.speedup if best else None,
        speedup_ci95=best.evaluation.speedup_interval if best else None,
        speedup_vs_best=over_best,
        certified=certified,
        error=fault,
    )


def _state_words(state: str, reason: str | None) -> str:
    """Return how a search ended; of one that runs that alone, since the list does not show what it found."""
    return "still running" if state == RunState.RUNNING and not reason else ending(state, reason)


def _best_words(entry: ListedRun) -> str:
    """Return "; winner 2.29x eager (1.80 to 3.38): r3i1v0a0t1", what is damaged, "" of a run that has no right kernel."""
    if entry.error:
        return f"; {entry.error}"
    if entry.speedup is None:
        return ""
    place = name_of_place(entry.state, certified=entry.certified)
    figure = ratio_words(entry.speedup, entry.speedup_ci95, unit="eager")
    doubts = (
        doubt(entry.speedup, entry.speedup_ci95, certified=entry.certified),
        best_of_torch_doubt(entry, f"PyTorch's {best_configuration()}"),
    )
    told = "; ".join(words for words in doubts if words)
    return f"; {place} {figure}: {entry.best_id}{f' ({told})' if told else ''}"
