"""A candidate's end in a few words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ridgeline.checkpoints.history.repeated_sources import repeat_words
from ridgeline.tools.records.vocabulary import Status
from ridgeline.tools.wording import in_users_words, ratio_words


def describe_outcome(event: Mapping[str, Any]) -> str:
    """Return a finished candidate's outcome in a few words, and which earlier kernel it repeats."""
    repeat = repeat_words(event.get("same_source_as", ""))
    return f"{_outcome_words(event)}{f', {repeat}' if repeat else ''}"


def _outcome_words(event: Mapping[str, Any]) -> str:
    if event["status"] == Status.OK and event["speedup"] is not None:
        speedup = ratio_words(event["speedup"], event["speedup_ci95"], unit="eager")
        return f"ok {speedup}{_paired_times(event)}"
    return f"{event['status']}: {' '.join(in_users_words(str(event['reason'])).split())[:160]}"


def _paired_times(event: Mapping[str, Any]) -> str:
    """Return the kernel's median time and eager's in the same run; eager's own line comes from another run."""
    if event["median_ms"] is None:
        return ""
    if event["reference_ms"] is None:
        return f", {event['median_ms']:.3f} ms"
    return f", medians {event['median_ms']:.3f} against {event['reference_ms']:.3f} ms"
