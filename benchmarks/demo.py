"""`make demo` as a new user meets it: a fresh clone in a new folder, set-up included.

PYTHONPATH=src python benchmarks/demo.py
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from pathlib import Path

from result import write_result

ROOT = Path(__file__).parents[1]
KEPT = ("state", "rounds", "candidates", "tuned", "best", "baselines", "floor_ms", "wall_s", "history")


def main() -> None:
    """Clone, run, and write how long it took and what was found."""
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder) / "ridgeline"
        subprocess.run(["git", "clone", "-q", str(ROOT), str(clone)], check=True)
        began = time.monotonic()
        subprocess.run(["make", "demo"], cwd=clone, check=True)
        total_s = time.monotonic() - began
        (run,) = (clone / "runs").iterdir()
        report = json.loads((run / "result.json").read_text())
        certificate = json.loads((run / "certificate.json").read_text())
    figures = {key: report[key] for key in KEPT}
    path = write_result("demo", {"total_s": total_s, "certified": certificate.get("passed"), **figures})
    print(f"{total_s:.0f} s in all; {report['best']['speedup']:.2f}x eager; wrote {path}")


if __name__ == "__main__":
    main()
