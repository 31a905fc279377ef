"""Two candidates timed against each other, and outputs that are collected: real processes over sets in a shared file."""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from tests.tools.measure.process_side import SETTINGS, FileJudge, ProcessSide

from ridgeline.tools.machine.gpu_state import GpuState
from ridgeline.tools.measure.benchmark import (
    compare_sides,
    time_candidate,
)
from ridgeline.tools.measure.distrust import Distrusted
from ridgeline.tools.measure.singles import SINGLES
from ridgeline.tools.records.vocabulary import ReasonCode, Status
from ridgeline.tools.runner.loop_time import LoopTime

pytestmark = [pytest.mark.timing, pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")]


class Collecting:
    """Collects by a function, and complains as it is told to."""

    def __init__(self, collect: Callable[[Sequence[int], Sequence[int]], None], says: str = "") -> None:
        self.collect, self.says = collect, says

    def __call__(self, chosen: Sequence[int], sets: Sequence[int]) -> None:
        self.collect(chosen, sets)

    def complaint(self, call_s: float) -> str:
        assert call_s > 0
        return self.says


def test_collect_is_called_once_a_block_with_the_checked_sets(start, judge) -> None:
    collected: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
    collect = Collecting(lambda *block: collected.append(block))
    timing = time_candidate(start(), start(), judge, settings=SETTINGS, floor=None, collect=collect)
    brought = iter([index for chosen, _ in collected for index in chosen])
    assert all(index in brought for index in judge.checked), (
        "in this order; a block that changed too late is not checked"
    )
    assert len(collected) >= timing.samples + SINGLES
    assert all(set(chosen) <= set(sets) for chosen, sets in collected)


def test_comparison_of_two_candidates_says_which_is_faster(start, judge) -> None:
    comparison = compare_sides(start(work=24), start(work=4), judge, settings=SETTINGS)
    assert comparison.ratio > 1.5
    assert comparison.ratio_ci95[0] > 1
    assert comparison.first_ms > comparison.second_ms


def test_a_comparison_gives_up_on_neither_kernel(start, judge) -> None:
    rule = replace(SETTINGS.rule, smallest=10, largest=10, give_up_below=0.8)
    comparison = compare_sides(start(work=4), start(work=24), judge, settings=replace(SETTINGS, rule=rule))
    assert comparison.ratio < 0.8 and comparison.blocks == 10


class KeepingSide:
    """A side whose outputs are its own until they are collected, as a runner of torch tensors keeps them."""

    def __init__(self, side: ProcessSide, judge: FileJudge) -> None:
        self.side, self.judge = side, judge
        self.kept: dict[int, np.ndarray] = {}

    def __getattr__(self, name: str):
        return getattr(self.side, name)

    def loop(self, sets: Sequence[int]) -> LoopTime:
        time_ = self.side.loop(sets)
        for index in sets:
            self.kept[index] = self.judge.memory[index, 1].copy()
        self.judge.memory[:, 1] = np.nan
        return time_

    def collect(self, says: str = "") -> Collecting:
        return Collecting(self._collect, says)

    def _collect(self, chosen: Sequence[int], _sets: Sequence[int]) -> None:
        for index in chosen:
            self.judge.memory[index, 1] = self.kept[index]


def test_comparison_collects_each_sides_own_outputs(start, judge) -> None:
    first, second = (KeepingSide(start(work=8), judge) for _ in range(2))
    comparison = compare_sides(first, second, judge, settings=SETTINGS, collects=(first.collect(), second.collect()))
    assert comparison.blocks >= 8
    with pytest.raises(Distrusted, match="wrong"):
        compare_sides(first, second, judge, settings=SETTINGS, collects=(first.collect(), None))


LATE = "collecting an output took longer than a copy"


def test_timing_in_which_work_was_left_until_collection_does_not_count(start, judge) -> None:
    side = KeepingSide(start(work=8), judge)
    timing = time_candidate(side, start(work=8), judge, settings=SETTINGS, floor=None, collect=side.collect(LATE))
    assert (timing.status, timing.reason_code, timing.reason) == (
        Status.UNTRUSTED,
        ReasonCode.BACKGROUND_WORK,
        LATE,
    )
    assert timing.benchmark_s > 0


@pytest.mark.parametrize("late", [0, 1])
def test_comparison_refuses_either_side_that_left_work_until_collection(start, judge, late: int) -> None:
    sides = [KeepingSide(start(work=8), judge) for _ in range(2)]
    collects = [side.collect(LATE if index == late else "") for index, side in enumerate(sides)]
    with pytest.raises(Distrusted, match=LATE):
        compare_sides(*sides, judge, settings=SETTINGS, collects=collects)


def test_comparison_refuses_a_side_that_works_between_calls(start, judge) -> None:
    with pytest.raises(Distrusted, match="work goes on after a call has returned"):
        compare_sides(start(), start("spins"), judge, settings=SETTINGS)


def test_comparison_observes_every_block_of_both_sides(start, judge) -> None:
    looks: list[int] = []
    comparison = compare_sides(
        start(), start(), judge, settings=SETTINGS, observe=lambda: looks.append(0) or GpuState()
    )
    assert len(looks) >= 2 * (comparison.blocks + SINGLES)


def test_comparison_refuses_a_side_whose_timed_output_is_wrong(start, judge) -> None:
    with pytest.raises(Distrusted, match="wrong"):
        compare_sides(start("skips_later"), start(), judge, settings=SETTINGS)
