"""Which candidates are judged again under fresh secrets, and what their verdict holds: a judge and a runner that answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.descriptions import description_of
from tests.tools.judge.worker.judging import judging, reference
from tests.tools.measure.verifying import TRIALS, IdleRunner, JudgeByFactor, judged

from ridgeline.tools.judge.messages import Examine, ExamineRepeat
from ridgeline.tools.judge.replies import Beyond, Graded, Missing, Same, Touched
from ridgeline.tools.judge.worker.domain.domain import _MOST_ALONE
from ridgeline.tools.measure import behind_the_clock, verify
from ridgeline.tools.records.error_map import LimitUse, Measure
from ridgeline.tools.records.evaluation_limit import LEAST_TRIALS, MOST_TRIALS, verify_limit_s
from ridgeline.tools.records.precision import FRESH_SECRETS
from ridgeline.tools.records.problem import SkippedTrial
from ridgeline.tools.records.trial_names import (
    ALONE,
    APART,
    ARRANGED,
    AS_MADE,
    CROWDS,
    LARGE_INPUTS,
    MOVED_COPY,
    NEAR_ONE,
    NOMINAL,
    ORDER_ONE,
    SCALARS,
    SIGNED,
    SILENT,
    SIZED,
    SMALL_INPUTS,
    SOLID,
    TINY_NUMBERS,
    TRANSFORMED,
    TWEAKED,
)
from ridgeline.tools.records.vocabulary import Label, PrecisionClass, ReasonCode, Status

DOCS = Path(__file__).parents[3] / "docs"


@pytest.fixture(autouse=True)
def at_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out what looks at a process: threads, idle time."""
    monkeypatch.setattr(verify, "thread_count", lambda _pid: 1)
    monkeypatch.setattr(behind_the_clock, "thread_count", lambda _pid: 1)
    monkeypatch.setattr(behind_the_clock, "_watch", lambda *_: (0.0, 1.0))
    monkeypatch.setattr(verify, "_SETTLE_S", 0.0)


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


TOUCHED, BEYOND = Touched(name="x"), Beyond(output="out", count=4, first=0)
MISSING = Missing(output="out", count=1, total=64, first=3, width=8)


class JudgeOfFault(JudgeByFactor):
    """Finds a fault in `shifted` under the second of a verification's own secrets, in the first run or in the second one."""

    def __init__(self, found: Touched | Beyond | Missing, *, in_repeat: bool, changes: bool = False) -> None:
        super().__init__([0.1])
        self.found = found
        self.in_repeat = in_repeat
        self.changes = changes  # the output, behind the answer

    def _answer(self, request: Any, *, in_repeat: bool, otherwise: Any) -> Any:
        is_here = request.trial == "shifted" and self.draw == 2 and in_repeat is self.in_repeat
        return self.found if is_here else otherwise

    def examine(self, request: Examine) -> Any:
        return self._answer(request, in_repeat=False, otherwise=super().examine(request))

    def examine_repeat(self, request: ExamineRepeat) -> Any:
        return self._answer(request, in_repeat=True, otherwise=Same())

    def detect_change(self, _request: Any) -> Any:
        return SimpleNamespace(changed=self.changes)


@pytest.mark.parametrize(
    ("found", "in_repeat", "code"),
    [
        (TOUCHED, False, ReasonCode.INPUT_WRITTEN),
        (BEYOND, False, ReasonCode.OUT_OF_BOUNDS),
        (BEYOND, True, ReasonCode.OUT_OF_BOUNDS),
        (MISSING, False, ReasonCode.OUTPUT_NOT_WRITTEN),
        (MISSING, True, ReasonCode.STALE_OUTPUT),
    ],
)
def test_a_fault_is_told_with_the_secret_under_which_it_was_found(
    found: Touched | Beyond | Missing, in_repeat: bool, code: ReasonCode
) -> None:
    verdict = judged(JudgeOfFault(found, in_repeat=in_repeat), own_secrets=2)
    assert verdict.reason_code is code
    assert verdict.reason.startswith("shifted (secret 2): ")


@pytest.mark.parametrize("found", [BEYOND, MISSING])
def test_a_second_run_s_fault_is_background_work_where_the_output_goes_on_changing(found: Beyond | Missing) -> None:
    verdict = judged(JudgeOfFault(found, in_repeat=True, changes=True), own_secrets=2)
    assert verdict.reason_code is ReasonCode.BACKGROUND_WORK


def test_a_label_of_several_skipped_trials_comes_once() -> None:
    judge = JudgeByFactor([0.1])
    names = ("row_scaled", "not_varied x", "apart", "not_varied y")
    judge.problem.description = description_of(skipped_trials=tuple(SkippedTrial.of_name(n, "refused") for n in names))
    verdict = judged(judge)
    assert verdict.labels == (Label.TRIAL_SKIPPED, Label.NOT_VARIED) and len(verdict.skipped) == 4


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


def test_a_late_run_nearer_to_a_limit_and_of_another_class_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify, "_LATE_TRIALS", ("nominal_1",))

    class LooserLate(JudgeByFactor):
        seen = 0

        def examine(self, request: Examine) -> Graded:
            graded = super().examine(request)
            self.seen += request.trial == "nominal_1"
            if self.draw or request.trial != "nominal_1" or self.seen < 2:
                return graded
            use = LimitUse(measure=Measure.ROW, figure=0.7 * 4e-5, limit=4e-5)
            return replace(graded, trial=replace(graded.trial, nearest=use), measured=PrecisionClass.TF32)

    verdict = judged(LooserLate([0.1]))
    assert (verdict.status, verdict.precision_class, verdict.margin) == (
        Status.OK, PrecisionClass.TF32, pytest.approx(0.7))  # fmt: skip
    assert verdict.draws == 1 + FRESH_SECRETS
    nearest = verdict.nearest_trial
    assert nearest is not None and (nearest.name, nearest.draw) == ("nominal_1", 0)


def test_a_certificate_draws_its_own_secrets_and_three_more_near_a_limit() -> None:
    far, near = JudgeByFactor([0.9, 0.2, 0.2, 0.2]), JudgeByFactor([0.2, 0.2, 0.2, 0.6, 0.2, 0.2, 0.2])
    assert (judged(far, own_secrets=3).draws, far.draw) == (3, 3)  # the judge's own secret is not met
    assert (judged(near, own_secrets=3).draws, near.draw) == (6, 6)


def test_time_is_added_where_fresh_secrets_decide_and_nowhere_else() -> None:
    far, near, failed = IdleRunner(), IdleRunner(), IdleRunner()
    judged(JudgeByFactor([0.4]), idle=far)
    judged(JudgeByFactor([0.6]), idle=near)
    judged(JudgeByFactor([1.2]), idle=failed)
    assert [each.deadline.left_s for each in (far, near, failed)] == [1.0, 4.0, 1.0]


_SLOW_S = 3.0  # a call of so slow a kernel: none fits into the time of late ones
_PLANNED = (*NOMINAL, *TWEAKED, "shifted", *(name for name in TRANSFORMED if name not in (*TWEAKED, "shifted")))
_DOUBLING = (*_PLANNED, APART, *CROWDS, SOLID, TINY_NUMBERS, *SILENT)
"""The trials of `x * 2`."""
_FIVE_ARGUMENTS = (
    *_PLANNED[:5],
    *(f"{ALONE}_{i}" for i in range(5)),
    *_PLANNED[5:],
    *(APART, *CROWDS, MOVED_COPY, SOLID, TINY_NUMBERS, LARGE_INPUTS, SMALL_INPUTS, *SILENT),
)
"""The trials of `a + b * c - d * e`."""


def calls_of(trials: Sequence[str], factor: float, **asked: int) -> int:
    idle = IdleRunner(call_s=_SLOW_S)
    verdict = judged(JudgeByFactor([factor], trials=trials), idle=idle, **asked)
    assert verdict.status is Status.OK
    return idle.calls


def test_the_page_says_how_often_a_verification_calls_a_kernel() -> None:
    page = " ".join((DOCS / "interface.md").read_text(encoding="utf-8").split())
    least, doubling, five = (calls_of(trials, 0.1) for trials in (NOMINAL, _DOUBLING, _FIVE_ARGUMENTS))
    near, five_near = calls_of(_DOUBLING, 0.6), calls_of(_FIVE_ARGUMENTS, 0.6)
    assert f"{doubling} times for `x * 2` ({len(_DOUBLING)} trials)" in page
    assert f"{five} for `a + b * c - d * e` ({len(_FIVE_ARGUMENTS)})" in page
    assert f"{least} where a reference takes none but the two nominal ones" in page
    assert f"these two {near} and {five_near} times near a limit" in page
    assert f"120 s for up to {LEAST_TRIALS} trials" in page


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("args", "body", "trials"),
    [(("x",), "x * 2", _DOUBLING), (("a", "b", "c", "d", "e"), "a + b * c - d * e", _FIVE_ARGUMENTS)],
)
def test_the_references_that_the_page_names_take_so_many_trials(
    args: tuple[str, ...], body: str, trials: tuple[str, ...], tmp_path: Path
) -> None:
    source = reference(", ".join(args), f"return {body}", ", ".join("torch.randn(64, 128)" for _ in args))
    with judging(source, tmp_path) as judge:
        taken = judge.problem.trials
    assert {name for name in taken if not name.startswith(ALONE)} == {n for n in trials if not n.startswith(ALONE)}
    assert len(taken) == len(trials)


@pytest.mark.parametrize("page", ["judge.md", "cheats.md"])
def test_the_pages_say_how_many_calls_go_unexamined(page: str) -> None:
    low, high = verify._LATE_CALLS
    assert f"{low} to {high - 1} unexamined calls" in (DOCS / page).read_text(encoding="utf-8")


def test_a_kernel_of_nearly_four_seconds_a_call_is_judged_in_time_whatever_the_reference_takes() -> None:
    default_s, call_s = 30.0, 3.9
    for arguments in range(7):
        trials = (*_PLANNED[:5], *(f"{ALONE}_{i}" for i in range(arguments)), *_PLANNED[5:])
        first_s = verify_limit_s(default_s, len(trials))
        assert call_s * calls_of(trials, 0.1) <= first_s
        further_s = verify_limit_s(default_s, len(trials), draws=FRESH_SECRETS)
        assert call_s * calls_of(trials, 0.6) <= first_s + further_s
        planned_s = verify_limit_s(default_s, len(trials), draws=3, extra_trials=40)
        assert call_s * calls_of(trials, 0.1, extra_trials=40, own_secrets=3) <= planned_s


def test_the_deadline_is_for_the_nominal_and_transformed_trials_at_least_and_knows_the_most_of_a_reference() -> None:
    assert len(_PLANNED) == len(NOMINAL + TRANSFORMED) == LEAST_TRIALS
    further = (
        APART,
        *CROWDS,
        *ARRANGED,
        NEAR_ONE,
        ORDER_ONE,
        *SIZED,
        *(f"{ALONE}_{i}" for i in range(_MOST_ALONE)),
        *SIGNED,
        SCALARS,
        AS_MADE,
    )
    assert len(_PLANNED) + len(further) == MOST_TRIALS
