"""A kernel's distance from its device's ceilings, by its own work where that was counted.

Where it was not, the operations are the reference's, and the sentence says so: a kernel with another algorithm
(Winograd, a fused or a skipped pass) does fewer, so a high figure is no argument against one.
"""

from __future__ import annotations

from ridgeline.tools.profile.executed import ExecutedWork
from ridgeline.tools.records.baselines import Floor
from ridgeline.tools.records.problem import Description
from ridgeline.tools.records.results import Timing

NEAR_FLOOR = 0.9
BUSY = 0.6
"""The share of a ceiling from which on it, and not a latency, is what limits a kernel."""
SPECIAL = "special function unit"
ALIKE = 0.1
"""Two units whose busy shares differ by less than this limit a kernel in turns, unless the first is nearly always busy."""
SATURATED = 0.85
OTHER_WORK = 0.2
"""A difference from the reference's work by this share is told."""


def reached(
    description: Description, floor: Floor | None, timing: Timing | None, executed: ExecutedWork | None
) -> list[str]:
    """Return one or two sentences, without a full stop, on the time of a kernel and what of the ceilings it reaches."""
    of_its_own = _by_its_own_work(description, floor, executed) if executed else []
    if timing is None or timing.median_ms is None:
        return ["not timed: only the code was looked at", *of_its_own]
    if floor is None:
        return [f"{timing.median_ms:.4g} ms a call; no floor is known", *of_its_own]
    return _by_the_reference(floor, timing.median_ms, is_counted=bool(of_its_own)) + of_its_own


def bound_of(floor: Floor | None, executed: ExecutedWork | None) -> str:
    """Return "memory", "compute" or "latency" by the kernel's own work; where that is unknown, the problem's own bound."""
    if executed is None or floor is None:
        return floor.bound if floor else "memory"
    memory, (compute, _) = executed.gbps / floor.bandwidth_gbps, _busiest_first(executed)[0]
    if max(memory, compute) < BUSY:
        return "latency"
    return "memory" if memory >= compute else "compute"


def _busiest_first(executed: ExecutedWork) -> list[tuple[float, str]]:
    """Return how busy each unit of arithmetic is, and its name, the busiest first."""
    units = ((executed.tensor_busy, "tensor pipe"), (executed.fp32_busy, "fp32 pipe"), (executed.special_busy, SPECIAL))
    return sorted(units, reverse=True)


def _limiting_units(executed: ExecutedWork) -> str:
    """Return the words on what limits a kernel that arithmetic limits: its busiest unit, or two that wait for each other."""
    (busy, unit), (next_busy, next_unit), _ = _busiest_first(executed)
    if busy < SATURATED and busy - next_busy < ALIKE:
        both = f"it and the {next_unit} ({next_busy:.0%}) wait for each other"
        return f"{both}: let other warps, or the next tile, use one meanwhile"
    return "special functions (exp, …) limit it" if unit == SPECIAL else f"the {unit} limits it"


def _by_the_reference(floor: Floor, median_ms: float, *, is_counted: bool) -> list[str]:
    if floor.floor_ms / median_ms >= NEAR_FLOOR:
        return [
            (
                f"{median_ms:.4g} ms a call, {floor.floor_ms / median_ms:.0%} of the memory floor's rate: only moving fewer "
                "bytes or using caches across calls could be faster"
            )
        ]
    if floor.bound == "compute":
        return _arithmetic(floor, median_ms, is_counted=is_counted)
    why = (
        "" if is_counted else ": time goes into further memory traffic, or into arithmetic that is not hidden behind it"
    )
    return [
        (
            f"{median_ms:.4g} ms a call, {median_ms / floor.floor_ms:.2g} x the memory floor: the compulsory bytes move at "
            f"{floor.floor_ms / median_ms:.0%} of the measured bandwidth{why}"
        )
    ]


def _arithmetic(floor: Floor, median_ms: float, *, is_counted: bool) -> list[str]:
    share, unit = floor.compute_floor_ms / median_ms, f"{floor.unit or 'arithmetic'} peak"
    if share > 1:
        found = (
            f"{median_ms:.4g} ms a call, less than the reference's arithmetic would take at this device's {unit} "
            f"({floor.compute_floor_ms:.4g} ms): it does fewer operations than the reference"
        )
        return [found if is_counted else f"{found}, and how near its own come to that peak is not known"]
    found = f"{median_ms:.4g} ms a call: the reference's arithmetic in that time is {share:.0%} of this device's {unit}"
    if is_counted:
        return [found]
    return [f"{found}; a kernel that does fewer operations than the reference reaches less of it, and has more room"]


def _by_its_own_work(description: Description, floor: Floor | None, executed: ExecutedWork) -> list[str]:
    if floor is None:
        return []
    busy, unit = _busiest_first(executed)[0]
    rates = (
        f"by its own work it moves bytes at {executed.gbps / floor.bandwidth_gbps:.0%} of the measured bandwidth and keeps "
        f"the {unit} {busy:.0%} busy"
    )
    limits = {
        "memory": "memory limits it",
        "compute": _limiting_units(executed),
        "latency": "neither limits it, so latency does"
        + (f": warps wait mostly for {executed.waits_for}" if executed.waits_for else ""),
    }
    found = [f"{rates}: {limits[bound_of(floor, executed)]}"]
    if executed.fp32_operations is not None and description.flops:
        ratio = executed.fp32_operations / description.flops
        if abs(ratio - 1) > OTHER_WORK:
            found.append(f"it executes {ratio:.2g} x the operations of the reference")
    return found
