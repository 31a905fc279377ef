"""`ridgeline clean`: old runs and the build cache."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ridgeline.checkpoints.clean import choose_old, list_runs, remove_run
from ridgeline.tools.build.cache import BuildCache, CacheUse
from ridgeline.tools.machine.places import default_cache_dir
from ridgeline.tools.wording import counted

SECONDS_A_DAY = 86400


def execute(args: argparse.Namespace) -> int:
    """Remove what was asked for and say what went; without a limit it only lists."""
    runs = list_runs(Path(args.runs))
    older_s = None if args.older_than_days is None else args.older_than_days * SECONDS_A_DAY
    doomed = choose_old(runs, older_than_s=older_s, keep=args.keep)
    for run in runs:
        verb = "keep" if run not in doomed else "would remove" if args.dry_run else "remove"
        note = ", in use" if run.is_running else ""
        sys.stdout.write(f"{verb:<12} {run.path}  {run.state}{note}, {_megabytes(run.size_bytes)}\n")
    if not args.dry_run:
        for run in doomed:
            remove_run(run.path)
    _clean_cache(args)
    return 0


def _clean_cache(args: argparse.Namespace) -> None:
    cache = BuildCache(default_cache_dir())
    if args.cache and not args.dry_run:
        cleared = cache.clear()
        sys.stdout.write(f"{'remove':<12} build cache: {_size(cleared.removed)}\n")
        if cleared.in_use.entries:
            sys.stdout.write(f"{'keep':<12} build cache: {_size(cleared.in_use)}, used within the last hour\n")
    else:
        verb = "would remove" if args.cache else "keep"
        sys.stdout.write(f"{verb:<12} build cache: {_size(cache.use())} (--cache empties it)\n")


def _size(use: CacheUse) -> str:
    return f"{counted(use.entries, 'build')}, {_megabytes(use.size_bytes)}"


def _megabytes(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:.1f} MB"
