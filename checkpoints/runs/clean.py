"""Listing and removing old runs. A run that a process holds is never touched."""

from __future__ import annotations

import os
import shutil
import time
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ridgeline.checkpoints.archive import FILE_NAME, Archive
from ridgeline.checkpoints.runs.folders import is_locked, is_unbegun, lock_run, read_run, state_now
from ridgeline.checkpoints.storage.errors import storage_errors
from ridgeline.tools.errors import RunError, StorageError

SEVERAL = "several searches"
"""State of a folder whose archive holds several, as `ridgeline merge` writes it. It is no run, and never removed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    """One run folder as `ridgeline clean` lists it."""

    path: Path
    problem: str
    state: str  # "damaged" when its archive cannot be read, "never begun" when it says nothing of a search, or SEVERAL
    size_bytes: int
    age_s: float  # since anything in it last changed
    is_running: bool


def list_runs(runs_dir: Path) -> list[StoredRun]:
    """Return every run folder below `runs_dir`, the longest unused first."""
    folders = [f for f in runs_dir.iterdir() if (f / FILE_NAME).is_file()] if runs_dir.is_dir() else []
    return sorted((_describe(folder) for folder in folders), key=lambda run: (-run.age_s, run.path.name))


def _describe(folder: Path) -> StoredRun:
    stats = [f.lstat() for f in folder.rglob("*") if not f.is_dir()]
    age_s = time.time() - max((s.st_mtime for s in stats), default=time.time())
    running = is_locked(folder)
    known = read_run(folder)
    return StoredRun(
        path=folder,
        problem=known.problem_name if known else "",
        state=state_now(folder, known) if known else _state_without_record(folder),
        size_bytes=sum(s.st_size for s in stats),
        age_s=age_s,
        is_running=running,
    )


def _state_without_record(folder: Path) -> str:
    if is_unbegun(folder):
        return "never begun"
    with suppress(StorageError), Archive.open_read_only(folder) as archive:
        if len(archive.database.query("SELECT 1 FROM runs LIMIT 2")) > 1:
            return SEVERAL
    return "damaged"


def choose_old(runs: list[StoredRun], *, older_than_s: float | None = None, keep: int | None = None) -> list[StoredRun]:
    """Return the runs to remove: unused for longer than `older_than_s`, and not among their problem's `keep` newest.

    A limit of None does not restrict; without either limit no run is chosen. A running run is never chosen, nor counted
    among those kept, because it may end without a kernel.
    """
    if older_than_s is None and keep is None:
        return []
    runs = [run for run in runs if run.state != SEVERAL]
    kept = _newest_of_each(runs, keep or 0)
    return [r for r in runs if not r.is_running and r not in kept and (older_than_s is None or r.age_s > older_than_s)]


def _newest_of_each(runs: list[StoredRun], keep: int) -> list[StoredRun]:
    by_problem: dict[str, list[StoredRun]] = defaultdict(list)
    for run in sorted((r for r in runs if not r.is_running), key=lambda run: run.age_s):
        by_problem[run.problem].append(run)
    return [run for group in by_problem.values() for run in group[:keep]]


def remove_run(run_dir: Path) -> None:
    """Remove one run folder with all its files.

    Raises:
        RunError: the folder is no run's, or a process holds it.
        StorageError: the folder cannot be removed.
    """
    if not (run_dir / FILE_NAME).is_file():
        raise RunError(f"{run_dir}: not a run folder (no {FILE_NAME}); nothing removed")
    with lock_run(run_dir):
        remove_held(run_dir)


def remove_held(run_dir: Path) -> None:
    """Remove the folder of a run whose lock the caller holds.

    It is renamed first. So no process begins to use a half-removed run, and none that reads it can add a file of SQLite's
    meanwhile, which would keep the folder.

    Raises:
        StorageError: the folder cannot be removed.
    """
    doomed = run_dir.with_name(f".removed-{run_dir.name}-{os.getpid()}")
    with storage_errors(run_dir):
        os.rename(run_dir, doomed)
    with storage_errors(doomed):
        shutil.rmtree(doomed)
