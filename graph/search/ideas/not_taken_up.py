"""Ideas and seeds that a search was told and did not take up."""

from __future__ import annotations

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.steering import Steering, SteerKind, mechanism_of
from ridgeline.graph.search.ideas.offline_ideas import reading_of_run
from ridgeline.graph.search.ideas.user_ideas import title_of
from ridgeline.tools.records.vocabulary import Origin


def not_taken_up(archive: Archive) -> list[str]:
    """Return in words what a search that had begun was told and did not take up."""
    tried = {idea.mechanism for idea in archive.ideas()}
    judged = {candidate.id for candidate in archive.candidates(origin=Origin.SEED)}
    steering = Steering(archive)
    ideas = (steer.text for steer in steering.told(SteerKind.IDEA) if mechanism_of(steer.text) not in tried)
    seeds = (steer for steer in steering.told(SteerKind.SEED) if steer.name not in judged)
    return [*(_idea_words(archive, text) for text in ideas), *(steer.name for steer in seeds)]


def _idea_words(archive: Archive, text: str) -> str:
    reading = reading_of_run(archive, text)
    why = f": {reading.why_not_tried}" if reading and reading.why_not_tried else ""
    return f"the idea {title_of(text)!r}{why}"
