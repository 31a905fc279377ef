"""A user's words to a search that has begun: ideas, seed kernels, to stop. Another process writes them, the search reads them.

Ideas and seeds stay: a search finds out by its own ideas and candidates which of them it took up, so a search that is
killed between the two takes each up once. A stop is gone once the search has ended, by it or otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import sqlite_utils

from ridgeline.checkpoints.archive import Archive
from ridgeline.tools.errors import RunError
from ridgeline.tools.records.codec import Record
from ridgeline.tools.records.keys import SEED_PREFIX, seed_id, seed_name

USER = "user"
"""The author of an idea that the user stated, in the place of a model."""
_LEAST_CHARS = 10
"""Of a mechanism that `IdeaDraft` takes."""
_MOST_DIGITS = 10
"""Of a number in an id; Python itself refuses to read one of thousands."""


class SteerKind(StrEnum):
    """The kinds of what a search is told."""

    IDEA = "idea"
    SEED = "seed"
    STOP = "stop"


@dataclass(frozen=True, slots=True, kw_only=True)
class Steer(Record):
    """One thing that a search is told."""

    id: str  # "idea-1"
    kind: SteerKind
    name: str = ""  # of a seed: its candidate's id
    text: str = ""  # an idea's words, a seed's source
    from_round: int = 0  # of a replay: the round in which the recorded search took it up


def mechanism_of(text: str) -> str:
    """Return the mechanism of the idea that is made of a user's words: what tells it from the user's other ideas."""
    return text.strip() if len(text.strip()) >= _LEAST_CHARS else f"As the user puts it: {text.strip()}"


class Steering:
    """The words to one search, in its archive's file."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._database = archive.database

    def add_idea(self, text: str, *, from_round: int = 0) -> Steer:
        """Store an idea, which enters with the next round's.

        Raises:
            RunError: the search was told the same before.
        """
        with self._database.write() as rows:
            if any(steer.text == text for steer in self.told(SteerKind.IDEA)):
                raise RunError(f"{self._archive.path.parent}: was told this idea before")
            return self._add(rows, SteerKind.IDEA, text=text, from_round=from_round)

    def add_seed(self, stem: str, source: str, *, from_round: int = 0) -> Steer:
        """Store a seed kernel under an id of its own, which is judged when the next round begins.

        Raises:
            RunError: the search has the same source as a seed already.
        """
        with self._database.write() as rows:  # two processes that choose a name at once would choose the same
            taken = {candidate.id: candidate.source for candidate in self._archive.candidates()}
            taken |= {steer.name: steer.text for steer in self.told(SteerKind.SEED)}
            for name, known in taken.items():
                if known == source and name.startswith(SEED_PREFIX):
                    raise RunError(f"{self._archive.path.parent}: has this kernel already, as {name}")
            first = seed_id(seed_name(stem))
            names = (first, *(f"{first}-{number}" for number in range(2, len(taken) + 3)))
            free = next(name for name in names if name not in taken)
            return self._add(rows, SteerKind.SEED, name=free, text=source, from_round=from_round)

    def add_stop(self) -> Steer:
        """Store that the search is to stop."""
        with self._database.write() as rows:
            return self._add(rows, SteerKind.STOP)

    def told(self, kind: SteerKind, *, upto_round: int | None = None) -> list[Steer]:
        """Return what the search is told of one kind, oldest first; with `upto_round` what counts by that round."""
        found = self._database.query(
            "SELECT id, kind, name, text, from_round FROM steering WHERE kind = :kind "
            "AND (:round IS NULL OR from_round <= :round) ORDER BY rowid",
            {"kind": kind.value, "round": upto_round},
        )
        return [Steer.from_json(row) for row in found]

    def copy(self, told: Iterable[Steer]) -> None:
        """Store the ideas and seeds that another search was told, as it was told them; a stop was meant for that one."""
        kept = [steer.to_json() for steer in told if steer.kind is not SteerKind.STOP]
        with self._database.write() as rows:
            rows.table("steering").upsert_all(kept, pk="id")

    def take_stop(self, *, before: str | None = None) -> bool:
        """Drop the stops (those stored before this time, UTC and ISO 8601) and say whether there was one."""
        with self._database.write() as rows:
            dropped = rows.execute(
                "DELETE FROM steering WHERE kind = 'stop' AND (:before IS NULL OR told_at < :before)",
                {"before": before},
            )
            return bool(dropped.rowcount)

    def _add(self, rows: sqlite_utils.Database, kind: SteerKind, **fields: Any) -> Steer:
        """Store one thing inside the write transaction of its caller."""
        numbers = (_number_of(steer.id) for steer in self.told(kind))  # with gaps: a replay has what was taken up
        steer = Steer(id=f"{kind}-{max(numbers, default=0) + 1}", kind=kind, **fields)
        rows.table("steering").insert(steer.to_json())
        return steer


def _number_of(id_: str) -> int:
    """Return the number in an id, 0 where it has none."""
    number = id_.rpartition("-")[2]
    return int(number) if number.isdecimal() and len(number) < _MOST_DIGITS else 0
