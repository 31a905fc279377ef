"""Contents that the reference refuses while something is timed: a measurement begins anew without them (no torch here).

The trusted judge decides, by running the reference. A candidate that refuses the same contents, as one with the reference's
own assertion does, is not blamed for it. One that fails on others is, as ever.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from ridgeline.tools.errors import ContentsRefusedError
from ridgeline.tools.judge.messages import LeaveOut
from ridgeline.tools.judge.process import JudgeProcess
from ridgeline.tools.machine.logs import logger_of
from ridgeline.tools.records.results import Timing
from ridgeline.tools.records.vocabulary import Label
from ridgeline.tools.runner.failures import RunnerFailure

T = TypeVar("T")

logger = logger_of(__name__)


def within_domain(
    judge: JudgeProcess, measure: Callable[[], T], *, before_again: Callable[[], None] = lambda: None
) -> T:
    """Return what `measure` gives; after contents that the reference refuses, measured anew without their kinds.

    Raises:
        ContentsRefusedError: the reference refuses nominal contents.
        Exception: as `measure` does.
    """
    while True:
        try:
            return measure()
        except (ContentsRefusedError, RunnerFailure) as failure:
            if not leaves_out_refused(judge):
                raise
            logger.info("measuring again without what the reference refuses: %s", failure)
            before_again()


def leaves_out_refused(judge: JudgeProcess) -> bool:
    """Leave out of timed sets the kinds that the reference refuses of what lies there; return whether there are any."""
    found = judge.ask(LeaveOut())
    if found.left_out:
        left_out = (*judge.problem.left_out, *found.left_out)
        judge.problem = replace(judge.problem, timed_kinds=found.timed_kinds, left_out=left_out)
    return bool(found.left_out)


def with_left_out(timing: Timing, judge: JudgeProcess) -> Timing:
    """Return a timing with the kinds of contents that it has not met, and their label, where there are some."""
    left_out = judge.problem.left_out
    if not left_out:
        return timing
    return replace(timing, skipped=left_out, labels=(*timing.labels, Label.TRIAL_SKIPPED))
