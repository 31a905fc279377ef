"""Every kind of contents is graded in every measurement, in blocks that do not count where no other block had it."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence

import pytest
from tests.tools.measure.answering import Answering

from ridgeline.tools.errors import EngineError
from ridgeline.tools.judge.messages import Check, DrawNext, FindUnasked, Idle, Renew, Supersede, VerifyInputs
from ridgeline.tools.judge.replies import Done, Idled, Intact, Renewed, Unasked
from ridgeline.tools.machine.process_use import thread_count
from ridgeline.tools.measure.alternation import AlternatingRun
from ridgeline.tools.measure.coverage import Coverage
from ridgeline.tools.measure.distrust import Distrusted
from ridgeline.tools.measure.statistics import StoppingRule
from ridgeline.tools.measure.timed_side import TimedCandidate, TimedSide
from ridgeline.tools.measure.timing_settings import TimingSettings
from ridgeline.tools.records.results import Trial
from ridgeline.tools.records.trial_names import LARGE_INPUTS, LARGE_VECTORS, NEAR_ONE, OUTLIERS, as_kind
from ridgeline.tools.runner.loop_time import LoopTime

KINDS = (OUTLIERS, "mixed_signs", "parameter:mixed_signs")
PARAMETERS = "parameter:"
SETTINGS = TimingSettings(rule=StoppingRule(smallest=8, largest=8), checks=2)
FOUR_TIMES_AS_LONG = TimingSettings(rule=StoppingRule(smallest=32, largest=32), checks=2)


class BusyJudge(Answering):
    """A judge on a busy machine: it gives no block a kind of contents but those that are asked for."""

    def __init__(self, *, gives: bool = True, wrong: str = "") -> None:
        super().__init__(n_sets=24)
        self.problem.timed_kinds = KINDS
        self.gives = gives
        self.wrong = wrong  # the kind on which outputs are
        self.kinds: dict[int, str] = {}
        self.parameters = ""
        self.graded: list[str] = []

    def renew(self, request: Renew) -> Renewed:
        self.kinds, self.parameters = {}, ""
        if self.gives and request.wanted and request.wanted[0].startswith(PARAMETERS):
            self.parameters = request.wanted[0]
        elif self.gives:
            inputs = [kind for kind in request.wanted if not kind.startswith(PARAMETERS)]
            self.kinds = dict(zip(reversed(request.order[: request.calls]), inputs, strict=False))
        return Renewed(
            slowdown=0.0,
            trial_sets=tuple(self.kinds),
            kinds=tuple(self.kinds.values()),
            parameter_kind=self.parameters,
        )

    def check(self, request: Check) -> Trial:
        kind = self.kinds.get(request.set_index, self.parameters)
        self.graded.append(kind)
        is_wrong = bool(kind) and kind == self.wrong
        return Trial(name="timed", rel_error=float(is_wrong), gate=1e-5, passed=not is_wrong)

    def idle(self, _request: Idle) -> Idled:
        return Idled(seconds=0.0)

    def verify_inputs(self, _request: VerifyInputs) -> Intact:
        return Intact(intact=True)

    def find_unasked(self, _request: FindUnasked) -> Unasked:
        return Unasked(written=())

    def draw_next(self, _request: DrawNext) -> Done:
        return Done()

    def supersede(self, _request: Supersede) -> Done:
        return Done()


class InstantSide:
    """A side that has done its calls before they are asked for."""

    pid = os.getpid()

    def __init__(self, call_s: float) -> None:
        self.call_s = call_s

    def loop(self, sets: Sequence[int]) -> LoopTime:
        return LoopTime(parent_s=self.call_s * len(sets), own_s=self.call_s * len(sets))

    def calls_begun(self) -> int:
        return 0

    def glimpse(self, set_index: int, share: float) -> bytes:
        return b""

    def stop(self) -> None:
        """Nothing runs."""

    def hold(self) -> None:
        """Nothing runs."""

    def cont(self) -> None:
        """Nothing runs."""


def run(
    judge: BusyJudge, *, call_s: float = 1e-3, settings: TimingSettings = SETTINGS
) -> tuple[AlternatingRun, TimedSide]:
    ours, theirs = (
        side(side=InstantSide(call_s), judge=judge, usual_call_s=call_s) for side in (TimedCandidate, TimedSide)
    )
    ours.threads = theirs.threads = thread_count(os.getpid()) + 8
    return AlternatingRun(ours, theirs, settings), ours


@pytest.mark.parametrize(("call_s", "least"), [(1e-3, 2), (1.0, 1)], ids=["many calls", "blocks of one call"])
def test_every_kind_is_graded_where_no_block_that_counts_has_one(call_s: float, least: int) -> None:
    judge = BusyJudge()
    measured, ours = run(judge, call_s=call_s)
    pairs = measured.alternate().pairs
    measured.expect_every_kind()
    wanted = dict.fromkeys(KINDS, least) | {OUTLIERS: 3}  # a mask or a length may hide those of one set
    assert {kind: judge.graded.count(kind) >= wanted[kind] for kind in KINDS} == dict.fromkeys(KINDS, True)
    assert pairs == len(ours.blocks) == 8 and not ours.coverage.due()


@pytest.mark.parametrize("kind", KINDS)
def test_a_wrong_output_of_any_kind_ends_the_measurement(kind: str) -> None:
    measured, _ = run(BusyJudge(wrong=kind))
    with pytest.raises(Distrusted):
        measured.expect_every_kind()


def test_a_judge_that_gives_no_wanted_kind_is_broken() -> None:
    measured, _ = run(BusyJudge(gives=False))
    with pytest.raises(EngineError, match="asked for"):
        measured.expect_every_kind()


def test_the_kind_that_was_graded_least_is_due_first_and_chosen_first() -> None:
    coverage = Coverage(kinds=KINDS, least=2)
    coverage.note((3, 4), {3: OUTLIERS}, "")
    assert coverage.due() == ("mixed_signs",) * 2 + ("parameter:mixed_signs",) * 2 + (OUTLIERS,) * 2
    assert coverage.rarest({3: "outliers", 7: "mixed_signs"}, random.Random(1)) == 7
    coverage.note((5, 6), {}, "parameter:mixed_signs")
    assert coverage.due() == ("mixed_signs",) * 2 + (OUTLIERS,) * 2


def test_whole_trials_come_from_the_first_blocks_on_in_a_secret_order() -> None:
    trials = tuple(as_kind(trial) for trial in (LARGE_INPUTS, LARGE_VECTORS, NEAR_ONE))
    firsts: set[str] = set()
    for _ in range(12):
        judge = BusyJudge()
        judge.problem.timed_kinds, judge.problem.scalars = (*trials, *KINDS), {}
        measured, ours = run(judge, settings=FOUR_TIMES_AS_LONG)  # three of four pairs have one, by chance
        measured.alternate()
        assert not ours.coverage.due_trials()
        firsts.add(next(kind for kind in judge.graded if kind in trials))
    assert len(firsts) > 1
