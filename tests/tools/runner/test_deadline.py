from __future__ import annotations

import contextlib
import time

import pytest

from ridgeline.tools.records.evaluation_limit import evaluation_limit_s, timing_limit_s, verify_limit_s
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
    assert verify_limit_s(30.0, extra_trials=8) == 2 * verify_limit_s(30.0)


@pytest.mark.parametrize("limit_s", [0.1, 2.0, 30.0])
def test_a_loop_of_a_few_calls_may_take_each_calls_limit_and_a_long_one_not_that_of_hundreds(limit_s: float) -> None:
    for calls in (1, 2, 3):
        assert loop_limit_s(calls, limit_s) >= calls * limit_s
    assert loop_limit_s(512, limit_s) <= max(3 * limit_s, 10.0)
