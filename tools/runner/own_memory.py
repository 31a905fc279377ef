"""The memory that a block's outputs lie in, each in its own, seen from outside of a stopped Python runner (no torch here).

All results of a block are held until the next one begins. So no two of them may have a byte in common, and none may lie
in the judge's memory. One and the same memory can be mapped at several addresses: what lies in the judge's files, or in one
that is mapped to be shared, is therefore compared by its file and the place in it, everything else by its address.
"""

from __future__ import annotations

import itertools
import os
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ridgeline.tools.judge.process import LoadedProblem
from ridgeline.tools.records.vocabulary import ReasonCode
from ridgeline.tools.runner.failures import RunnerFailure

_MAPPING = re.compile(rb"^([0-9a-f]+)-([0-9a-f]+) ...([ps]) ([0-9a-f]+) ([0-9a-f]+:[0-9a-f]+ [1-9]\d*)", re.MULTILINE)
"""A line of /proc/PID/maps: first and last address, private or shared, place in the file, the file's device and number.
Without a file the number is 0."""
_READ_BYTES = 1 << 16
_NO_FILE = b""


@dataclass(frozen=True, slots=True)
class LeftOutput:
    """One output of one call, where it was left."""

    set_index: int
    number: int  # among the call's outputs
    address: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class _Mapping:
    """A part of the address space that shows a file, from a place in it on."""

    first: int
    end: int
    file: bytes
    place: int


@dataclass(frozen=True, slots=True, order=True)
class _Piece:
    """A part of an output: bytes of a file, or addresses where it is in none that others may show."""

    file: bytes
    first: int
    end: int
    owner: int  # which output


class OwnMemory:
    """The memory of one runner, as outputs may lie in it."""

    def __init__(self, pid: int, problem: LoadedProblem) -> None:
        """Look at a runner that has mapped the judge's memory and has no candidate yet.

        Raises:
            OSError: the kernel does not let this user look.
        """
        self._judges = frozenset(_file_of(region.fd) for region in problem.regions)
        self._may_share = frozenset(problem.shared_outputs)
        self._maps = os.open(f"/proc/{pid}/maps", os.O_RDONLY | os.O_CLOEXEC)
        seen = {mapping.file for mapping in self._mappings()}
        self.is_told = self._judges <= seen  # else the kernel shows mappings in some other way: nothing is compared

    def expect_own(self, outputs: Sequence[LeftOutput]) -> None:
        """Check that outputs that are held at the same time lie in memory of their own.

        Raises:
            RunnerFailure: one does not.
        """
        if not self.is_told:
            return
        mappings = self._mappings()
        pieces = sorted(each for i, output in enumerate(outputs) for each in _pieces(i, output, mappings))
        for piece in pieces:
            if piece.file in self._judges:
                raise _not_own(
                    outputs[piece.owner], "lies in the judge's memory, as a view of an input or a parameter does"
                )
        open_ones: list[_Piece] = []
        for piece in pieces:
            open_ones = [each for each in open_ones if each.file == piece.file and each.end > piece.first]
            for other in open_ones:
                self._expect_may_share(outputs[other.owner], outputs[piece.owner])
            open_ones.append(piece)

    def _expect_may_share(self, one: LeftOutput, other: LeftOutput) -> None:
        if one.set_index != other.set_index:
            sets = f"{one.set_index} and {other.set_index}"
            reason = f"the timed outputs of sets {sets} share memory: each call returns new memory"
            raise RunnerFailure(ReasonCode.STALE_OUTPUT, reason)
        pair = (min(one.number, other.number), max(one.number, other.number))
        if one is other:
            raise _not_own(one, "shows the same memory at several of its places")
        if pair not in self._may_share:
            raise _not_own(
                other, f"shares memory with output {one.number}, which the reference's does not: return a copy"
            )

    def _mappings(self) -> list[_Mapping]:
        """Return the mappings of files that may be shown at several addresses, in the order of their addresses."""
        os.lseek(self._maps, 0, os.SEEK_SET)
        text = b"".join(iter(lambda: os.read(self._maps, _READ_BYTES), b""))
        found = _MAPPING.findall(text)
        files = self._judges | {file for *_, kind, _, file in found if kind == b"s"}
        return [
            _Mapping(int(first, 16), int(end, 16), file, int(place, 16))
            for first, end, _, place, file in found
            if file in files
        ]

    def close(self) -> None:
        """Close what is open of the runner."""
        os.close(self._maps)


def _pieces(owner: int, output: LeftOutput, mappings: Sequence[_Mapping]) -> Iterator[_Piece]:
    """Give the parts of an output: those in mappings of files, and what lies between them."""
    at, end = output.address, output.address + output.size_bytes
    for mapping in itertools.islice(mappings, bisect_right(mappings, at, key=lambda each: each.end), None):
        first, last = max(at, mapping.first), min(end, mapping.end)
        if first >= last:
            break
        if at < first:
            yield _Piece(_NO_FILE, at, first, owner)
        begin = mapping.place + first - mapping.first
        yield _Piece(mapping.file, begin, begin + last - first, owner)
        at = last
    if at < end:
        yield _Piece(_NO_FILE, at, end, owner)


def _file_of(descriptor: int) -> bytes:
    """Return the device and number of a file as /proc/PID/maps writes them."""
    status = os.fstat(descriptor)
    return f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x} {status.st_ino}".encode()


def _not_own(output: LeftOutput, why: str) -> RunnerFailure:
    reason = f"the timed output {output.number} of set {output.set_index} {why}"
    return RunnerFailure(ReasonCode.OUTPUT_ALIASES_INPUT, reason)
