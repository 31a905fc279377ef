"""Shipping a run, installing the package, and using it in a process of its own, which begins with torch imported."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.warm_python import WarmPython

from ridgeline.graph.shipping.ship import ShipRequest, ship

SCENARIO = Path(__file__).parent / "scenario.py"
QUICK_INDUCTOR = {"TORCHINDUCTOR_VEC_ISA_OK": "1", "TORCHINDUCTOR_COMPILE_THREADS": "1"}
"""Neither builds a program to try the CPU's vectors, nor starts processes that import torch to compile beside it."""
_PYTHON = WarmPython("torch._dynamo", **QUICK_INDUCTOR)  # what an operator of its own makes every package import


def install(out: Path, site: Path) -> None:
    """Install a shipped package as pip does it without a network."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-build-isolation", "--no-deps"]
    done = subprocess.run([*command, "--target", str(site), str(out)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def shipped_site(folder: Path, run: Path, **wanted: Any) -> Path:
    """Ship a run and return the folder that its package is installed in."""
    install(shipped(folder, run, **wanted), folder / "site")
    return folder / "site"


def shipped(folder: Path, run: Path, **wanted: Any) -> Path:
    """Ship a run and return the package's folder, from which it can be imported as it is."""
    ship(ShipRequest(run=run, out=folder / "out", **wanted))
    return folder / "out"


def python(site: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run Python beside an installed package, with a cache of its own and without Ridgeline."""
    return _PYTHON.run(words, env=environment_of(site) | environment, cwd=site)


def environment_of(site: Path) -> dict[str, str]:
    """Return the variables of a Python beside an installed package."""
    own = {"PYTHONPATH": str(site), "RIDGELINE_KERNEL_CACHE": str(site.parent / "cache"), "OMP_NUM_THREADS": "1"}
    return without_python() | own


def without_python() -> dict[str, str]:
    """Return this process's variables without those that tell Python where Ridgeline is."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def python_alone(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run Python where nothing is installed beside it."""
    return _PYTHON.run(words, env=without_python(), cwd=cwd)


def scenario(site: Path, *parts: str, **environment: str) -> dict[str, Any]:
    """Run the scenario and return what it found."""
    done = python(site, str(SCENARIO), *parts, **environment)
    assert done.returncode == 0, done.stderr + done.stdout
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found
