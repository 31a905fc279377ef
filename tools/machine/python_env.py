"""The commands of the Python processes that Ridgeline starts, and their environments: imports, folders, fair computing."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import ridgeline
from ridgeline.tools.machine import places
from ridgeline.tools.machine.devices import measurement_cores
from ridgeline.tools.records.problem import Device
from ridgeline.tools.records.vocabulary import DeviceKind

# No key of a model's provider may reach a process that runs beside candidates.
_PASSED = (
    "PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "XDG_CACHE_HOME", "XDG_DATA_HOME", "LD_LIBRARY_PATH", "CUDA_HOME",
    "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER",
)  # fmt: skip
_PASSED_PREFIXES = ("RIDGELINE_", "OMP_", "GOMP_", "KMP_", "MKL_")
_SPINS = "2000"
"""Turns for which a thread of GNU's OpenMP waits before it sleeps: 0.1 ms at the 50 ns that a turn takes."""
_FOLDERS = ("TMPDIR", "CUDA_HOME")


def package_folder() -> Path:
    """Return the folder of the package that runs now."""
    return Path(ridgeline.__file__).absolute().parent


def python_path() -> str:
    """Return a PYTHONPATH with which a child process finds this package and all that this process can import."""
    return _joined(path for path in sys.path if path and Path(path).is_dir())


def python_command(module: str, *words: str) -> tuple[str, ...]:
    """Return the command that runs a module of `ridgeline.tools`; with `-P` nothing in the current folder is imported."""
    return (sys.executable, "-P", "-m", f"ridgeline.tools.{module}", *words)


def clean_environment(environment: Mapping[str, str], *, cache_dir: Path) -> dict[str, str]:
    """Return the part of `environment` that an evaluator may see, and where this package and its folders lie.

    PYTHONPATH is passed on, not `sys.path`: that of a host begins with the folder of its script, whose modules are not
    Ridgeline's.
    """
    kept = {k: v for k, v in environment.items() if k in _PASSED or k.startswith(_PASSED_PREFIXES)}
    given = (path for path in environment.get("PYTHONPATH", "").split(os.pathsep) if path)
    folders = {name: os.path.abspath(kept[name]) for name in _FOLDERS if kept.get(name)}
    return kept | folders | places.for_a_child(cache_dir) | {"PYTHONPATH": _joined(given)}


def compute_environment(device: Device, *, bound: bool = False) -> dict[str, str]:
    """Return the variables that make a comparison fair, and let a process see its GPU alone, or none.

    torch's compiler asks a GPU that it sees for its properties, also to compile for a CPU: a search on the CPU would hold
    half a gigabyte of it, and a search on that GPU be refused as long.

    OpenMP's threads wait as they do for users, spinning from one operation of a model to the next: where they sleep at
    once, each parallel operation takes 40 to 80 us more. They spin for 0.1 ms, which spans the pauses between operations,
    where the usual time is 15 ms: a process that goes on after a stop would spin beside its own request. LLVM's OpenMP
    counts in ms. A side that is idle is stopped, so nobody spins beside the other. malloc neither maps nor trims: eager
    torch otherwise page-faults through every temporary of 32 MiB and takes 6 x as long.

    `bound` is for a Python runner and the judge: OpenMP's threads are bound on a CPU. In a process that
    goes on after a stop, unbound threads share a core for a whole block now and then: a copy of the reference took 1.1
    to 1.4 x eager's time, and 1.02 to 1.15 x with bound ones. A native host's threads stay unbound: those that its
    candidate starts itself would all inherit one core.
    """
    own = _gpu_environment(device) if device.kind is DeviceKind.CUDA else _cpu_environment(device, bound=bound)
    return own | {
        "GOMP_SPINCOUNT": _SPINS,
        "KMP_BLOCKTIME": "1",
        "OMP_DYNAMIC": "false",
        "MALLOC_MMAP_MAX_": "0",
        "MALLOC_TRIM_THRESHOLD_": "-1",
    }


def _cpu_environment(device: Device, *, bound: bool) -> dict[str, str]:
    binding = {"OMP_PROC_BIND": "true"} if bound else {}
    return binding | {"CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": str(device.cores)}


def _gpu_environment(device: Device) -> dict[str, str]:
    return {
        "CUDA_VISIBLE_DEVICES": device.uuid,
        "CUDA_CACHE_DISABLE": "1",
        "OMP_NUM_THREADS": str(len(measurement_cores())),
    }


def _joined(paths: Iterable[str]) -> str:
    """Return a PYTHONPATH of absolute folders, this package's first: children run in other folders."""
    absolute = (str(Path(path).absolute()) for path in paths)
    return os.pathsep.join(dict.fromkeys([str(package_folder().parent), *absolute]))
