"""The work that a GPU candidate does in one call by the hardware's count, whatever the reference would do."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ridgeline.tools.profile.gpu_counters import (
    DURATION_NS,
    FMA_PCT,
    FP32_OPS,
    STALL_OF,
    STALLS,
    KernelCounters,
    bytes_of_a_call,
    launches_of_a_call,
)  # fmt: skip

SECOND_WAIT = 0.15
"""The share of warps' waiting from which on its second reason is told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutedWork:
    """One call's work; the kernels' times are Nsight Compute's."""

    duration_ns: float
    dram_bytes: float
    tensor_busy: float  # of the tensor pipe's peak while the kernels run, 0 to 1
    fp32_busy: float
    special_busy: float = 0.0  # of the special function unit's peak
    fp32_operations: float | None  # None where tensor cores do a part, or the counters are missing
    waits_for: str  # what warps of the longest kernel wait for most, with its share; "" unknown

    @property
    def gbps(self) -> float:
        """Return the rate at which the kernels move bytes through the GPU's memory."""
        return self.dram_bytes / self.duration_ns


def executed_work(launches: Sequence[KernelCounters]) -> ExecutedWork | None:
    """Return the work of one call, None where not every launch of it was seen."""
    moved = bytes_of_a_call(launches)
    call = launches_of_a_call(launches)
    duration_ns = math.fsum(launch.get(DURATION_NS) for launch in call)
    if moved is None or not duration_ns:
        return None
    tensor_busy = _busy(call, lambda launch: launch.tensor_pct)
    return ExecutedWork(
        duration_ns=duration_ns,
        dram_bytes=moved,
        tensor_busy=tensor_busy,
        fp32_busy=_busy(call, lambda launch: launch.get(FMA_PCT)),
        special_busy=_busy(call, lambda launch: launch.special_pct),
        fp32_operations=None if tensor_busy > 0 else _fp32_operations(call),
        waits_for=_waits(max(call, key=lambda launch: launch.get(DURATION_NS))),
    )


def _busy(call: Sequence[KernelCounters], pct: Callable[[KernelCounters], float]) -> float:
    """Return a pipe's share of its peak over all kernels of a call, each for as long as it takes."""
    whole = math.fsum(launch.get(DURATION_NS) for launch in call)
    return math.fsum(pct(launch) * launch.get(DURATION_NS) for launch in call) / whole / 100


def _fp32_operations(call: Sequence[KernelCounters]) -> float | None:
    if not all(metric in launch.metrics for launch in call for metric in FP32_OPS):
        return None
    return math.fsum(launch.get(metric) * each for launch in call for metric, each in FP32_OPS.items())


def _waits(kernel: KernelCounters) -> str:
    """Return what warps wait for most, with its share of their waiting, and the next one where that is much too."""
    waits = sorted(((kernel.get(STALL_OF.format(reason)), words) for reason, words in STALLS.items()), reverse=True)
    whole = math.fsum(wait for wait, _ in waits)
    if whole <= 0:
        return ""
    (longest, words), (second, others) = waits[:2]
    further = f", then for {others} ({second / whole:.0%})" if second >= SECOND_WAIT * whole else ""
    return f"{words} ({longest / whole:.0%} of their waiting){further}"
