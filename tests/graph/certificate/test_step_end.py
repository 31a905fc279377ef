"""How a certificate's step ends, and what is told of it."""

from __future__ import annotations

from ridgeline.graph.certificate.step_end import StepEnd, StepState
from ridgeline.tools.records.finding import Finding
from ridgeline.tools.records.vocabulary import ReasonCode

NO_GAIN = Finding(code=ReasonCode.NO_GAIN, reason="re-timing: slower")


def test_a_step_with_a_finding_failed_and_says_why() -> None:
    end = StepEnd.of(NO_GAIN, "looked at")
    assert (end.state, end.passed, end.detail, end.finding) == (StepState.FAILED, False, "re-timing: slower", NO_GAIN)


def test_a_step_without_a_finding_passed_and_may_say_more() -> None:
    end = StepEnd.of(None, "looked at")
    assert (end.state, end.passed, end.detail, end.finding) == (StepState.PASSED, True, "looked at", None)
    assert StepEnd.passing() == StepEnd(state=StepState.PASSED)


def test_a_step_that_was_skipped_or_not_done_has_neither_passed_nor_failed() -> None:
    skipped, undone = StepEnd.skipping("no tool"), StepEnd(state=StepState.NOT_DONE, detail="ncu hung")
    assert [(end.passed, end.finding, end.detail) for end in (skipped, undone)] == [
        (None, None, "no tool"), (None, None, "ncu hung"),
    ]  # fmt: skip
