"""The environment of the processes that compute: the same threads and the same allocator for judge and runner."""

from __future__ import annotations

from ridgeline.tools.machine.devices import measurement_cores
from ridgeline.tools.records.problem import Device
from ridgeline.tools.records.vocabulary import DeviceKind


def compute_environment(device: Device, *, in_python: bool = False) -> dict[str, str]:
    """Return the variables that make a comparison fair, and on a GPU let a process see that GPU alone.

    Passive waiting: an idle side's spinning threads take the other's cores. No mmap and no trimming in malloc: eager
    torch otherwise page-faults through every temporary of 32 MiB and looks 6 x slower than it is.

    `in_python`: for a candidate in a Python runner and the judge beside it, OpenMP's threads are bound on a CPU. Those
    of a process that goes on after a stop share a core for a whole block now and then: a copy of the reference took
    1.1 to 1.4 x eager's time, and 1.02 to 1.15 x with bound ones. Not for a native host: threads that its candidate
    starts itself would all inherit one core.
    """
    on_gpu = device.kind is DeviceKind.CUDA
    visible = {"CUDA_VISIBLE_DEVICES": device.uuid, "CUDA_CACHE_DISABLE": "1"} if on_gpu else {}
    bound = {"OMP_PROC_BIND": "true"} if in_python and not on_gpu else {}
    return (
        visible
        | bound
        | {
            "OMP_NUM_THREADS": str(len(measurement_cores()) if on_gpu else device.cores),
            "OMP_WAIT_POLICY": "passive",
            "OMP_DYNAMIC": "false",
            "MALLOC_MMAP_MAX_": "0",
            "MALLOC_TRIM_THRESHOLD_": "-1",
        }
    )
