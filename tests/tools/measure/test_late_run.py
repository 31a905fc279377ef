"""The run after many calls that nobody examines: a judge and a runner that answer, and real threads."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pytest
from tests.tools.measure.test_fresh_secrets import TOUCHED
from tests.tools.measure.verifying import IdleRunner, JudgeByFactor

from ridgeline.tools.judge.messages import Examine
from ridgeline.tools.judge.replies import Element, Touched
from ridgeline.tools.measure import verify
from ridgeline.tools.measure.verify import Verification
from ridgeline.tools.records.finding import Finding
from ridgeline.tools.records.trial_words import LATE
from ridgeline.tools.records.vocabulary import PrecisionClass, ReasonCode

NAME = "nominal_0"
SEVERAL = 3  # threads: one that ends meanwhile hides no other


class LateFault(JudgeByFactor):
    """Finds nothing but in the last run, where values are wrong or an input was written."""

    def __init__(self, found: Touched | None) -> None:
        super().__init__([0.1])
        self.found = found
        self.is_late = False

    def examine(self, request: Examine) -> Any:
        graded = super().examine(request)
        if not self.is_late:
            return graded
        wrong = replace(graded.trial, passed=False, rel_error=1.0)
        worst = Element(index=(0,), got=1.0, expected=2.0)
        return self.found or replace(graded, trial=wrong, measured=None, worst=worst)


class LateThreads(IdleRunner):
    """Starts threads in the call after so many."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self.after = after
        self.over = threading.Event()
        self.threads = [threading.Thread(target=self.over.wait) for _ in range(SEVERAL)]

    def run(self, set_index: int) -> Any:
        if self.calls == self.after:
            for thread in self.threads:
                thread.start()
        return super().run(set_index)

    def end_threads(self) -> None:
        self.over.set()
        for thread in self.threads:
            thread.join()


def late_run(judge: JudgeByFactor, runner: IdleRunner) -> Finding | None:
    verification = Verification(judge, runner, PrecisionClass.FP32)  # type: ignore[arg-type]
    assert verification._run_trials((NAME,)) is None
    if isinstance(judge, LateFault):
        judge.is_late = True
    return verification._late_run(NAME)


@pytest.mark.parametrize(
    ("found", "code"), [(None, ReasonCode.WRONG_VALUES), (TOUCHED, ReasonCode.INPUT_WRITTEN)], ids=["wrong", "touched"]
)
def test_a_fault_of_the_late_run_is_said_to_come_after_the_first_calls(found: Touched | None, code: ReasonCode) -> None:
    fault = late_run(LateFault(found), IdleRunner())
    assert fault is not None and fault.code is code
    assert fault.reason.startswith(f"{LATE}{NAME}: ")


@pytest.mark.parametrize("after", [2, verify._LATE_CALLS[0]])  # two calls are examined before
def test_threads_that_begin_in_late_calls_are_found(after: int) -> None:
    runner = LateThreads(after)
    try:
        fault = late_run(JudgeByFactor([0.1]), runner)
    finally:
        runner.end_threads()
    assert fault is not None and fault.code is ReasonCode.NEW_THREAD


def test_a_late_run_like_the_first_ones_passes() -> None:
    assert late_run(JudgeByFactor([0.1]), LateThreads(after=-1)) is None
