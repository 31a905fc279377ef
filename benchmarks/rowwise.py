"""Offline searches for row-wise problems that do not ship, each to a certified kernel.

    PYTHONPATH=src python benchmarks/rowwise.py [PROBLEM …]

Each problem's entry is written as it ends, so a run that is cut short keeps what it has; runs of single problems merge
into one file.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from result import end_of, merge_result

import ridgeline

PROBLEMS = Path(__file__).parent / "rowwise"


def main() -> None:
    """Search for each problem and print one line for it."""
    names = sys.argv[1:] or sorted(path.parent.name for path in PROBLEMS.glob("*/problem.yaml"))
    for name in names:
        entry = search(name)
        merge_result("rowwise", {name: entry})
        print(f"{name}: {entry['state']}, certified {entry['certified']}, {entry['best']}")


def search(name: str) -> dict[str, Any]:
    """Return how one search ended."""
    with tempfile.TemporaryDirectory() as folder:
        result = ridgeline.search(PROBLEMS / name / "problem.yaml", models=["offline"], run_dir=Path(folder) / "run")
    report = result.report
    baselines_ms = {b["name"]: b["median_ms"] for b in report["baselines"]}
    return {**end_of(result), "baselines_ms": baselines_ms, "floor_ms": report["floor_ms"]}


if __name__ == "__main__":
    main()
