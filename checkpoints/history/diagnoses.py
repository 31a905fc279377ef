"""What limits a kernel, in the words of the profile that the search had made of it."""

from __future__ import annotations

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.storage.errors import record_errors
from ridgeline.tools.records.results import Evaluation, Profile


def read_diagnosis(archive: Archive, evaluation: Evaluation | None) -> str:
    """Return the diagnosis of the kernel with this evaluation; "" where it was not profiled."""
    profile = archive.find("profiles", evaluation.key) if evaluation else None
    if profile is None:
        return ""
    with record_errors(archive.path):
        return diagnosis(Profile.from_json(profile))


def diagnosis(profile: Profile) -> str:
    """Return a profile's own paragraph, or its figures in a sentence or two where it has none."""
    if profile.paragraph:
        return profile.paragraph
    parts = [f"{profile.bound}-bound"]
    if profile.fraction_of_floor is not None:
        parts.append(f"at {profile.fraction_of_floor:.0%} of the floor's rate")
    if profile.achieved_gbps is not None:
        parts.append(f"{profile.achieved_gbps:.1f} GB/s")
    if profile.achieved_gflops:
        parts.append(f"{profile.achieved_gflops:.1f} GFLOP/s")
    return ", ".join(parts) + "." + "".join(f" {note}." for note in profile.notes)
