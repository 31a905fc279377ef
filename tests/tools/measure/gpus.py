"""A GPU to name where none is needed."""

from ridgeline.tools.records.problem import Device
from ridgeline.tools.records.vocabulary import DeviceKind


def gpu_of(arch: str = "sm_90a") -> Device:
    """Return a GPU of an architecture."""
    return Device(
        kind=DeviceKind.CUDA,
        name="NVIDIA H200",
        arch=arch,
        uuid="GPU-00000000-0000-0000-0000-000000000000",
        cores=132,
        memory_bytes=140 << 30,
        cache_bytes=60 << 20,
    )
