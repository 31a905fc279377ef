"""The measurements of a certificate: verifications and timings in new processes, and the findings of those that fail."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ridgeline.tools.engine import BenchmarkTask, VerifyTask
from ridgeline.tools.records.finding import Finding
from ridgeline.tools.records.results import Build, Timing, Verdict
from ridgeline.tools.records.search import Candidate
from ridgeline.tools.records.vocabulary import Purpose, Status

if TYPE_CHECKING:
    from ridgeline.graph.search.context import SearchContext

OWN_SECRETS = 3
"""Secrets that a winner's verification draws for itself, and the audit's again: each is met in every trial."""
EXTRA_TRIALS = 20
"""Further nominal trials of a winner's verification."""
LONGEST_VERIFICATION_S = 1800.0
"""A hundred trials and more, each of which the judge may take seconds to make."""


def failure_of(result: Verdict | Timing, what: str) -> Finding | None:
    """Return the finding of a verification or a timing that did not end well, in words that name it; else None."""
    if result.status is Status.OK:
        return None
    return Finding(code=result.reason_code, reason=f"{what}: {result.status} ({result.reason_code}): {result.reason}")


async def verify_anew(
    context: SearchContext, candidate: Candidate, build: Build, *, step: str, extra_trials: int
) -> Verdict:
    """Return a verification under secrets of its own, with so many further nominal trials."""
    task = VerifyTask(
        problem=context.described,
        candidate=candidate,
        build=build,
        purpose=Purpose.CERTIFY,
        step=step,
        extra_trials=extra_trials,
        own_secrets=OWN_SECRETS,
        timeout_s=LONGEST_VERIFICATION_S,
    )
    return await context.measure(task)


async def time_anew(
    context: SearchContext, candidate: Candidate, build: Build, verdict: Verdict | None, *, step: str
) -> Timing:
    """Return a timing in a new process of a kernel that was verified."""
    assert verdict is not None  # noqa: S101  # its verification ran before, or the certificate had ended
    task = BenchmarkTask(
        problem=context.described,
        candidate=candidate,
        build=build,
        verdict=verdict,
        purpose=Purpose.CERTIFY,
        step=step,
    )
    return await context.measure(task)
