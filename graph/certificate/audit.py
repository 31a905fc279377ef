"""The audit of an unusual gain, which more often is an error of measurement than a fast kernel.

Gains beyond AUDIT_ABOVE times the best baseline are measured once more after every other step has passed: a second
verification, under secrets of its own and on AUDIT_TRIALS further nominal trials in a new process, must pass and find the
same precision class, and a further timing as long as the certificate's, in a new process, must agree with every
re-timing. Beyond QUARANTINE_ABOVE times eager there are LONG_RETIMINGS of them. Two timings agree when their intervals
for the speedup, widened by SPREAD, overlap. Not covered: a second machine, other shapes, a reader's look at the source.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any

from ridgeline.graph.certificate.measuring import failure_of, time_anew, verify_anew
from ridgeline.tools.records.finding import Finding
from ridgeline.tools.records.results import QUARANTINE_ABOVE, Build, Timing, Verdict
from ridgeline.tools.records.search import Candidate
from ridgeline.tools.records.vocabulary import ReasonCode

if TYPE_CHECKING:
    from ridgeline.graph.search.context import SearchContext

AUDIT_ABOVE = 3.0
"""Times the best baseline; most published gains beyond it were errors of a harness."""
AUDIT_TRIALS = 40
AUDIT_RETIMINGS = 1
LONG_RETIMINGS = 2
SPREAD = 0.1
"""Two timings agree when their intervals overlap once widened by this; drift lies within the intervals."""
UNCONFIRMED = "needs a second machine or a longer protocol"


@dataclass(slots=True, kw_only=True)
class Audit:
    """The audit of one winner; `finding` says why the winner did not pass."""

    is_quarantined: bool  # until the longer protocol has confirmed the gain
    verdict: Verdict | None = None
    timings: list[Timing] = field(default_factory=list)
    finding: Finding | None = None

    @property
    def passed(self) -> bool:
        """Say whether the verification and every timing agreed, as far as the audit has come."""
        return self.finding is None

    def to_json(self) -> dict[str, Any]:
        """Return the audit's part of certificate.json."""
        return {
            "passed": self.passed,
            "reason": self.finding.reason if self.finding else "",
            "verification": self.verdict.to_json() if self.verdict else None,
            "timings": [timing.to_json() for timing in self.timings],
        }


def needs_audit(speedup: float | None, speedup_vs_best: float | None) -> bool:
    """Say whether a gain has to be audited."""
    return (speedup_vs_best or 0.0) > AUDIT_ABOVE or (speedup or 0.0) > QUARANTINE_ABOVE


async def run_audit(
    context: SearchContext, candidate: Candidate, build: Build, verdict: Verdict, timings: Sequence[Timing]
) -> Audit:
    """Return the audit of a kernel that was verified and re-timed; EngineError as the engine raises it."""
    is_extreme = any((timing.speedup or 0.0) > QUARANTINE_ABOVE for timing in timings)
    audit = Audit(is_quarantined=is_extreme)
    await _verify(context, audit, candidate, build, verdict)
    for _ in range(LONG_RETIMINGS if is_extreme else AUDIT_RETIMINGS):
        if audit.passed:
            await _time(context, audit, candidate, build)
    if audit.passed and (reason := _disagreement([*timings, *audit.timings])):
        reason = f"{UNCONFIRMED if is_extreme else 'audit'}: {reason}"
        audit.finding = Finding(code=ReasonCode.TIMINGS_SPREAD, reason=reason)
    if audit.passed:
        audit.is_quarantined = False
    return audit


async def _verify(context: SearchContext, audit: Audit, candidate: Candidate, build: Build, before: Verdict) -> None:
    verdict = await verify_anew(context, candidate, build, step="audit verify", extra_trials=AUDIT_TRIALS)
    audit.verdict = verdict
    audit.finding = failure_of(verdict, "audit")
    if audit.passed and verdict.precision_class != before.precision_class:
        classes = f"{verdict.precision_class} precision, {before.precision_class} in the verification before"
        audit.finding = Finding(code=ReasonCode.NONDETERMINISTIC, reason=f"audit: {classes}")


async def _time(context: SearchContext, audit: Audit, candidate: Candidate, build: Build) -> None:
    step = f"audit time {len(audit.timings)}"
    timing = await time_anew(context, candidate, build, audit.verdict, step=step)
    audit.timings.append(timing)
    audit.finding = failure_of(timing, "audit")


def _disagreement(timings: Sequence[Timing]) -> str:
    """Return how two timings disagree, in words; "" where all agree."""
    intervals = [timing.speedup_ci95 for timing in timings if timing.speedup_ci95 is not None]
    if len(intervals) < len(timings):
        return "a timing has no interval"
    for first, second in combinations(intervals, 2):
        if max(first[0], second[0]) > (1 + SPREAD) * min(first[1], second[1]):
            return f"one timing gives {first[0]:.2f} to {first[1]:.2f}x, another {second[0]:.2f} to {second[1]:.2f}x"
    return ""
