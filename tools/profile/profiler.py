"""The limits of a timed kernel, in words that a person or a model can act on.

Measured: the time against the device's ceilings (ceiling_shares.py) and by stage (stage_clocks.py). Static: the loops of a
CPU's library (cpu_profile.py), or the kernels of a GPU's and, where Nsight Compute works, the hardware's counters
(gpu_profile.py). paragraph.py makes one paragraph of it all; figures are in the details.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ridgeline.tools.build.stages import stage_names
from ridgeline.tools.profile.ceiling_shares import bound_of, reached
from ridgeline.tools.profile.cpu_profile import look_into_loops
from ridgeline.tools.profile.findings import Findings, Specimen
from ridgeline.tools.profile.gpu_profile import look_into_kernels
from ridgeline.tools.profile.paragraph import paragraph
from ridgeline.tools.profile.stage_clocks import StageClocks, clock_stages
from ridgeline.tools.records.baselines import Floor
from ridgeline.tools.records.problem import Description, Device
from ridgeline.tools.records.results import Build, Profile, Timing
from ridgeline.tools.records.vocabulary import DeviceKind
from ridgeline.tools.sandbox.rules import Confined
from ridgeline.tools.sandbox.sandbox import Sandbox

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
    source: str = "",
    profile_build: Build | None = None,
    clocked: Confined | None = None,
) -> Profile:
    """Return where a kernel's time goes; figures are None for a kernel that was not timed.

    `build_log` and `runner` are for a GPU: see Specimen. `source` with its `profile_build` tells lines and stages, and
    `clocked` is how that build's runner is confined. The candidate is run alone, under Nsight Compute with `runner` and
    by itself with `clocked`, so the caller holds the device's lock.
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
            source=source,
            profile_library=_library(profile_build),
        )
        found = _LOOKS[device.kind](specimen)
    clocks = _clocks(source, profile_build, clocked, device=device, description=description, sandbox=sandbox)
    median_ms = timing.median_ms if timing else None
    seconds = median_ms / 1e3 if median_ms else None
    near = reached(description, floor, timing, found.executed)
    notes = (*([clocks.missing] if clocks.missing else []), *_fault_notes(timing), *found.notes)
    return Profile(
        bound=bound_of(floor, found.executed),
        fraction_of_floor=floor.floor_ms / 1e3 / seconds if floor and seconds else None,
        achieved_gbps=description.compulsory_bytes / seconds / 1e9 if seconds else None,
        achieved_gflops=description.flops / seconds / 1e9 if seconds and description.flops else None,
        notes=(*near, *notes, *found.rates),
        details=found.details,
        own_work=found.own_work,
        paragraph=paragraph(near, clocks, notes, found.own_work, median_ms),
        stages=clocks.stages,
        median_ms=median_ms,
    )


def _clocks(
    source: str,
    build: Build | None,
    clocked: Confined | None,
    *,
    device: Device,
    description: Description,
    sandbox: Sandbox,
) -> StageClocks:
    """Return the times of the source's stages; nothing is missing where it names none."""
    names, library = stage_names(source), _library(build)
    if not names or build is None:
        return StageClocks()
    if library is None or clocked is None:
        return StageClocks(
            missing=f"the stages are unknown: the build with clocks failed ({build.reason or 'no library'})"
        )
    return clock_stages(
        clocked, names, signature=description.signature, library=library, device=device, sandbox=sandbox
    )


def _library(build: Build | None) -> Path | None:
    return Path(build.library_path) if build and build.library_path else None


def _fault_notes(timing: Timing | None) -> list[str]:
    faults = (timing.page_faults_per_call if timing else None) or 0.0
    if faults <= FAULTS_WORTH_A_NOTE:
        return []
    return [
        (
            f"{faults:.0f} page faults in every call: memory is allocated and given back each time; use the workspace or "
            "static thread-local buffers instead"
        )
    ]
