"""Whole trials in timed blocks: each is graded once, alone in its block, and the candidate has its scalars meanwhile."""

from __future__ import annotations

import os
from collections.abc import Sequence
from types import SimpleNamespace

import pytest
from tests.tools.measure.test_coverage import SETTINGS, BusyJudge, InstantSide

from ridgeline.tools.judge.messages import Check, Renew
from ridgeline.tools.judge.replies import Renewed
from ridgeline.tools.machine.process_use import thread_count
from ridgeline.tools.measure.alternation import AlternatingRun
from ridgeline.tools.measure.distrust import Distrusted
from ridgeline.tools.measure.timed_side import TimedCandidate, TimedSide
from ridgeline.tools.records.results import Trial
from ridgeline.tools.records.trial_names import SCALARS, SMALL_PARAMETERS, as_kind

KINDS = (as_kind(SMALL_PARAMETERS), as_kind(SCALARS))


class TrialJudge(BusyJudge):
    """A judge of a problem with two such trials, one of which has other scalars."""

    def __init__(self, wrong: str = "") -> None:
        super().__init__(wrong=wrong)
        self.problem.timed_kinds = KINDS
        self.problem.scalars = {SCALARS: (0.7,)}
        self.problem.description = SimpleNamespace(signature=SimpleNamespace(given_scalars=(0.5,)))
        self.blocks: list[list[str]] = []

    def renew(self, request: Renew) -> Renewed:
        self.kinds = {request.order[0]: request.wanted[0]} if request.wanted else {}
        self.blocks.append([])
        return Renewed(slowdown=0.0, trial_sets=tuple(self.kinds), kinds=tuple(self.kinds.values()))

    def check(self, request: Check) -> Trial:
        self.blocks[-1].append(self.kinds.get(request.set_index, ""))
        return super().check(request)


class GivenSide(InstantSide):
    """A side that keeps what it was told, in order."""

    def __init__(self) -> None:
        super().__init__(1e-3)
        self.told: list[object] = []

    def loop(self, sets: Sequence[int]) -> object:  # type: ignore[override]
        self.told.append("loop")
        return super().loop(sets)

    def set_scalars(self, values: Sequence[float]) -> None:
        self.told.append(tuple(values))


def measured(judge: TrialJudge) -> tuple[AlternatingRun, TimedCandidate, GivenSide]:
    side = GivenSide()
    ours = TimedCandidate(side=side, judge=judge, usual_call_s=1e-3)  # type: ignore[arg-type]
    theirs = TimedSide(side=InstantSide(1e-3), judge=judge, usual_call_s=1e-3)  # type: ignore[arg-type]
    ours.threads = theirs.threads = thread_count(os.getpid()) + 8
    return AlternatingRun(ours, theirs, SETTINGS), ours, side


def test_each_trial_is_graded_once_and_nothing_else_in_its_block() -> None:
    judge = TrialJudge()
    run, ours, _ = measured(judge)
    run.alternate()
    run.expect_every_kind()
    assert sorted(kinds for kinds in judge.blocks if any(kinds)) == sorted([kind] for kind in KINDS)
    assert len(ours.blocks) == 8 and not ours.coverage.due()


def test_a_candidate_has_a_trials_scalars_for_its_block_alone() -> None:
    run, _, side = measured(TrialJudge())
    run.expect_every_kind()
    blocks = ["loop"], [(0.7,), "loop", (0.5,)]  # in either order, which is secret
    assert side.told in (blocks[0] + blocks[1], blocks[1] + blocks[0])


@pytest.mark.parametrize("wrong", KINDS)
def test_a_wrong_output_of_a_trial_ends_the_measurement(wrong: str) -> None:
    run, _, _ = measured(TrialJudge(wrong=wrong))
    with pytest.raises(Distrusted):
        run.expect_every_kind()
