"""The package run by Python."""

from __future__ import annotations

import subprocess
import sys


def test_python_runs_the_package_as_the_command() -> None:
    done = subprocess.run([sys.executable, "-m", "ridgeline", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("ridgeline ")
