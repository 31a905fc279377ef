"""Ideas and seeds that a search was given and did not take up: by its problem's file, or told once it had begun."""

from __future__ import annotations

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.steering import Steering, SteerKind, mechanism_of
from ridgeline.graph.search.ideas.offline_ideas import reading_of_run
from ridgeline.graph.search.ideas.user_ideas import title_of
from ridgeline.tools.records.vocabulary import Origin


def not_taken_up(archive: Archive) -> list[str]:
    """Return in words what a search was given and did not take up, and of an idea that it will not try why."""
    tried = {idea.mechanism for idea in archive.ideas()}
    judged = {candidate.id for candidate in archive.candidates(origin=Origin.SEED)}
    steering = Steering(archive)
    told = [*(steer.text for steer in steering.told(SteerKind.IDEA)), *_of_file(archive)]
    ideas = (text for text in dict.fromkeys(told) if mechanism_of(text) not in tried)
    seeds = (steer for steer in steering.told(SteerKind.SEED) if steer.name not in judged)
    return [*(_idea_words(archive, text) for text in ideas), *(f"{_NOT_YET}: {steer.name}" for steer in seeds)]


def _of_file(archive: Archive) -> list[str]:
    """Return the ideas of the problem's file, as the search stored them."""
    stored = (archive.run().problem or {}).get("ideas", [])
    return [text for text in stored if isinstance(text, str)] if isinstance(stored, list) else []


_NOT_YET = "not taken up yet"


def _idea_words(archive: Archive, text: str) -> str:
    reading, idea = reading_of_run(archive, text), f"the idea {title_of(text)!r}"
    if reading and reading.why_not_tried:
        return f"not tried: {idea}: {reading.why_not_tried}"
    return f"{_NOT_YET}: {idea}"
