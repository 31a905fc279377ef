"""The places of outputs in the judge's memory, for a parent that reads and writes them there (no torch here)."""

from __future__ import annotations

import os
from dataclasses import dataclass

from ridgeline.tools.judge.process import LoadedProblem
from ridgeline.tools.judge.replies import Place
from ridgeline.tools.records.vocabulary import Role

GLIMPSE_BYTES = 4096
"""Most bytes of an output that one glimpse takes."""


@dataclass(frozen=True, slots=True)
class OutputHome:
    """The place of one output in the judge's memory."""

    fd: int
    place: Place

    @property
    def size_bytes(self) -> int:
        """Return how many bytes the output spans: here and, as its strides are the reference's, in a Python runner."""
        return self.place.spec.spanned_bytes

    def offset(self, set_index: int) -> int:
        """Return where the output of a set begins."""
        return self.place.offset + set_index * self.place.set_stride


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputPart:
    """A part of one call's outputs."""

    number: int  # of the output
    first: int  # byte
    count: int


@dataclass(frozen=True, slots=True)
class OutputHomes:
    """The places of a problem's outputs."""

    homes: tuple[OutputHome, ...]

    @classmethod
    def of(cls, problem: LoadedProblem) -> OutputHomes:
        """Return those of a problem, in the signature's order."""
        places = (place for place in problem.places if place.spec.role is Role.OUTPUT)
        return cls(tuple(OutputHome(problem.regions[place.region].fd, place) for place in places))

    def part_at(self, share: float) -> OutputPart:
        """Return the part that lies at a share, 0 to 1, of all outputs."""
        at = share * len(self.homes)
        number = min(int(at), len(self.homes) - 1)
        size = self.homes[number].size_bytes
        count = min(size, GLIMPSE_BYTES)
        return OutputPart(number=number, first=int((at - number) * (size - count)), count=count)

    def glimpse(self, set_index: int, share: float) -> bytes:
        """Return the part of a set's outputs that lies at a share of them, as it is now."""
        part = self.part_at(share)
        home = self.homes[part.number]
        return os.pread(home.fd, part.count, home.offset(set_index) + part.first)
