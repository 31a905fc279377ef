"""Ideas and seeds that a search was told and did not take up."""

from __future__ import annotations

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.steering import Steering, SteerKind, mechanism_of
from ridgeline.graph.search.ideas.offline_ideas import reading_of_run
from ridgeline.graph.search.ideas.user_ideas import title_of
from ridgeline.tools.records.vocabulary import Origin


def not_taken_up(archive: Archive) -> list[str]:
    """Return in words what a search that had begun was told and did not take up, and of an idea that it will not try why."""
    tried = {idea.mechanism for idea in archive.ideas()}
    judged = {candidate.id for candidate in archive.candidates(origin=Origin.SEED)}
    steering = Steering(archive)
    ideas = (steer.text for steer in steering.told(SteerKind.IDEA) if mechanism_of(steer.text) not in tried)
    seeds = (steer for steer in steering.told(SteerKind.SEED) if steer.name not in judged)
    return [*(_idea_words(archive, text) for text in ideas), *(f"{_NOT_YET}: {steer.name}" for steer in seeds)]


_NOT_YET = "not taken up yet"


def _idea_words(archive: Archive, text: str) -> str:
    reading, idea = reading_of_run(archive, text), f"the idea {title_of(text)!r}"
    if reading and reading.why_not_tried:
        return f"not tried: {idea}: {reading.why_not_tried}"
    return f"{_NOT_YET}: {idea}"
