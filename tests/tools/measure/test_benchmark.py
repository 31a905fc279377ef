"""The benchmark against real processes: an honest kernel is timed, each way to cheat the clock is named.

Sides are trusted C++ programs (native/side.cpp) that loop over sets in a shared file; the judge is numpy over that file.
Only ratios within one run are asserted.
"""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.tools.measure.answering import Answering

from ridgeline.tools.judge.messages import Check, FindUnasked, Idle, Renew, Supersede, VerifyInputs
from ridgeline.tools.judge.replies import Done, Idled, Intact, Renewed, Unasked
from ridgeline.tools.machine.gpu_state import GpuState
from ridgeline.tools.measure.benchmark import (
    TimingSettings,
    compare_sides,
    time_alone,
    time_candidate,
)
from ridgeline.tools.measure.block_plan import BlockPlanner
from ridgeline.tools.measure.distrust import SINGLES, Distrusted
from ridgeline.tools.measure.paired_blocks import steady_pairs
from ridgeline.tools.measure.statistics import StoppingRule
from ridgeline.tools.measure.timed_side import Block, TimedSide, WarmUp
from ridgeline.tools.records.results import Floor, Trial
from ridgeline.tools.records.vocabulary import Label, Purpose, ReasonCode, Status
from ridgeline.tools.runner.wire import LoopTime

pytestmark = [pytest.mark.timing, pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")]

N_SETS, ELEMENTS = 24, 1 << 16
SETTINGS = TimingSettings(
    rule=StoppingRule(smallest=8, largest=12, time_s=1.0),
    warm_up=WarmUp(calls=10, seconds=0.03),
    block_s=0.006,
    idle_s=0.1,
    checks=2,
    rng_seed=7,
)


class ProcessSide:
    """A side that is a process: one line asks for a loop, one line answers."""

    def __init__(self, command: list[str]) -> None:
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = self.process.pid
        self.stops = 0
        self.stopped = False

    def loop(self, sets: Sequence[int]) -> LoopTime:
        assert self.process.stdin and self.process.stdout
        start = time.perf_counter()
        self.cont()
        self.process.stdin.write(f"loop {len(sets)} {' '.join(map(str, sets))}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().split()
        self.stop()
        return LoopTime(parent_s=time.perf_counter() - start, own_s=int(answer[1]) / 1e9)

    def calls_to_come(self) -> int | None:
        return None

    def stop(self) -> None:
        self.stops += 1
        self.stopped = True
        os.kill(self.pid, signal.SIGSTOP)

    def cont(self) -> None:
        self.stopped = False
        os.kill(self.pid, signal.SIGCONT)

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


class FileJudge(Answering):
    """A judge of sets of (x, out) in one shared file; refilled and compared by numpy."""

    def __init__(self, path: Path, n_sets: int = N_SETS, elements: int = ELEMENTS) -> None:
        super().__init__(n_sets)
        self.memory = np.memmap(path, dtype=np.float32, mode="w+", shape=(n_sets, 2, elements))
        self.rng = np.random.default_rng(0)
        self.refills = 0
        self.checked: list[int] = []

    def renew(self, _request: Renew) -> Renewed:
        self.refills += 1
        fresh = self.rng.standard_normal(self.memory.shape[2], dtype=np.float32)
        for i in range(self.n_sets):
            self.memory[i, 0] = np.roll(fresh, i) + self.refills
            self.memory[i, 1] = np.nan
        return Renewed(slowdown=0.0)

    def find_unasked(self, request: FindUnasked) -> Unasked:
        return Unasked(written=tuple(i for i in request.sets if not np.isnan(self.memory[i, 1]).all()))

    def verify_inputs(self, _request: VerifyInputs) -> Intact:
        return Intact(intact=True)

    def supersede(self, request: Supersede) -> Done:
        if not request.draws_only:
            self.memory[request.set_index, 0] = self.memory[request.like, 0]
        return Done()

    def idle(self, _request: Idle) -> Idled:
        return Idled(seconds=0.0)

    def check(self, request: Check) -> Trial:
        self.checked.append(request.set_index)
        x, out = self.memory[request.set_index]
        expected = 3 * x + 1
        with np.errstate(invalid="ignore"):
            error = float(np.linalg.norm(out - expected) / np.linalg.norm(expected - expected.mean()))
        return Trial(name="timed", rel_error=error, gate=1e-5, passed=error < 1e-5)


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = Path(__file__).parent / "native" / "side.cpp"
    out = tmp_path_factory.mktemp("side") / "side"
    subprocess.run(["g++", "-O2", "-pthread", "-o", str(out), str(source)], check=True)
    return out


@pytest.fixture
def judge(tmp_path: Path) -> FileJudge:
    return FileJudge(tmp_path / "sets")


@pytest.fixture
def start(program: Path, judge: FileJudge) -> Iterator[Callable[..., ProcessSide]]:
    sides: list[ProcessSide] = []

    def start_side(mode: str = "honest", *, work: int = 4, of: FileJudge = judge) -> ProcessSide:
        shape = [str(of.memory.filename), str(of.n_sets), str(of.memory.shape[2])]
        sides.append(ProcessSide([str(program), *shape, str(work), mode]))
        return sides[-1]

    yield start_side
    for side in sides:
        side.close()


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
    assert timing.status is not Status.OK or timing.speedup < 1.3


def test_block_of_fresh_contents_gives_a_fingerprint_cache_no_advantage(start, judge) -> None:
    """Whatever the warm-up made of it: with blocks that use no set twice, a cache saves nothing."""

    planner = BlockPlanner(n_sets=N_SETS, most_calls=15)

    def gains() -> bool:
        sides = [
            TimedSide(side=start(m, work=20), judge=judge, is_tracked=True) for m in ("fingerprint_cache", "honest")
        ]
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


def test_time_below_the_floor_is_not_trusted(start, judge) -> None:
    floor = Floor(floor_ms=1e3, compute_floor_ms=0.0, bound="memory", bandwidth_gbps=10.0, gflops=100.0)
    timing = time_candidate(start(), start(), judge, settings=SETTINGS, floor=floor)
    assert (timing.status, timing.reason_code) == (Status.UNTRUSTED, ReasonCode.BELOW_FLOOR)


def test_tiny_kernel_is_labelled_launch_bound_and_a_huge_gain_is_quarantined(start, tmp_path) -> None:
    small = FileJudge(tmp_path / "small", n_sets=16, elements=1 << 10)
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


def test_sides_take_turns_and_the_reference_is_running_at_the_end(start, judge) -> None:
    candidate, reference = start(), start()
    time_candidate(candidate, reference, judge, settings=SETTINGS, floor=None)
    assert candidate.stops >= 8
    assert reference.stops >= 8
    assert not reference.stopped


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


def test_baseline_alone_reports_ordered_percentiles(start, judge) -> None:
    median_ms, p10, p90, samples = time_alone(start(), judge, settings=SETTINGS)
    assert 0 < p10 <= median_ms <= p90
    assert samples >= 6


def test_every_purpose_has_settings_that_make_five_rounds() -> None:
    for purpose in Purpose:
        assert TimingSettings.for_purpose(purpose).rule.smallest >= 10


def blocks_at(*clocks: float | None) -> list[Block]:
    """Return blocks of equal length at these clocks of the multiprocessors; None: the driver did not say."""
    took = LoopTime(parent_s=1e-3, own_s=1e-3)
    return [Block(calls=1, took=took, page_faults=0, gpu=GpuState(sm_mhz=mhz)) for mhz in clocks]


def test_pairs_without_clocks_all_count() -> None:
    assert steady_pairs(blocks_at(*[None] * 4), blocks_at(*[None] * 4)) == [0, 1, 2, 3]


def test_a_pair_with_either_block_at_another_clock_does_not_count() -> None:
    first = blocks_at(1980, 1980, 1500, 1980, 1980, 1980, 1980, 1980, 1980)
    second = blocks_at(1980, 1980, 1980, 1980, 2100, 1980, None, 1980, 1930)
    assert steady_pairs(first, second) == [0, 1, 3, 5, 6, 7, 8]


def test_where_too_few_pairs_would_be_left_all_count() -> None:
    wandering = blocks_at(1000, 1200, 1400, 1600, 1800, 1980, 1980)
    assert steady_pairs(wandering, wandering) == list(range(7))


def test_a_machine_whose_every_core_is_taken_is_called_busy(start, judge) -> None:
    others = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(2 * (os.cpu_count() or 1))]
    try:
        timing = time_candidate(start(), start(), judge, settings=SETTINGS, floor=None)
    finally:
        for other in others:
            other.kill()
            other.wait()
    assert Label.BUSY_MACHINE in timing.labels
