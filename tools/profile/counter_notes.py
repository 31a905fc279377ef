"""Nsight Compute's counters as advice to a kernel engineer, kernel by kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ridgeline.tools.profile.ceiling_shares import ALIKE, SATURATED
from ridgeline.tools.profile.gpu_counters import (
    ACHIEVED_PCT,
    CONFLICTS_OF,
    DURATION_NS,
    EFFICIENCY_OF,
    FMA_PCT,
    GLOBAL_OF,
    L2_HIT_PCT,
    LOCAL_OF,
    OCCUPANCY_LIMITS,
    POSSIBLE_PCT,
    STALL_OF,
    STALLS,
    WAVEFRONTS_OF,
    WAVES,
    KernelCounters,
    bytes_of_a_call,
    last_launches,
)  # fmt: skip

UNCOALESCED_BELOW_PCT = 60.0
"""Bytes used of each sector that was moved; a row of odd length has 80 to 90."""
CONFLICT_ABOVE = 1.5
"""Wavefronts over the fewest possible: stores and loads that meet cost a few percent without any conflict."""
NOTABLE_LOCAL_SHARE = 0.02
IDLE_PIPE_PCT = 60.0
NOTABLE_SPECIAL_PCT = 30.0
LOW_OCCUPANCY_PCT = 50.0
STALL_SHARE = 0.3
EXTRA_TRAFFIC = 1.3


def advice(launches: Sequence[KernelCounters], *, compulsory_bytes: int) -> list[str]:
    """Return what to change, kernel by kernel, the longest first, and of a call as a whole."""
    kernels = last_launches(launches)
    notes = _of_each(kernels, _advice_notes)
    moved = bytes_of_a_call(launches)
    if moved and compulsory_bytes and moved > EXTRA_TRAFFIC * compulsory_bytes:
        notes.append(
            f"a call moves {moved / 1e6:.4g} MB through the GPU's memory, {moved / compulsory_bytes:.2g} x the compulsory "
            "bytes: fuse passes, or keep what is read again in shared memory or registers"
        )
    if len(kernels) > 1:
        shares = ", ".join(f"{k.name} {k.get(DURATION_NS) / 1e3:.4g} us" for k in kernels[:6])
        notes.append(f"{len(kernels)} kernels: {shares}")
    return notes


def rates(launches: Sequence[KernelCounters], *, ceiling_gbps: float) -> list[str]:
    """Return how busy each kernel keeps memory and arithmetic, and what its warps wait for."""
    return _of_each(last_launches(launches), lambda k: [*_throughput_notes(k, ceiling_gbps), *_stall_notes(k)])


def _of_each(kernels: Sequence[KernelCounters], noted: Callable[[KernelCounters], list[str]]) -> list[str]:
    """Return the notes of the longest kernels, with their names where there are several."""
    many = len(kernels) > 1
    return [f"{kernel.name}: {note}" if many else note for kernel in kernels[:3] for note in noted(kernel)]


def _advice_notes(kernel: KernelCounters) -> list[str]:
    return [
        *_coalescing_notes(kernel),
        *_conflict_notes(kernel),
        *_spill_notes(kernel),
        *_occupancy_notes(kernel),
    ]


def _coalescing_notes(kernel: KernelCounters) -> list[str]:
    notes = []
    for op, what in (("ld", "loads"), ("st", "stores")):
        requests, sectors = (kernel.get(GLOBAL_OF.format(kind, op)) for kind in ("requests", "sectors"))
        used = kernel.get(EFFICIENCY_OF.format(op))
        if requests and 0 < used < UNCOALESCED_BELOW_PCT:
            per_request = sectors / requests
            enough = max(round(per_request * used / 100), 1)
            notes.append(
                f"uncoalesced global {what}: {per_request:.3g} sectors a request where {enough} would do: let neighbouring "
                "threads access neighbouring addresses, or go through shared memory"
            )
    return notes


def _conflict_notes(kernel: KernelCounters) -> list[str]:
    notes = []
    for op, what in (("ld", "loads"), ("st", "stores")):
        wavefronts, conflicts = kernel.get(WAVEFRONTS_OF.format(op)), kernel.get(CONFLICTS_OF.format(op))
        if not wavefronts or not conflicts:
            continue
        ways = wavefronts / max(wavefronts - conflicts, 1.0)
        if ways >= CONFLICT_ABOVE:
            notes.append(
                f"shared-memory bank conflicts: {ways:.2g}-way {what} ({conflicts / wavefronts:.0%} of their passes): pad "
                "the rows by one access width, or swizzle"
            )
    return notes


def _spill_notes(kernel: KernelCounters) -> list[str]:
    local = sum(kernel.get(LOCAL_OF.format(op)) for op in ("ld", "st"))
    shared_of_all = sum(kernel.get(GLOBAL_OF.format("sectors", op)) for op in ("ld", "st")) * 32
    if local <= NOTABLE_LOCAL_SHARE * shared_of_all:
        return []
    note = (
        f"register spills: {local / 1e6:.3g} MB local memory traffic: keep fewer values alive, unroll less, or allow more "
        "registers (__launch_bounds__); an array indexed at run time lies there too"
    )
    return [note]


def _occupancy_notes(kernel: KernelCounters) -> list[str]:
    achieved, possible = kernel.get(ACHIEVED_PCT), kernel.get(POSSIBLE_PCT)
    if not achieved:
        return []
    limits = {name: kernel.get(metric) for name, metric in OCCUPANCY_LIMITS.items() if metric in kernel.metrics}
    limited_by = min(limits, key=lambda name: limits[name]) if limits else ""
    because = f", limited by {limited_by}" if limited_by and possible < LOW_OCCUPANCY_PCT else ""
    notes = [f"achieved occupancy {achieved:.0f} % of {possible:.0f} % possible{because}"]
    if 0 < kernel.get(WAVES) < 1:
        notes.append(f"the grid fills {kernel.get(WAVES):.0%} of the GPU's multiprocessors: launch more blocks")
    return notes


def _throughput_notes(kernel: KernelCounters, ceiling_gbps: float) -> list[str]:
    duration_ns = kernel.get(DURATION_NS)
    notes = []
    if duration_ns and kernel.dram_bytes and ceiling_gbps:
        gbps = kernel.dram_bytes / duration_ns
        hits = f", L2 hit rate {kernel.get(L2_HIT_PCT):.0f} %" if L2_HIT_PCT in kernel.metrics else ""
        notes.append(f"DRAM at {gbps / ceiling_gbps:.0%} of the ceiling ({gbps:.4g} GB/s{hits})")
    tensor, fma, special = kernel.tensor_pct, kernel.get(FMA_PCT), kernel.special_pct
    if tensor > 1:
        feed = ": feed it earlier (deeper pipeline, larger tiles)" if tensor < IDLE_PIPE_PCT else ""
        notes.append(f"tensor pipe {tensor:.0f} %{feed}")
    elif fma > IDLE_PIPE_PCT:
        limits = ": arithmetic on it limits this kernel" if _limits_alone(fma, special) else ""
        notes.append(f"fp32 pipe {fma:.0f} %{limits}")
    if special > NOTABLE_SPECIAL_PCT:
        fewer = ": special functions (exp, …) limit this kernel: do fewer, or some by a polynomial on the fp32 pipe"
        notes.append(f"special function unit {special:.0f} %{fewer if _limits_alone(special, fma, tensor) else ''}")
    return notes


def _limits_alone(busy: float, *others: float) -> bool:
    """Say whether a busy pipe limits a kernel without waiting for another one, as ceiling_shares.py decides it."""
    ahead = busy - max(others)
    return busy > IDLE_PIPE_PCT and ahead > 0 and (ahead >= 100 * ALIKE or busy >= 100 * SATURATED)


def _stall_notes(kernel: KernelCounters) -> list[str]:
    waits = {reason: kernel.get(STALL_OF.format(reason)) for reason in STALLS}
    total = sum(waits.values())
    longest = max(waits, key=lambda reason: waits[reason])
    if total <= 0 or waits[longest] < STALL_SHARE * total:
        return []
    return [f"warps wait mostly for {STALLS[longest]} ({waits[longest] / total:.0%} of their waiting)"]
