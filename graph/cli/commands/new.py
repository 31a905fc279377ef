"""`ridgeline new`: a problem made of the user's own module."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path

from ridgeline.problems.new import new_problem


def execute(args: argparse.Namespace) -> int:
    """Write DIR/NAME/problem.yaml and say what to do with it."""
    path = new_problem(args.name, Path(args.reference), Path(args.out))
    sys.stdout.write(f"wrote {path}\nsearch it with: {shlex.join(['ridgeline', 'run', str(path)])}\n")
    return 0
