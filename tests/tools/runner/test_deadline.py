from __future__ import annotations

import contextlib
import time

import pytest
from tests.candidates import candidate_of
from tests.tools.conftest import exp_problem

from ridgeline.tools.engine import VerifyTask
from ridgeline.tools.records.evaluation_limit import (
    LEAST_TRIALS,
    MOST_TRIALS,
    evaluation_limit_s,
    timing_limit_s,
    verify_limit_s,
)
from ridgeline.tools.records.results import Build
from ridgeline.tools.records.vocabulary import Purpose, ReasonCode, Status
from ridgeline.tools.runner.deadline import Deadline, loop_limit_s


def test_only_what_is_charged_is_taken_off_and_nothing_below_zero() -> None:
    deadline = Deadline(0.05, "verification")
    time.sleep(0.06)
    assert deadline.left_s == 0.05
    with contextlib.suppress(TimeoutError), deadline.charged():
        time.sleep(0.06)
        raise TimeoutError
    assert deadline.left_s == 0.0
    finding = deadline.passed("during a call").finding
    assert (finding.code, finding.status) == (ReasonCode.EVALUATION_DEADLINE, Status.TIMEOUT)
    assert "the 0.05 s that verification may wait for one kernel: stopped during a call" in finding.reason


def test_verification_and_timing_have_half_each_of_what_an_evaluation_may_take() -> None:
    for call_timeout_s in (0.1, 30.0, 3600.0):
        whole = evaluation_limit_s(call_timeout_s)
        assert whole >= call_timeout_s
        assert verify_limit_s(call_timeout_s) + timing_limit_s(call_timeout_s, Purpose.EVALUATE) == whole


def test_a_verification_has_time_for_each_trial_under_each_secret() -> None:
    least = verify_limit_s(30.0)
    assert verify_limit_s(30.0, 2) == verify_limit_s(30.0, LEAST_TRIALS) == least
    assert verify_limit_s(30.0, MOST_TRIALS) == least * MOST_TRIALS / LEAST_TRIALS
    assert verify_limit_s(30.0, draws=3) == 3 * least
    assert verify_limit_s(30.0, draws=3, extra_trials=2 * LEAST_TRIALS) == 5 * least
    assert verify_limit_s(30.0, sanitized=True) == 2 * least


@pytest.mark.parametrize("trials", range(2, MOST_TRIALS + 1))
@pytest.mark.parametrize(
    ("extra_trials", "own_secrets", "before_s"),
    [(0, 0, 120.0), (20, 3, 420.0), (40, 3, 720.0)],  # a search's, a certificate's, its audit's
)
def test_no_verification_has_less_time_than_it_had_before(
    trials: int, extra_trials: int, own_secrets: int, before_s: float
) -> None:
    """Before: an eighth more for each further trial, whatever the reference takes and however many secrets are drawn."""
    task = VerifyTask(
        problem=exp_problem(),
        candidate=candidate_of(""),
        build=Build(key="k", status=Status.OK),
        extra_trials=extra_trials,
        own_secrets=own_secrets,
    )
    assert before_s <= task.deadline_s(trials)
    assert task.deadline_s(trials) + task.further_s(trials) <= task.candidate_s


def test_what_fresh_secrets_add_is_granted_once() -> None:
    deadline = Deadline(0.05, "verification", further_s=0.15)
    assert deadline.left_s == 0.05
    deadline.extend()
    deadline.extend()
    assert deadline.left_s == pytest.approx(0.2)
    assert "the 0.2 s that verification may wait" in deadline.passed("during a call").finding.reason


@pytest.mark.parametrize("limit_s", [0.1, 2.0, 30.0])
def test_a_loop_of_a_few_calls_may_take_each_calls_limit_and_a_long_one_not_that_of_hundreds(limit_s: float) -> None:
    for calls in (1, 2, 3):
        assert loop_limit_s(calls, limit_s) >= calls * limit_s
    assert loop_limit_s(512, limit_s) <= max(3 * limit_s, 10.0)
