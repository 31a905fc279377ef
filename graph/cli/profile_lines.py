"""The lines that the command line prints of one kernel's profile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ridgeline.checkpoints.history.diagnoses import find_profile, profiled_kernels
from ridgeline.checkpoints.history.lineage import finding
from ridgeline.tools.errors import InputError
from ridgeline.tools.records.results import Profile
from ridgeline.tools.records.vocabulary import Status

if TYPE_CHECKING:
    from ridgeline.checkpoints.archive import Archive

NAMED = 5
"""Kernels with a profile that a message names at most."""


def stored_profile(archive: Archive, candidate_id: str) -> Profile:
    """Return what the search, else the kernel's certificate, found out about a kernel.

    Raises:
        InputError: it has no such kernel, or did not profile it; the message says why not, and which kernels have a profile.
    """
    try:
        archive.candidate(candidate_id)
    except KeyError:
        raise InputError(f"the run has no kernel {candidate_id!r}: ridgeline show lists ideas and lineage") from None
    profile = find_profile(archive, candidate_id)
    if profile is None:
        raise InputError(f"{candidate_id} was not profiled: {_why_not(archive, candidate_id)}; {_others(archive)}")
    return profile


def _why_not(archive: Archive, candidate_id: str) -> str:
    run, found = archive.run(), finding(archive, candidate_id)
    if found is None:
        return "it is not judged"
    if found.status is not Status.OK:
        return f"it ended as {found.status}, and only kernels that are right are profiled"
    if run.is_keyless:
        return "the offline model reads no profiles, so a search with it profiles its winner alone, for the certificate"
    if "diagnosis" in (run.settings or {}).get("without", ()):
        return "the search goes without diagnosis, and profiles its winner alone, for the certificate"
    return "a search profiles its fastest kernels, before it asks for a round's ideas, and its winner"


def _others(archive: Archive) -> str:
    names = profiled_kernels(archive)
    if not names:
        return "no kernel of this run has a profile yet"
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"profiles there are of {', '.join(names[:NAMED])}{more}"


def profile_lines(profile: Profile, *, with_counters: bool) -> list[str]:
    """Return the paragraph, the stages and, on request, the raw counters, a line each."""
    lines = [profile.paragraph or " ".join(f"{note}." for note in profile.notes)]
    lines += [f"  {stage.name:<24} {stage.share:>4.0%}  {stage.ms:.4g} ms a call" for stage in profile.stages]
    if with_counters:
        lines += [f"  {name} = {value:g}" for name, value in sorted(profile.details.items())]
    return lines
