"""`ridgeline merge`: archives of several runs in one file."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ridgeline.checkpoints.export import merge_archives

_ONE = {"searches": "search", "candidates": "candidate"}


def execute(args: argparse.Namespace) -> int:
    """Merge and say what came in; merging the same archive twice adds nothing."""
    added = merge_archives(Path(args.into), [Path(source) for source in args.sources])
    counts = ", ".join(f"{count} {_ONE[what] if count == 1 else what}" for what, count in added.items() if count)
    sys.stdout.write(f"{args.into}: added {counts or 'nothing new'}\n")
    return 0
