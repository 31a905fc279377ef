"""What limits a timed kernel, in words that a person or a model can act on.

Measured: achieved bandwidth and arithmetic against the floor. Static: what the compiler made of the loops, from the
shared object's disassembly (read by objdump in the sandbox, never loaded). On a GPU the code of each kernel, and the
hardware's counters where Nsight Compute works (gpu_profile.py).
"""

from __future__ import annotations

import platform
from pathlib import Path

from ridgeline.tools.profile.cpu_code import LoopFacts, read_listing
from ridgeline.tools.profile.gpu_profile import look_into
from ridgeline.tools.profile.objdump import objdump
from ridgeline.tools.profile.vendor_code import cpu_work, read_links, with_links
from ridgeline.tools.records.problem import Description, Device
from ridgeline.tools.records.results import Floor, OwnWork, Profile, Timing
from ridgeline.tools.records.vocabulary import DeviceKind
from ridgeline.tools.sandbox.rules import Confined
from ridgeline.tools.sandbox.sandbox import Sandbox
from ridgeline.tools.wording import counted

NEAR_FLOOR = 0.9
FAULTS_WORTH_A_NOTE = 16.0  # a page each: 64 KiB that the kernel obtains anew in every call
LARGEST_LISTING_BYTES = 32 << 20


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

    For a GPU, `build_log` is what the compiler said, and `runner` how the candidate's runner is confined: with it the
    candidate is run alone under Nsight Compute; hold the device's lock.
    """
    seconds = timing.median_ms / 1e3 if timing and timing.median_ms else None
    notes, details = _measured_notes(description, floor, timing), dict[str, float]()
    own_work: OwnWork | None = None
    if library is None or not library.exists():
        notes.append("no shared object to look at")
    elif device.kind is DeviceKind.CUDA:
        found = look_into(
            device=device,
            description=description,
            floor=floor,
            library=library,
            build_log=build_log,
            sandbox=sandbox,
            runner=runner,
        )
        notes, details = [*notes, *found.notes], found.details
        own_work = with_links(found.own_work, read_links(library, sandbox)[0])
    else:
        facts, missing = _loop_facts(library, sandbox)
        notes += missing
        if facts is not None:
            notes += loop_notes(facts, device=device, is_memory_bound=floor is None or floor.bound == "memory")
            details = _details(facts, timing)
        own_work = cpu_work(*read_links(library, sandbox))
    return Profile(
        bound=floor.bound if floor else "memory",
        fraction_of_floor=floor.floor_ms / 1e3 / seconds if floor and seconds else None,
        achieved_gbps=description.compulsory_bytes / seconds / 1e9 if seconds else None,
        achieved_gflops=description.flops / seconds / 1e9 if seconds and description.flops else None,
        notes=tuple(notes),
        details=details,
        own_work=own_work,
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


# ------------------------------------------------------------------------------------------------------------- code


def _loop_facts(library: Path, sandbox: Sandbox) -> tuple[LoopFacts | None, list[str]]:
    """Return what the loops hold, or why that is unknown."""
    if platform.machine() != "x86_64":
        return None, [f"the instruction mix is read on x86-64 only, not on {platform.machine()}"]
    listing, problem = objdump(library, sandbox, "-d", "--no-show-raw-insn", listing_bytes=LARGEST_LISTING_BYTES)
    return (None, [f"the instruction mix is unknown: {problem}"]) if problem else (read_listing(listing), [])


def loop_notes(facts: LoopFacts, *, device: Device, is_memory_bound: bool) -> list[str]:
    """Return what to change in the code, most rewarding first."""
    notes = [*_math_notes(facts), *_vector_notes(facts, device)]
    if not facts.uses_openmp and device.cores > 1:
        notes.append(
            f"no OpenMP region: one of {device.cores} cores is used; share the rows with `#pragma omp parallel for`"
        )
    if facts.streaming_stores:
        notes.append(f"{facts.streaming_stores} streaming store instruction(s): outputs bypass the cache")
    elif is_memory_bound and facts.plain_vector_stores:
        notes.append(
            "plain stores only: each output line is read from memory before it is overwritten; for an output that is "
            "not read again, streaming stores (_mm512_stream_ps on 64-byte aligned addresses, then _mm_sfence) save that"
        )
    if facts.gathers:
        notes.append(
            f"{counted(facts.gathers, 'gather instruction')} in loops: strided or indexed loads; make the inner index "
            "contiguous"
        )
    if facts.spills:
        notes.append(
            f"{facts.spills} vector register spill(s) or reload(s) in innermost loops: too many live values; unroll less "
            "or split the loop"
        )
    return notes


def _math_notes(facts: LoopFacts) -> list[str]:
    notes = []
    if facts.scalar_math and not facts.vector_math:
        notes.append(
            f"calls {_names(facts.scalar_math)} once per element: not vectorised; write the function inline as a polynomial "
            "or give the loop `#pragma omp simd` on a plain, non-aliasing index"
        )
    if facts.vector_math:
        notes.append(
            f"calls libm's vector functions {_names(facts.vector_math)}: every vector register is saved around such a call; "
            "an inline polynomial with the accuracy that fp32 needs is usually faster"
        )
    return notes


def _vector_notes(facts: LoopFacts, device: Device) -> list[str]:
    if not facts.loops:
        return ["no loop with floating-point arithmetic was found in the compiled code"]
    if not facts.widest_bits:
        return [
            "no floating-point loop is vectorised: check for aliasing pointers (__restrict), branches or early exits"
        ]
    share = facts.share_of(facts.widest_bits)
    notes = [
        f"vectorised with {facts.widest_bits}-bit registers ({share:.0%} of the loops' floating-point instructions)"
    ]
    if facts.widest_bits < 512 and "avx512" in _cpu_flags():
        notes.append("this processor has 512-bit registers, which the loops do not use")
    if facts.scalar_loops:
        notes.append(
            f"{facts.scalar_loops} of {facts.loops} floating-point loops are scalar: remainders, or second versions for "
            "pointers that might overlap (declare pointers __restrict, make row lengths constexpr multiples of 16)"
        )
    if facts.divisions:
        notes.append(
            f"{facts.divisions} division(s) or square root(s) in innermost loops: multiply by a reciprocal computed once"
        )
    return notes


def _names(counts: dict[str, int]) -> str:
    return ", ".join(sorted(counts))


def _cpu_flags() -> str:
    return Path("/proc/cpuinfo").read_text().split("\n\n", 1)[0]


def _details(facts: LoopFacts, timing: Timing | None) -> dict[str, float]:
    details = {
        "loops": facts.loops,
        "scalar_loops": facts.scalar_loops,
        "widest_vector_bits": facts.widest_bits,
        "widest_vector_share": facts.share_of(facts.widest_bits),
        "scalar_math_calls": sum(facts.scalar_math.values()),
        "vector_math_calls": sum(facts.vector_math.values()),
        "streaming_stores": facts.streaming_stores,
        "plain_vector_stores": facts.plain_vector_stores,
        "gathers": facts.gathers,
        "spills": facts.spills,
        "divisions": facts.divisions,
    }
    if timing and timing.page_faults_per_call is not None:
        details["page_faults_per_call"] = timing.page_faults_per_call
    return {name: float(value) for name, value in details.items()}
