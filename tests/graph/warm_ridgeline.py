"""`ridgeline` whose judges begin with their imports done: what is left of a command is its own work."""

from __future__ import annotations

import sys

from ridgeline.graph import cli
from tests.warm_judge import WarmJudges


def main() -> int:
    """Run the command line of this process."""
    with WarmJudges().serving():
        return cli.main(sys.argv[1:])
