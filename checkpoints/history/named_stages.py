"""The ideas about the stage that takes most of their parent's time, as its diagnosis told their author.

An idea whose reply states a stage is about that one. Of another, as of an idea of a person or of an older search, the words
decide: it names a stage where title, mechanism and plans hold each word of the stage's name, singular or plural.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.history.diagnoses import find_profile
from ridgeline.tools.records.results import Profile
from ridgeline.tools.records.search import Idea
from ridgeline.tools.records.vocabulary import SEARCHED

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedStages:
    """Of a search's ideas those whose parent's diagnosis tells times by stage, and of these those that name the largest."""

    ideas: int
    named: int


def named_stages(archive: Archive) -> NamedStages:
    """Return how many of a search's ideas name the largest stage of the kernel that they start from."""
    stages = ((idea, parents_largest_stage(archive, idea)) for idea in archive.ideas())
    found = [names_stage(idea, stage) for idea, stage in stages if stage]
    return NamedStages(ideas=len(found), named=sum(found))


def parents_largest_stage(archive: Archive, idea: Idea) -> str:
    """Return the largest stage of the kernel that an idea starts from; "" where no profile of the search tells one."""
    profile = find_profile(archive, idea.parent_id, SEARCHED) if idea.parent_id else None
    return largest_stage(profile) if profile else ""


def largest_stage(profile: Profile) -> str:
    """Return the stage with the largest share of a kernel's time; "" where its source names none."""
    largest = max(profile.stages, key=lambda stage: stage.share, default=None)
    return largest.name if largest else ""


def names_stage(idea: Idea, stage: str) -> bool:
    """Say whether an idea is about a stage."""
    if idea.stage:
        return _words(idea.stage) == _words(stage)
    return _words(stage) <= _words(" ".join((idea.title, idea.mechanism, *idea.plans)))


def _words(text: str) -> set[str]:
    """Return the words of a text or of an identifier, without the s of a plural."""
    return {word.lower().removesuffix("s") or word.lower() for word in _WORD.findall(text)}
