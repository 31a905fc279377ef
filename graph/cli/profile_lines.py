"""The lines that the command line prints of one kernel's profile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ridgeline.checkpoints.history.diagnoses import find_profiled, profiled_kernels
from ridgeline.checkpoints.history.lineage import finding
from ridgeline.tools.errors import InputError
from ridgeline.tools.records.results import Evaluation, Profile
from ridgeline.tools.records.vocabulary import Purpose, Status

if TYPE_CHECKING:
    from ridgeline.checkpoints.archive import Archive

APART = 1 / 3
"""Two times of one kernel that differ by more than this share of the shorter one are said not to be comparable."""
SAME = 1e-3
"""Two times that differ by less than this share are one."""
NAMED = 5
"""Kernels with a profile that a message names at most."""


def stored_profile(archive: Archive, candidate_id: str) -> tuple[Evaluation, Profile]:
    """Return what the search, else the kernel's certificate, found out about a kernel, and the evaluation that it was made for.

    Raises:
        InputError: it has no such kernel, or did not profile it; the message says why not, and which kernels have a profile.
    """
    try:
        archive.candidate(candidate_id)
    except KeyError:
        raise InputError(f"the run has no kernel {candidate_id!r}: ridgeline show lists ideas and lineage") from None
    found = find_profiled(archive, candidate_id)
    if found is None:
        raise InputError(f"{candidate_id} was not profiled: {_why_not(archive, candidate_id)}; {_others(archive)}")
    return found


def _why_not(archive: Archive, candidate_id: str) -> str:
    run, found = archive.run(), finding(archive, candidate_id)
    if found is None:
        return "it is not judged"
    if found.status is not Status.OK:
        return f"it ended as {found.status}, and only kernels that are right are profiled"
    if run.is_offline:
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


def origin_words(archive: Archive, evaluation: Evaluation, profile: Profile) -> str:
    """Return of which measurement a profile's time is, and whether it can be held against the search's own of the kernel.

    A profile of the search states the time at eager PyTorch's own, as its models compare kernels; see `Baselines.steady_ms`.
    """
    found, ms = finding(archive, evaluation.candidate_id), _told_ms(archive, profile)
    searched_ms = found.timing.median_ms if found and found.timing else None
    if evaluation.purpose is Purpose.CERTIFY:
        words, whose = "profiled for the certificate", "its time is of the certificate's timings"
    elif ms and searched_ms and abs(ms / searched_ms - 1) < SAME:
        words, whose = "profiled in the search", "its time is the search's own"
    else:
        words, whose = "profiled in the search", "its time is where eager PyTorch takes what it took by itself"
    if ms is None:
        return f"{words}:"
    words = f"{words}; {whose}, {ms:.4g} ms"
    if searched_ms is None or max(ms, searched_ms) <= (1 + APART) * min(ms, searched_ms):
        return f"{words}:"
    why = "perhaps the machine was busy during one of the two"
    return f"{words}, not comparable with the {searched_ms:.4g} ms in the search: {why}:"


def _told_ms(archive: Archive, profile: Profile) -> float | None:
    """Return the time that a profile is about; of an older one by its share of the memory floor's rate."""
    if profile.median_ms is not None or not profile.fraction_of_floor:
        return profile.median_ms
    baselines = archive.baselines()
    return baselines.floor.floor_ms / profile.fraction_of_floor if baselines else None


def profile_lines(profile: Profile, *, with_counters: bool) -> list[str]:
    """Return the paragraph, the stages and, on request, the raw counters, a line each."""
    lines = [profile.paragraph or " ".join(f"{note}." for note in profile.notes)]
    lines += [
        f"  {stage.name:<24} {stage.share:>4.0%}  {stage.ms:.4g} ms a call while profiled" for stage in profile.stages
    ]
    if with_counters:
        lines += [f"  {name} = {value:g}" for name, value in sorted(profile.details.items())]
    return lines
