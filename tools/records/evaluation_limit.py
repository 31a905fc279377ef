"""The longest that one candidate may keep its builder and its runners busy, and the part that each step has of it.

What counts is the time for which the parent waits for the candidate: the loading of it and every call. The judge's own
work (inputs, grades, eager PyTorch's blocks) comes on top. It depends on the reference, not on the candidate.
"""

from __future__ import annotations

from ridgeline.tools.records.vocabulary import Purpose

LEAST_S = 240.0
CALLS = 8
"""A candidate may take this many times its longest call, and at least LEAST_S: a first call is often its slowest."""

LONGEST_BUILD_S = 300.0
"""A build may take this long by the clock, whatever its compiler's processor time: a module's import may sleep."""

LEAST_TRIALS = 12
"""Trials that half of an evaluation's time is for: the nominal and the transformed ones. A verification of more has longer, one
of fewer (a reference may refuse all but the two nominal ones) as long as one of these."""
MOST_TRIALS = 66
"""Trials of a reference that takes every kind; an engine waits for an evaluator as if each reference did."""
_SANITIZED = 2.0
"""A sanitizer's build is an order of magnitude slower, and is called once where others are called twice."""
_CERTIFIED = 2.0
"""A certificate's timing has at least twice the pairs of blocks."""


def evaluation_limit_s(call_timeout_s: float) -> float:
    """Return how long verification and timing may keep a candidate busy together, half of it each."""
    return max(LEAST_S, CALLS * call_timeout_s)


def verify_limit_s(
    call_timeout_s: float,
    trials: int = LEAST_TRIALS,
    *,
    draws: int = 1,
    extra_trials: int = 0,
    sanitized: bool = False,
) -> float:
    """Return the part of a verification: half of an evaluation for LEAST_TRIALS, and for more in proportion.

    Args:
        call_timeout_s: the problem's.
        trials: what its reference takes.
        draws: secrets under each of which all of these are met.
        extra_trials: further nominal trials, met under the first secret alone.
        sanitized: the build is a sanitizer's.
    """
    met = max(trials, LEAST_TRIALS) * draws + extra_trials
    part = evaluation_limit_s(call_timeout_s) / 2 * met / LEAST_TRIALS
    return part * _SANITIZED if sanitized else part


def timing_limit_s(call_timeout_s: float, purpose: Purpose) -> float:
    """Return the part of a timing."""
    part = evaluation_limit_s(call_timeout_s) / 2
    return part * _CERTIFIED if purpose is Purpose.CERTIFY else part
