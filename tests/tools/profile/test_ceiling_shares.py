"""What is said of a kernel's time: by its own work where that was counted, else by the reference's, and told so."""

from dataclasses import replace

import pytest
from tests.descriptions import description_of

from ridgeline.tools.profile.ceiling_shares import bound_of, reached
from ridgeline.tools.profile.executed import ExecutedWork
from ridgeline.tools.records.baselines import Floor
from ridgeline.tools.records.results import Timing
from ridgeline.tools.records.vocabulary import Status

PROBLEM = description_of(flops=1_000_000_000, compulsory_bytes=10_000_000)
COMPUTE = Floor(floor_ms=0.05, compute_floor_ms=1.0, bound="compute", bandwidth_gbps=200.0, gflops=1000.0, unit="fp32")
MEMORY = replace(COMPUTE, floor_ms=1.0, compute_floor_ms=0.1, bound="memory")
WORK = ExecutedWork(
    duration_ns=1e6, dram_bytes=40e6, tensor_busy=0.0, fp32_busy=0.42, fp32_operations=4.5e8, waits_for="shared memory"
)


def said(floor: Floor | None, median_ms: float | None, executed: ExecutedWork | None = None) -> str:
    timing = Timing(status=Status.OK, median_ms=median_ms) if median_ms else None
    return ". ".join(reached(PROBLEM, floor, timing, executed))


def test_faster_than_the_references_arithmetic_is_said_as_fewer_operations() -> None:
    text = said(COMPUTE, 0.685)
    assert "does fewer operations than the reference" in text
    assert "146" not in text and "reduce" not in text


def test_share_of_the_peak_is_called_the_references_where_nothing_was_counted() -> None:
    text = said(COMPUTE, 1.064)
    assert "the reference's arithmetic in that time is 94% of this device's fp32 peak" in text
    assert "fewer operations than the reference reaches less of it" in text
    assert "memory floor" not in text  # of a problem that arithmetic bounds


def test_counted_work_is_held_against_the_ceilings_and_the_reference() -> None:
    text = said(COMPUTE, 0.685, WORK)
    assert "it moves bytes at 20% of the measured bandwidth and keeps the fp32 pipe 42% busy" in text
    assert "it executes 0.45 x the operations of the reference" in text
    assert "warps wait mostly for shared memory" in text
    assert "is not known" not in text


@pytest.mark.parametrize(
    ("work", "bound"),
    [
        (WORK, "latency"),
        (replace(WORK, fp32_busy=0.8), "compute"),
        (replace(WORK, tensor_busy=0.7), "compute"),
        (replace(WORK, special_busy=0.7), "compute"),
        (replace(WORK, dram_bytes=170e6, fp32_busy=0.8), "memory"),
        (None, "compute"),
    ],
)
def test_bound_is_that_of_the_kernels_own_work(work: ExecutedWork | None, bound: str) -> None:
    assert bound_of(COMPUTE, work) == bound


def test_a_kernel_of_many_exponentials_is_limited_by_them_and_by_no_latency() -> None:
    text = said(COMPUTE, 0.685, replace(WORK, tensor_busy=0.55, special_busy=0.7))
    assert "keeps the special function unit 70% busy: special functions (exp, …) limit it" in text
    assert "latency" not in text


def test_two_units_that_are_about_as_busy_wait_for_each_other_unless_one_is_nearly_always_busy() -> None:
    text = said(COMPUTE, 0.685, replace(WORK, tensor_busy=0.649, special_busy=0.65))
    assert "special function unit 65% busy: it and the tensor pipe (65%) wait for each other: let other warps" in text
    assert "special functions (exp, …) limit it" not in text
    assert "the tensor pipe limits it" in said(COMPUTE, 0.685, replace(WORK, tensor_busy=0.91, special_busy=0.85))


def test_memory_bound_kernel_is_held_against_its_floor() -> None:
    assert "2 x the memory floor: the compulsory bytes move at 50% of the measured bandwidth" in said(MEMORY, 2.0)
    assert "only moving fewer bytes" in said(MEMORY, 1.05)


def test_kernel_that_was_not_timed_is_said_to_be_so() -> None:
    assert said(MEMORY, None).startswith("not timed")
    assert said(None, 2.0) == "2 ms a call; no floor is known"
