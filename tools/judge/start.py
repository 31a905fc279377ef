"""The start of the judge's process: its command and its environment (no torch here)."""

from __future__ import annotations

import os
from pathlib import Path

from ridgeline.tools.machine.devices import measurement_cores
from ridgeline.tools.machine.python_env import compute_environment, python_command, python_path
from ridgeline.tools.records.problem import Device, Target
from ridgeline.tools.records.vocabulary import DeviceKind
from ridgeline.tools.wording import own_wording

_KEPT_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "CXX", "CC", "CUDA_HOME")


def judge_command(connection_fd: int, hang_fd: int) -> tuple[str, ...]:
    """Return the command of a judge that answers on a socket; its other descriptor gets reports of what hangs."""
    return (*python_command("judge.worker", str(connection_fd), str(os.getpid()), str(hang_fd)), *own_wording())


def judge_environment(problem: Target, cache_dir: Path) -> dict[str, str]:
    """Return the variables of a judge's process: few of ours, and where it keeps what it compiles."""
    return {
        **{name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ},
        **compute_environment(problem.device, bound=True),
        "PYTHONPATH": python_path(),
        "TORCHINDUCTOR_CACHE_DIR": str(cache_dir / "inductor"),
        "TORCHINDUCTOR_COMPILE_THREADS": _compile_threads(problem.device),
    }


def _compile_threads(device: Device) -> str:
    """Return how many processes may compile: one beside a CPU's measurement, several for a GPU's max-autotune."""
    return str(min(len(measurement_cores()), 8)) if device.kind is DeviceKind.CUDA else "1"
