"""`ridgeline clean`: old runs and the build cache."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ridgeline.checkpoints.runs.clean import StoredRun, choose_old, list_runs, remove_run
from ridgeline.tools.build.cache import BuildCache, CacheUse
from ridgeline.tools.errors import RunError, StorageError
from ridgeline.tools.machine.places import default_cache_dir
from ridgeline.tools.records.printable import printable
from ridgeline.tools.wording import counted

SECONDS_A_DAY = 86400


def execute(args: argparse.Namespace) -> int:
    """Remove what was asked for and say what went; without a limit it only lists."""
    folder = Path(args.runs)
    if folder.exists() and not folder.is_dir():
        raise RunError(f"{folder}: is a file, not a folder of runs; name the folder that holds them")
    runs = list_runs(folder)
    older_s = None if args.older_than_days is None else args.older_than_days * SECONDS_A_DAY
    doomed = choose_old(runs, older_than_s=older_s, keep=args.keep)
    refused = [said for run in runs if (said := _line(run, is_doomed=run in doomed, is_dry=args.dry_run))]
    _clean_cache(args)
    if refused:
        raise StorageError(f"{counted(len(refused), 'run')} of {len(doomed)} could not be removed: {refused[0]}")
    return 0


def _line(run: StoredRun, *, is_doomed: bool, is_dry: bool) -> str:
    """Remove a run that is to go, print what became of it, and return why it could not be removed, or ""."""
    verb, refused = "would remove" if is_doomed and is_dry else "keep", ""
    if is_doomed and not is_dry:
        try:
            remove_run(run.path)
            verb = "removed"
        except RunError as error:
            verb, refused = "not removed", str(error)
    note = ", in use" if run.is_running else ""
    path = printable(str(run.path))  # a folder may be a stranger's
    sys.stdout.write(f"{verb:<12} {path}  {run.state}{note}, {_megabytes(run.size_bytes)}\n")
    return refused


def _clean_cache(args: argparse.Namespace) -> None:
    cache = BuildCache(default_cache_dir())
    if args.cache and not args.dry_run:
        cleared = cache.clear()
        sys.stdout.write(f"{'removed':<12} build cache: {_size(cleared.removed)}\n")
        if cleared.in_use.entries:
            why = "used within the last hour or by a running search"
            sys.stdout.write(f"{'keep':<12} build cache: {_size(cleared.in_use)}, {why}\n")
    else:
        verb = "would remove" if args.cache else "keep"
        sys.stdout.write(f"{verb:<12} build cache: {_size(cache.use())} (--cache empties it)\n")


def _size(use: CacheUse) -> str:
    return f"{counted(use.entries, 'build')}, {_megabytes(use.size_bytes)}"


def _megabytes(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:.1f} MB"
