"""Which candidates are judged again under fresh secrets, and what their verdict holds: a judge and a runner that answer."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from tests.descriptions import description_of
from tests.tools.measure.answering import Answering

from ridgeline.tools.judge.messages import Examine, ExamineRepeat, Poison, Prepare
from ridgeline.tools.judge.replies import Different, Done, Element, Graded, Same
from ridgeline.tools.measure import verify
from ridgeline.tools.measure.verify import FRESH_SECRETS, Verification
from ridgeline.tools.records.error_map import LimitUse, Measure
from ridgeline.tools.records.results import Trial, Verdict
from ridgeline.tools.records.vocabulary import PrecisionClass, ReasonCode, Status

TRIALS = ("nominal_0", "nominal_1", "shifted")


class JudgeByFactor(Answering):
    """Grades `shifted` by the factors given, one for each secret; other trials lie at a tenth of their limits."""

    def __init__(self, factors: Sequence[float], *, difference: float = 0.0) -> None:
        super().__init__(n_sets=2)
        self.problem = SimpleNamespace(trials=TRIALS, n_sets=2, description=description_of(), degenerate=None)
        self.factors = factors
        self.difference = difference  # between two runs, over the gate
        self.draw = 0

    def redraw(self) -> None:
        self.draw += 1

    def prepare(self, _request: Prepare) -> Done:
        return Done()

    def poison(self, _request: Poison) -> Done:
        return Done()

    def detect_change(self, _request: Any) -> Any:
        return SimpleNamespace(changed=False)

    def examine(self, request: Examine) -> Graded:
        factor = self.factors[min(self.draw, len(self.factors) - 1)] if request.trial == "shifted" else 0.1
        use = LimitUse(measure=Measure.ROW, figure=factor * 4e-5, limit=4e-5)
        trial = Trial(name=request.trial, rel_error=1e-6, gate=1e-5, passed=use.is_within, nearest=use)
        worst = None if use.is_within else Element(index=(0,), got=1.0, expected=2.0)
        return Graded(trial=trial, measured=PrecisionClass.FP32 if use.is_within else None, output="out", worst=worst)

    def examine_repeat(self, request: ExamineRepeat) -> Same | Different:
        if not self.difference:
            return Same()
        graded = self.examine(Examine(trial=request.trial, set_index=request.set_index))
        return Different(difference=self.difference * 1e-5, graded=graded)


@dataclass
class IdleRunner:
    """Answers at once; the process it names is the test's own, which has no new threads."""

    pid: int = os.getpid()
    calls: int = 0

    def run(self, _set_index: int) -> Any:
        self.calls += 1
        return SimpleNamespace(parent_s=1e-4)

    def expect_silence(self) -> None: ...

    def cont(self) -> None: ...

    def stop(self) -> None: ...


@pytest.fixture(autouse=True)
def at_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out what looks at a process: threads, idle time."""
    monkeypatch.setattr(verify, "thread_count", lambda _pid: 1)
    monkeypatch.setattr(Verification, "_idle_share", lambda _self: 0.0)
    monkeypatch.setattr(verify, "_SETTLE_S", 0.0)
    monkeypatch.setattr(verify, "SPIN_S", 0.0)


def judged(judge: JudgeByFactor, *, own_secrets: int = 0) -> Verdict:
    runner: Any = IdleRunner()
    process: Any = judge
    return Verification(process, runner, PrecisionClass.FP32).run(own_secrets=own_secrets)


@pytest.mark.parametrize("factor", [0.0, 0.3, 0.5])
def test_a_candidate_up_to_half_of_every_limit_is_judged_once(factor: float) -> None:
    judge = JudgeByFactor([factor])
    verdict = judged(judge)
    assert (verdict.status, verdict.draws, judge.draw) == (Status.OK, 1, 0)
    assert verdict.margin == pytest.approx(max(factor, 0.1))


def test_a_candidate_beyond_half_of_a_limit_meets_every_trial_under_three_fresh_secrets() -> None:
    verdict = judged(JudgeByFactor([0.51, 0.2, 0.9, 0.4]))
    assert (verdict.status, verdict.draws) == (Status.OK, 1 + FRESH_SECRETS)
    assert [(t.draw, t.name) for t in verdict.trials] == [(draw, name) for draw in range(4) for name in TRIALS]
    assert verdict.margin == pytest.approx(0.9)
    nearest = verdict.nearest_trial
    assert nearest is not None and (nearest.name, nearest.draw) == ("shifted", 2)


@pytest.mark.parametrize("failing", [1, 2, 3])
def test_one_fresh_secret_that_disagrees_rejects_and_the_limit_is_named(failing: int) -> None:
    factors = [0.8] * 4
    factors[failing] = 1.5
    verdict = judged(JudgeByFactor(factors))
    assert (verdict.status, verdict.reason_code) == (Status.WRONG, ReasonCode.WRONG_VALUES)
    assert f"shifted (secret {failing + 1}): " in verdict.reason
    assert "a row's error 6e-05, gate 4e-05 (1.5 x)" in verdict.reason
    assert (verdict.margin, verdict.draws) == (pytest.approx(1.5), failing + 1)


@pytest.mark.parametrize("factor", [1.001, 1.9, 30.0])
def test_a_failed_trial_is_final(factor: float) -> None:
    judge = JudgeByFactor([factor, 0.1, 0.1, 0.1])
    assert judged(judge).status is Status.WRONG
    assert judge.draw == 0


def test_a_difference_between_two_runs_beyond_half_of_the_gate_is_judged_again() -> None:
    verdict = judged(JudgeByFactor([0.1], difference=0.7))
    assert (verdict.status, verdict.draws, verdict.margin) == (Status.OK, 4, pytest.approx(0.7))
    nearest = verdict.nearest_trial
    assert nearest is not None and nearest.nearest is not None
    assert nearest.nearest.measure is Measure.REPEAT
    verdict = judged(JudgeByFactor([0.1], difference=1.2))
    assert verdict.reason_code is ReasonCode.NONDETERMINISTIC
    assert "differ by 1.2e-05, gate 1e-05" in verdict.reason


def test_a_certificate_draws_its_own_secrets_and_three_more_near_a_limit() -> None:
    far, near = JudgeByFactor([0.9, 0.2, 0.2, 0.2]), JudgeByFactor([0.2, 0.2, 0.2, 0.6, 0.2, 0.2, 0.2])
    assert (judged(far, own_secrets=3).draws, far.draw) == (3, 3)  # the judge's own secret is not met
    assert (judged(near, own_secrets=3).draws, near.draw) == (6, 6)
