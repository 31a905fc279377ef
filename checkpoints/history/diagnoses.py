"""The limits of a kernel, in the words of the profile that the search had made of it."""

from __future__ import annotations

from collections.abc import Sequence

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.storage.errors import record_errors
from ridgeline.tools.records.keys import OWN_WORK, step_key
from ridgeline.tools.records.results import Evaluation, Profile
from ridgeline.tools.records.vocabulary import Purpose

_PROFILED = (Purpose.TUNE, Purpose.SEARCH, Purpose.CERTIFY)


def read_diagnosis(archive: Archive, evaluation: Evaluation | None) -> str:
    """Return the diagnosis of the kernel with this evaluation; "" where it was not profiled."""
    profile = read_profile(archive, evaluation) if evaluation else None
    return diagnosis(profile) if profile else ""


def read_profile(archive: Archive, evaluation: Evaluation) -> Profile | None:
    """Return the profile of the kernel with this evaluation; None where it was not profiled."""
    return _stored_profile(archive, evaluation.key)


def _stored_profile(archive: Archive, key: str) -> Profile | None:
    stored = archive.find("profiles", key)
    if stored is None:
        return None
    with record_errors(archive.path):
        return Profile.from_json(stored)


def find_profile(archive: Archive, candidate_id: str, purposes: Sequence[Purpose] = _PROFILED) -> Profile | None:
    """Return the profile made for the first of these purposes: the search's own, else the certificate's; None without one."""
    found = find_profiled(archive, candidate_id, purposes)
    return found[1] if found else None


def find_profiled(
    archive: Archive, candidate_id: str, purposes: Sequence[Purpose] = _PROFILED
) -> tuple[Evaluation, Profile] | None:
    """Return `find_profile` with the evaluation that it was made for."""
    for purpose in purposes:
        evaluation = archive.evaluation(candidate_id, purpose)
        if evaluation is None:
            continue
        key = step_key(evaluation.key, OWN_WORK if purpose is Purpose.CERTIFY else "")
        if (profile := _stored_profile(archive, key)) is not None:
            return evaluation, profile
    return None


def profiled_kernels(archive: Archive) -> list[str]:
    """Return the ids of the kernels of which there is a profile, in the order in which they were made."""
    found = archive.database.query("SELECT candidate_id FROM profiles GROUP BY candidate_id ORDER BY MIN(rowid)")
    return [str(row["candidate_id"]) for row in found]


def diagnosis(profile: Profile) -> str:
    """Return a profile's own paragraph, or its figures in a sentence or two where it has none."""
    if profile.paragraph:
        return profile.paragraph
    parts = [f"{profile.bound}-bound"]
    if profile.fraction_of_floor is not None:
        parts.append(f"at {profile.fraction_of_floor:.0%} of the memory floor's rate")
    if profile.achieved_gbps is not None:
        parts.append(f"{profile.achieved_gbps:.1f} GB/s")
    if profile.achieved_gflops:
        parts.append(f"{profile.achieved_gflops:.1f} GFLOP/s")
    return ", ".join(parts) + "." + "".join(f" {note}." for note in profile.notes)
