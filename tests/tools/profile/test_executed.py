"""One call's own work out of Nsight Compute's counters."""

import pytest

from ridgeline.tools.profile.executed import executed_work
from ridgeline.tools.profile.gpu_counters import (
    DRAM_BYTES,
    DURATION_NS,
    FMA_PCT,
    FP32_OPS,
    MOST_LAUNCHES,
    SPECIAL_PIPES,
    STALL_OF,
    TENSOR_PIPES,
    KernelCounters,
)  # fmt: skip

FFMA, FADD, FMUL = FP32_OPS


def launch(name: str, **metrics: float) -> KernelCounters:
    return KernelCounters(name=name, metrics=metrics)


FIRST = launch("a", **{DURATION_NS: 100.0, FMA_PCT: 80.0, DRAM_BYTES[0]: 1000.0, FFMA: 10.0, FADD: 5.0, FMUL: 1.0})
SECOND = launch(
    "b",
    **{DURATION_NS: 300.0, FMA_PCT: 40.0, DRAM_BYTES[1]: 3000.0, FFMA: 0.0, FADD: 4.0, FMUL: 0.0}
    | {STALL_OF.format("barrier"): 3.0},
)


def test_a_call_is_all_its_kernels_each_for_as_long_as_it_takes() -> None:
    work = executed_work([FIRST, SECOND] * 3)
    assert work is not None
    assert (work.duration_ns, work.dram_bytes, work.gbps) == (400.0, 4000.0, 10.0)
    assert work.fp32_busy == 0.5
    assert work.fp32_operations == 2 * 10 + 5 + 1 + 4
    assert work.waits_for == "__syncthreads (100% of their waiting)"  # of the longest kernel


def test_pipes_are_held_by_their_largest_metric_kernel_by_kernel() -> None:
    kernels = [
        launch("a", **FIRST.metrics | {TENSOR_PIPES[0]: 62.0, TENSOR_PIPES[3]: 2.75, SPECIAL_PIPES[0]: 40.0}),
        launch("b", **SECOND.metrics | {TENSOR_PIPES[3]: 10.0, SPECIAL_PIPES[1]: 80.0}),
    ]
    work = executed_work(kernels * 3)
    assert work is not None
    assert (work.tensor_busy, work.special_busy) == pytest.approx((0.23, 0.7))  # of 100 ns and 300 ns


def test_waiting_is_told_with_its_share_and_the_next_reason_where_that_is_much_too() -> None:
    def told(**waits: float) -> str:
        of = {STALL_OF.format(reason): wait for reason, wait in waits.items()}
        work = executed_work([KernelCounters(name="a", metrics=FIRST.metrics | of)] * 3)
        assert work is not None
        return work.waits_for

    assert told(wait=6.0, barrier=3.0, short_scoreboard=1.0) == (
        "fixed latencies of their own instructions (60% of their waiting), then for __syncthreads (30%)"
    )
    assert told(wait=9.0, barrier=1.0) == "fixed latencies of their own instructions (90% of their waiting)"
    assert told() == ""


def test_operations_are_unknown_where_tensor_cores_do_a_part_or_a_counter_is_missing() -> None:
    on_tensor_cores = KernelCounters(name="a", metrics={**FIRST.metrics, TENSOR_PIPES[0]: 30.0})
    without = KernelCounters(name="a", metrics={k: v for k, v in FIRST.metrics.items() if k != FADD})
    for kernel in (on_tensor_cores, without):
        work = executed_work([kernel] * 3)
        assert work is not None
        assert work.fp32_operations is None


def test_nothing_is_said_of_a_call_that_was_not_seen_whole() -> None:
    assert executed_work([]) is None
    assert executed_work([FIRST] * 4) is None
    assert executed_work([FIRST] * MOST_LAUNCHES) is None
