"""What makes a timing one that is not believed: the clocks, what a GPU is still doing, how a wrong output is told."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from tests.tools.measure.answering import Answering

from ridgeline.tools.measure.distrust import (
    BUSY_S,
    Distrusted,
    Inspector,
    contents_words,
    expect_consistent,
    expect_drained,
    slowdown_of,
    wrong_output,
)
from ridgeline.tools.measure.request_cost import LoopCost
from ridgeline.tools.measure.timed_side import Block, TimedCandidate, TimedSide
from ridgeline.tools.records.error_map import LimitUse, Measure
from ridgeline.tools.records.results import Trial
from ridgeline.tools.records.vocabulary import DeviceKind, ReasonCode, Status
from ridgeline.tools.runner.loop_time import LoopTime


def side_of(
    per_call_s: float,
    *,
    own_share: float,
    latency_s: float,
    kind: DeviceKind = DeviceKind.CUDA,
    of: type[TimedSide] = TimedCandidate,
) -> TimedSide:
    """Return a side of blocks of 30 calls that reports a share of its time."""
    judge = Answering(n_sets=30)
    judge.device_kind = kind
    timed = of(side=None, judge=judge)
    took = LoopTime(parent_s=30 * per_call_s + latency_s, own_s=own_share * 30 * per_call_s)
    timed.blocks = [Block(calls=30, took=took, page_faults=0)] * 8
    return timed


def waiting(*waits_s: float, is_candidate: bool = True) -> TimedSide:
    """Return a side beside whose blocks the judge waited so long for the GPU."""
    return (TimedCandidate if is_candidate else TimedSide)(side=None, judge=Answering(n_sets=30), waits_s=list(waits_s))


def test_clocks_that_differ_by_a_fifth_disagree() -> None:
    with pytest.raises(Distrusted, match="its own clock says 0.8 ms a call, the clock outside 1 ms"):
        expect_consistent(side_of(1e-3, own_share=0.8, latency_s=0), side_of(1e-3, own_share=1, latency_s=0))


def test_on_a_cpu_no_clock_but_the_parents_counts() -> None:
    side = side_of(1e-3, own_share=0.8, latency_s=0, kind=DeviceKind.CPU)
    expect_consistent(side, side)


def test_requests_that_wait_for_a_core_on_both_sides_are_no_disagreement() -> None:
    expect_consistent(side_of(1e-3, own_share=1, latency_s=5e-3), side_of(1e-3, own_share=1, latency_s=5e-3))


def test_waiting_of_one_side_only_is_a_disagreement() -> None:
    with pytest.raises(Distrusted):
        expect_consistent(side_of(1e-3, own_share=1, latency_s=5e-3), side_of(1e-3, own_share=1, latency_s=5e-5))


def test_a_clock_that_lies_is_told_where_requests_were_measured_on_a_busy_machine() -> None:
    side = side_of(1e-3, own_share=0.001, latency_s=1e-4)
    side.cost = LoopCost(request_s=0.04, least_s=8e-5)
    assert side.per_call_s() == pytest.approx([1e-6] * 8), "nothing is left of the parent's clock"
    with pytest.raises(Distrusted, match="its own clock says 0.001 ms a call, the clock outside 1.001 ms"):
        expect_consistent(side, side_of(1e-3, own_share=1, latency_s=1e-4))


def test_a_change_of_process_within_the_requests_is_no_disagreement() -> None:
    side = side_of(3e-4, own_share=1, latency_s=3.6e-4)
    side.cost = LoopCost(request_s=3.6e-4, least_s=8e-5)
    expect_consistent(side, side_of(3e-4, own_share=1, latency_s=1e-4))


def test_a_gpu_that_is_usually_busy_after_a_block_has_work_left_behind() -> None:
    side, other = waiting(3 * BUSY_S, 3 * BUSY_S, 0.0), waiting(50e-6, is_candidate=False)
    with pytest.raises(Distrusted, match="after a block the GPU was busy for 3 ms: work goes on") as raised:
        expect_drained(1.0, side, other)
    assert (raised.value.finding.status, raised.value.finding.code) == (Status.UNTRUSTED, ReasonCode.BACKGROUND_WORK)


def test_a_single_wait_for_a_gpu_blames_nobody() -> None:
    expect_drained(1.0, waiting(50e-6, 1.0, 50e-6))


def test_a_gpu_that_is_usually_busy_before_pytorchs_blocks_slows_pytorch_down() -> None:
    with pytest.raises(Distrusted, match="before a block of PyTorch's the GPU was busy for 2 ms"):
        expect_drained(1.0, waiting(50e-6), waiting(2 * BUSY_S, 2 * BUSY_S, 50e-6, is_candidate=False))


def test_an_honest_sides_waits_are_no_cover_for_another_sides() -> None:
    with pytest.raises(Distrusted, match="busy for 2 ms"):
        expect_drained(1.0, waiting(*[50e-6] * 9), waiting(*[2 * BUSY_S] * 5))


def test_pytorch_that_is_slower_beside_a_candidate_than_before_it_is_disturbed() -> None:
    side = side_of(1e-3, own_share=1, latency_s=0, of=TimedSide)
    reference = replace(side, usual_call_s=0.6e-3, waits_s=[50e-6])
    with pytest.raises(
        Distrusted, match=r"PyTorch takes 1 ms a call beside it, 0\.6 ms before its first call"
    ) as raised:
        expect_drained(1.0, reference)
    assert raised.value.finding.code is ReasonCode.BACKGROUND_WORK


@pytest.mark.parametrize(("usual_s", "kind"), [(0.7e-3, DeviceKind.CUDA), (0.1e-3, DeviceKind.CPU)])
def test_pytorch_in_its_usual_time_or_on_a_cpu_blames_nobody(usual_s: float, kind: DeviceKind) -> None:
    side = side_of(1e-3, own_share=1, latency_s=0, kind=kind, of=TimedSide)
    expect_drained(1.0, replace(side, usual_call_s=usual_s, waits_s=[50e-6]))


def test_a_gpu_that_usually_works_while_contents_are_renewed_has_work_waiting() -> None:
    side, other = (side_of(1e-3, own_share=1, latency_s=0) for _ in range(2))
    side.slowdowns, other.slowdowns = [1.0, 1.9, 2.1], [1.0]
    with pytest.raises(Distrusted, match=r"1\.9 x as slow as when it is alone: work goes on between calls") as raised:
        expect_drained(slowdown_of(side, other), waiting(50e-6))
    assert (raised.value.finding.status, raised.value.finding.code) == (Status.UNTRUSTED, ReasonCode.BACKGROUND_WORK)
    side.slowdowns = [1.0, 1.1, 2.1]
    expect_drained(slowdown_of(other, side), waiting(50e-6))


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (3e-3, ReasonCode.PRECISION_TOO_LOW),
        (0.5, ReasonCode.STALE_OUTPUT),
        (1e30, ReasonCode.TIMED_OUTPUT_WRONG),
    ],
)
def test_a_wrong_timed_output_is_explained_by_its_error(error: float, code: ReasonCode) -> None:
    fault = wrong_output(Trial(name="set_3", rel_error=error, gate=1e-5, passed=False), 3)
    assert fault.finding.code is code


@pytest.mark.parametrize(
    ("contents", "words"),
    [
        ("", "so a result is kept between calls, while inputs change in place, or it is wrong for some contents"),
        ("inputs as in crowded", "so it is wrong for such contents, or a result is kept between calls, while inputs "),
    ],
)
def test_a_wrong_timed_output_is_not_said_to_be_kept_for_certain(contents: str, words: str) -> None:
    fault = wrong_output(Trial(name="set_3", rel_error=0.5, gate=1e-5, passed=False), 3, contents)
    assert words in fault.finding.reason


def test_a_wrong_timed_output_names_the_limit_that_broke() -> None:
    row = LimitUse(measure=Measure.ROW, figure=6e-5, limit=4e-5)
    fault = wrong_output(Trial(name="set_3", rel_error=1.4e-6, gate=1e-5, passed=False, nearest=row), 3)
    assert "set 3 is wrong (a row's error 6e-05, gate 4e-05 (1.5 x))" in fault.finding.reason


@pytest.mark.parametrize(
    ("inputs", "parameters", "words"),
    [
        ("crowded_high", "", "set 3, with inputs as in crowded_high, is wrong"),
        ("trial:near_one", "", "set 3, with inputs as in near_one, is wrong"),
        (
            "mixed_signs:input",
            "parameter:order_one",
            "set 3, with inputs as in mixed_signs and parameters as in order_one, is wrong",
        ),
        ("", "", "set 3 is wrong"),
    ],
)
def test_a_wrong_timed_output_names_the_contents_that_it_had(inputs: str, parameters: str, words: str) -> None:
    trial = Trial(name="set_3", rel_error=3e-3, gate=1e-5, passed=False)
    assert f"output of {words}" in wrong_output(trial, 3, contents_words(inputs, parameters)).finding.reason


def test_a_set_with_the_contents_of_a_trial_is_checked_where_the_block_used_one() -> None:
    inspector = Inspector(judge=Answering(n_sets=30), checks=1, rng=random.Random(1))  # type: ignore[arg-type]
    timed = TimedCandidate(side=None, judge=inspector.judge)  # type: ignore[arg-type]  # no block is run
    for trial_sets, chosen, expected in (((2, 9), (4,), (4, 2)), ((9,), (4,), (4,)), ((2,), (2,), (2,))):
        timed.trial_sets = dict.fromkeys(trial_sets, "outliers")
        assert inspector.with_trial_contents(chosen, timed, (7, 4, 2)) == expected


def test_the_kind_of_contents_that_was_graded_least_is_checked_and_after_an_extra_block_every_one() -> None:
    inspector = Inspector(judge=Answering(n_sets=30), checks=1, rng=random.Random(1))  # type: ignore[arg-type]
    timed = TimedCandidate(side=None, judge=inspector.judge)  # type: ignore[arg-type]  # no block is run
    timed.trial_sets = {7: "shifted", 2: "outliers"}
    timed.coverage.note((7,), timed.trial_sets, "")
    assert inspector.with_trial_contents((4,), timed, (7, 4, 2)) == (4, 2)
    assert inspector.with_trial_contents((4,), timed, (7, 4, 2), all_of_them=True) == (4, 7, 2)
