"""The benchmark against real processes: an honest kernel is timed, each way to cheat the clock is named.

Sides are trusted C++ programs (native/side.cpp) that loop over sets in a shared file; the judge is numpy over that file.
Only ratios within one run are asserted.
"""

import itertools
import os
import shutil
import subprocess
from dataclasses import replace

import pytest
from tests.tools.measure.process_side import N_SETS, SETTINGS, FileJudge

from ridgeline.tools.measure.benchmark import (
    time_alone,
    time_candidate,
)
from ridgeline.tools.measure.block_plan import BlockPlanner
from ridgeline.tools.measure.changing_blocks import BLOCK_PARTS
from ridgeline.tools.measure.distrust import SlowRenewals
from ridgeline.tools.measure.statistics import StoppingRule
from ridgeline.tools.measure.timed_side import TimedCandidate
from ridgeline.tools.measure.timing_settings import TimingSettings
from ridgeline.tools.records.baselines import Floor
from ridgeline.tools.records.vocabulary import DeviceKind, Label, Purpose, ReasonCode, Status

pytestmark = [pytest.mark.timing, pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")]


def test_kernel_doing_a_tenth_of_the_work_measures_as_faster(start, judge) -> None:
    timing = time_candidate(start(work=4), start(work=40), judge, settings=SETTINGS, floor=None)
    assert timing.status is Status.OK, timing.reason
    assert timing.speedup > 1.5
    assert timing.speedup_ci95[0] <= timing.speedup <= timing.speedup_ci95[1]
    assert timing.reference_ms > timing.median_ms
    assert timing.p10_ms <= timing.median_ms <= timing.p90_ms
    assert timing.samples >= 8
    assert timing.witness_ms > 0
    assert timing.benchmark_s > 0
    assert len(judge.checked) >= timing.samples


def test_kernel_against_itself_has_no_clear_winner(start, judge) -> None:
    timing = time_candidate(start(work=8), start(work=8), judge, settings=SETTINGS, floor=None)
    assert timing.status is Status.OK, timing.reason
    assert 0.2 < timing.speedup < 5  # a turbo step of one core is 1.7 x here, a neighbour on both cores 2.4 x


@pytest.mark.parametrize(
    ("mode", "status", "reason_code"),
    [
        ("pointer_cache", Status.WRONG, ReasonCode.STALE_OUTPUT),
        ("skips_later", Status.UNTRUSTED, ReasonCode.TIMED_OUTPUT_WRONG),
        ("late", Status.UNTRUSTED, ReasonCode.TIMED_OUTPUT_WRONG),
        ("spins", Status.UNTRUSTED, ReasonCode.BACKGROUND_WORK),
        ("new_thread", Status.UNTRUSTED, ReasonCode.NEW_THREAD),
        ("works_ahead", Status.UNTRUSTED, ReasonCode.WORKED_AHEAD),
        ("works_privately", Status.UNTRUSTED, ReasonCode.WORKED_AHEAD),
    ],
)
def test_cheat_is_named_with_its_own_reason(start, judge, mode, status, reason_code) -> None:
    timing = time_candidate(start(mode, work=16), start(work=16), judge, settings=SETTINGS, floor=None)
    assert (timing.status, timing.reason_code) == (status, reason_code), timing.reason
    assert timing.median_ms is None
    assert timing.speedup is None
    assert timing.reason
    assert "\n" not in timing.reason


def test_cache_keyed_by_a_fingerprint_gains_nothing(start, judge) -> None:
    settings = replace(SETTINGS, rule=StoppingRule(smallest=6, largest=6))
    timing = time_candidate(start("fingerprint_cache", work=20), start(work=20), judge, settings=settings, floor=None)
    # it compares contents for nothing, and no more is asked; slow blocks of a busy machine may refuse it as well
    assert timing.status is not Status.OK or timing.speedup < 1.3


def test_block_of_fresh_contents_gives_a_fingerprint_cache_no_advantage(start, judge) -> None:
    """Whatever the warm-up made of it: with blocks that use no set twice, a cache saves nothing."""

    planner = BlockPlanner(n_sets=N_SETS, most_calls=15)

    def gains() -> bool:
        sides = [TimedCandidate(side=start(m, work=20), judge=judge) for m in ("fingerprint_cache", "honest")]
        for side in sides:
            for plan in (planner.draw(15) for _ in range(3)):
                side.renew(plan.order)
                side.run_block(plan)
        cached, honest = (min(side.per_call_s()) for side in sides)
        return cached <= 0.7 * honest

    assert not all(gains() for _ in range(3))  # a trick gains every time, a busy machine now and then


def test_runner_that_lies_about_its_own_time_gains_nothing(start, judge) -> None:
    timing = time_candidate(start("lies", work=40), start(work=40), judge, settings=SETTINGS, floor=None)
    assert timing.status is Status.OK, timing
    assert timing.speedup < 2


def test_dawdling_in_every_third_block_gains_nothing(start, judge) -> None:
    def gains() -> bool:
        timing = time_candidate(start("dawdles", work=16), start(work=16), judge, settings=SETTINGS, floor=None)
        return timing.status is Status.OK and timing.speedup >= 1.1

    assert not all(gains() for _ in range(3))  # a trick gains every time, a busy machine now and then


@pytest.mark.parametrize("work", [20, 30, 45, 65, 95])
def test_a_kernel_is_launch_bound_below_a_tenth_of_a_millisecond(start, tmp_path, work) -> None:
    small = FileJudge(tmp_path / "small", n_sets=96, elements=1 << 10)
    timing = time_candidate(
        start(work=work, of=small), start(work=work, of=small), small, settings=SETTINGS, floor=None
    )
    assert timing.status is Status.OK, timing.reason
    assert (Label.LAUNCH_BOUND in timing.labels) is (timing.median_ms < 0.1), timing.median_ms


def test_slow_renewals_are_left_to_the_caller_who_can_ask_the_judge_for_its_pace_alone(start, judge) -> None:
    judge.slowdown = 2.0
    with pytest.raises(SlowRenewals, match="2 x as slow"):
        time_candidate(start(), start(), judge, settings=SETTINGS, floor=None)
    as_slow_alone = replace(SETTINGS, slowdown_alone=1.9)
    timing = time_candidate(start(work=8), start(work=8), judge, settings=as_slow_alone, floor=None)
    assert timing.status is not Status.OK or timing.renewal_slowdown == pytest.approx(2.0 / 1.9)


def test_time_below_the_floor_is_not_trusted(start, judge) -> None:
    floor = Floor(floor_ms=1e3, compute_floor_ms=0.0, bound="memory", bandwidth_gbps=10.0, gflops=100.0)
    timing = time_candidate(start(), start(), judge, settings=SETTINGS, floor=floor)
    assert (timing.status, timing.reason_code) == (Status.UNTRUSTED, ReasonCode.BELOW_FLOOR)


def test_tiny_kernel_is_labelled_launch_bound_and_a_huge_gain_is_quarantined(start, tmp_path) -> None:
    small = FileJudge(tmp_path / "small", n_sets=96, elements=1 << 10)  # a request is little beside so many calls
    timing = time_candidate(start(work=0, of=small), start(work=200, of=small), small, settings=SETTINGS, floor=None)
    assert timing.status is Status.OK, timing.reason
    assert Label.LAUNCH_BOUND in timing.labels
    assert Label.QUARANTINED in timing.labels


def test_search_gives_up_early_on_a_clearly_slower_kernel(start, judge) -> None:
    rule = StoppingRule(smallest=40, largest=40, give_up_below=0.8)
    settings = replace(SETTINGS, rule=rule)
    timing = time_candidate(start(work=40), start(work=4), judge, settings=settings, floor=None)
    assert timing.status is Status.OK
    assert timing.speedup_ci95[1] < 0.8
    assert timing.samples < 40
    assert judge.changes >= BLOCK_PARTS, "contents change in each part of a block"


def test_sides_take_turns_and_the_reference_is_running_at_the_end(start, judge) -> None:
    candidate, reference = start(), start()
    time_candidate(candidate, reference, judge, settings=SETTINGS, floor=None)
    assert candidate.stops >= 8
    assert reference.stops >= 8
    assert not reference.stopped


def test_a_baseline_alone_has_a_time_of_every_block(start, judge) -> None:
    timing = time_alone(start(), judge, settings=SETTINGS)
    assert min(timing.values) > 0
    assert len(timing.values) >= 6


def test_every_purpose_has_settings_that_make_five_rounds() -> None:
    for purpose, kind in itertools.product(Purpose, DeviceKind):
        assert TimingSettings.for_purpose(purpose, kind).rule.smallest >= 10


def test_a_cpus_blocks_last_as_long_in_a_search_as_in_a_certificate() -> None:
    """PyTorch's first calls after a pause take longer: in blocks of 12 ms a call of 0.1 ms took 1.12 to 1.19 x a loop's."""
    both = itertools.product(Purpose, DeviceKind)
    lengths = {(purpose, kind): TimingSettings.for_purpose(purpose, kind).block_s for purpose, kind in both}
    certified = lengths[Purpose.CERTIFY, DeviceKind.CPU]
    assert all(lengths[purpose, DeviceKind.CPU] == certified for purpose in Purpose)
    assert lengths[Purpose.SEARCH, DeviceKind.CUDA] < certified


def test_a_machine_whose_every_core_is_taken_is_called_busy(start, judge) -> None:
    settings = replace(SETTINGS, block_s=0.06)  # a process that has slept goes first: only a long block has to wait
    others = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(2 * (os.cpu_count() or 1))]
    try:
        timing = time_candidate(start(work=40), start(work=40), judge, settings=settings, floor=None)
    finally:
        for other in others:
            other.kill()
            other.wait()
    assert Label.BUSY_MACHINE in timing.labels
