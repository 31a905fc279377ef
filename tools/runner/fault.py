"""A fatal signal in a runner, as the message of a `failed` line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from ridgeline.tools.runner.wire import FaultWord, is_number


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A fatal signal in a runner, as its handler tells it."""

    signal: int
    is_write: bool
    region: int | None  # None: outside of the judge's memory
    place: str  # bytes from the region's start, or the address

    def words(self) -> str:
        """Return the message of the `failed` line."""
        access = FaultWord.WRITE if self.is_write else FaultWord.READ
        return f"{self.signal} {access} {'-' if self.region is None else self.region} {self.place}"

    @classmethod
    def parse(cls, words: Sequence[str]) -> Self | None:
        """Return the fault that the message of a `failed` line tells, None where it tells none."""
        if len(words) != 4 or not is_number(words[0]) or words[1] not in list(FaultWord):
            return None
        number, access, region, place = words
        is_placed = is_number(region) and is_number(place.removeprefix("-"))
        return cls(
            signal=int(number),
            is_write=access == FaultWord.WRITE,
            region=int(region) if is_placed else None,
            place=place,
        )
