"""`ridgeline problems`: the problems that ship with Ridgeline."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from ridgeline.problems.spec import load_problem, shipped_problems


def execute(args: argparse.Namespace) -> int:
    """Print a table, or one JSON array with `--json`."""
    rows = [_row(name, path) for name, path in sorted(shipped_problems().items())]
    if args.json:
        sys.stdout.write(json.dumps(rows, indent=2) + "\n")
        return 0
    table = Table("problem", "interface", "targets", "tolerance", "seed kernels", box=None, pad_edge=False)
    for row in rows:
        table.add_row(
            row["name"], row["interface"], " ".join(row["targets"]), row["tolerance"], " ".join(row["seed_kernels"])
        )
    console = Console(highlight=False)
    console.print(table)
    console.print("\nridgeline run NAME searches one of these; ridgeline new makes one of your own.", soft_wrap=True)
    return 0


def _row(name: str, path: Path) -> dict[str, Any]:
    spec = load_problem(path)
    return {
        "name": name,
        "path": str(path),
        "interface": spec.interface,
        "targets": list(spec.targets),
        "tolerance": spec.tolerance,
        "seed_kernels": [stem for kind in spec.targets for stem, _ in spec.seed_sources(kind)],
    }
