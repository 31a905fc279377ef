"""The limits of a timed kernel, in words that a person or a model can act on.

Measured: achieved bandwidth and arithmetic against the floor. Static: the loops of a CPU's library (cpu_profile.py), or
the kernels of a GPU's and, where Nsight Compute works, the hardware's counters (gpu_profile.py).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ridgeline.tools.profile.cpu_profile import look_into_loops
from ridgeline.tools.profile.findings import Findings, Specimen
from ridgeline.tools.profile.gpu_profile import look_into_kernels
from ridgeline.tools.records.problem import Description, Device
from ridgeline.tools.records.results import Floor, Profile, Timing
from ridgeline.tools.records.vocabulary import DeviceKind
from ridgeline.tools.sandbox.rules import Confined
from ridgeline.tools.sandbox.sandbox import Sandbox

NEAR_FLOOR = 0.9
FAULTS_WORTH_A_NOTE = 16.0  # a page each: 64 KiB that the kernel obtains anew in every call
_LOOKS: dict[DeviceKind, Callable[[Specimen], Findings]] = {
    DeviceKind.CPU: look_into_loops,
    DeviceKind.CUDA: look_into_kernels,
}


def profile_candidate(
    *,
    device: Device,
    description: Description,
    floor: Floor | None,
    timing: Timing | None,
    library: Path | None,
    sandbox: Sandbox,
    build_log: str = "",
    runner: Confined | None = None,
) -> Profile:
    """Return where a kernel's time goes; figures are None for a kernel that was not timed.

    `build_log` and `runner` are for a GPU: see Specimen. With `runner` the candidate is run alone under Nsight Compute,
    so the caller holds the device's lock.
    """
    found = Findings(notes=("no shared object to look at",))
    if library is not None and library.exists():
        specimen = Specimen(
            device=device,
            description=description,
            floor=floor,
            timing=timing,
            library=library,
            sandbox=sandbox,
            build_log=build_log,
            runner=runner,
        )
        found = _LOOKS[device.kind](specimen)
    seconds = timing.median_ms / 1e3 if timing and timing.median_ms else None
    return Profile(
        bound=floor.bound if floor else "memory",
        fraction_of_floor=floor.floor_ms / 1e3 / seconds if floor and seconds else None,
        achieved_gbps=description.compulsory_bytes / seconds / 1e9 if seconds else None,
        achieved_gflops=description.flops / seconds / 1e9 if seconds and description.flops else None,
        notes=(*_measured_notes(description, floor, timing), *found.notes),
        details=found.details,
        own_work=found.own_work,
    )


def _measured_notes(description: Description, floor: Floor | None, timing: Timing | None) -> list[str]:
    if timing is None or timing.median_ms is None:
        return ["not timed: only the code was looked at"]
    notes = []
    if floor is not None:
        gbps = description.compulsory_bytes / timing.median_ms / 1e6
        fraction = floor.floor_ms / timing.median_ms
        notes.append(
            f"{timing.median_ms:.4g} ms, floor {floor.floor_ms:.4g} ms: the compulsory bytes move at {gbps:.3g} of "
            f"{floor.bandwidth_gbps:.3g} GB/s ({fraction:.0%} of the memory floor)"
        )
        notes.append(_room(floor, timing.median_ms))
    faults = timing.page_faults_per_call or 0.0
    if faults > FAULTS_WORTH_A_NOTE:
        notes.append(
            f"{faults:.0f} page faults in every call: memory is allocated and given back each time; use the workspace "
            "or static thread-local buffers instead"
        )
    return notes


def _room(floor: Floor, median_ms: float) -> str:
    if floor.floor_ms / median_ms >= NEAR_FLOOR:
        return "at the memory floor: only moving fewer bytes or using caches across calls could be faster"
    if floor.compute_floor_ms > floor.floor_ms:
        return (
            f"arithmetic needs about {floor.compute_floor_ms:.4g} ms at {floor.gflops:.4g} GFLOP/s"
            f"{f' ({floor.unit})' if floor.unit else ''}, {floor.compute_floor_ms / median_ms:.0%} of that rate is "
            "reached: reduce or vectorise operations before saving memory traffic"
        )
    return (
        f"up to {median_ms / floor.floor_ms:.2g} x left: either extra memory traffic or arithmetic not hidden behind it"
    )
