"""The environment of the processes that compute: the same threads and the same allocator for judge and runner."""

from __future__ import annotations

from ridgeline.tools.hardware import measurement_cores
from ridgeline.tools.records import Device, DeviceKind


def compute_environment(device: Device) -> dict[str, str]:
    """Return the variables that make a comparison fair, and on a GPU let a process see that GPU alone.

    Passive waiting: an idle side's spinning threads take the other's cores. No mmap and no trimming in malloc: eager
    torch otherwise page-faults through every temporary of 32 MiB and looks 6 x slower than it is.
    """
    on_gpu = device.kind is DeviceKind.CUDA
    visible = {"CUDA_VISIBLE_DEVICES": device.uuid, "CUDA_CACHE_DISABLE": "1"} if on_gpu else {}
    return visible | {
        "OMP_NUM_THREADS": str(len(measurement_cores()) if on_gpu else device.cores),
        "OMP_WAIT_POLICY": "passive",
        "OMP_DYNAMIC": "false",
        "MALLOC_MMAP_MAX_": "0",
        "MALLOC_TRIM_THRESHOLD_": "-1",
    }
