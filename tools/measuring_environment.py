"""The environment of the processes that compute: the same threads and the same allocator for judge and runner."""

from __future__ import annotations

from ridgeline.tools.records import Device


def compute_environment(device: Device) -> dict[str, str]:
    """Return the variables that make a CPU comparison fair.

    Passive waiting: an idle side's spinning threads take the other's cores. No mmap and no trimming in malloc: eager
    torch otherwise page-faults through every temporary of 32 MiB and looks 6 x slower than it is.
    """
    return {
        "OMP_NUM_THREADS": str(device.cores),
        "OMP_WAIT_POLICY": "passive",
        "OMP_DYNAMIC": "false",
        "MALLOC_MMAP_MAX_": "0",
        "MALLOC_TRIM_THRESHOLD_": "-1",
    }
