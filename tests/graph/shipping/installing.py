"""Shipping a run, installing the package, and using it in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from ridgeline.graph.shipping.ship import ShipRequest, ship

SCENARIO = Path(__file__).parent / "scenario.py"


def install(out: Path, site: Path) -> None:
    """Install a shipped package as pip does it without a network."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-build-isolation", "--no-deps"]
    done = subprocess.run([*command, "--target", str(site), str(out)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def shipped_site(folder: Path, run: Path, **wanted: Any) -> Path:
    """Ship a run and return the folder that its package is installed in."""
    ship(ShipRequest(run=run, out=folder / "out", **wanted))
    install(folder / "out", folder / "site")
    return folder / "site"


def python(site: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run Python beside an installed package, with a cache of its own and without Ridgeline."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    own = {"PYTHONPATH": str(site), "RIDGELINE_KERNEL_CACHE": str(site.parent / "cache"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, *words]
    return subprocess.run(command, capture_output=True, text=True, env=clean | own | environment, cwd=site)


def scenario(site: Path, *parts: str, **environment: str) -> dict[str, Any]:
    """Run the scenario and return what it found."""
    done = python(site, str(SCENARIO), *parts, **environment)
    assert done.returncode == 0, done.stderr + done.stdout
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found
