"""The lines that the command line prints of one kernel's profile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ridgeline.tools.errors import InputError
from ridgeline.tools.records.results import Profile

if TYPE_CHECKING:
    from ridgeline.checkpoints.archive import Archive


def stored_profile(archive: Archive, candidate_id: str) -> Profile:
    """Return what the search found out about a kernel.

    Raises:
        InputError: it has no such kernel, or did not profile it.
    """
    try:
        archive.candidate(candidate_id)
    except KeyError:
        raise InputError(f"the run has no kernel {candidate_id!r}: ridgeline show lists ideas and lineage") from None
    evaluation = archive.evaluation(candidate_id)
    stored = archive.find("profiles", evaluation.key) if evaluation else None
    if stored is None:
        raise InputError(f"{candidate_id} was not profiled: a search profiles its fastest kernels only")
    return Profile.from_json(dict(stored))


def profile_lines(profile: Profile, *, with_counters: bool) -> list[str]:
    """Return the paragraph, the stages and, on request, the raw counters, a line each."""
    lines = [profile.paragraph or " ".join(f"{note}." for note in profile.notes)]
    lines += [f"  {stage.name:<24} {stage.share:>4.0%}  {stage.ms:.4g} ms a call" for stage in profile.stages]
    if with_counters:
        lines += [f"  {name} = {value:g}" for name, value in sorted(profile.details.items())]
    return lines
