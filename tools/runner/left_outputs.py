"""The outputs that a stopped Python runner left in its own memory, read from outside (no torch here).

A runner notes where each call's outputs lie when the call has returned. Whatever is noted, an output counts as what lies there
when the process has been stopped: no code of a candidate runs between its last call and the judge's look. The runner's
memory is opened before the candidate is loaded, so no candidate can refuse it.

Outputs are their caller's, to be changed as it likes. So each has to lie in memory of its own (see own_memory.py), and is
changed once it has been read: whoever relies on what an earlier output still holds is wrong in a later block. And each has to
be written: fresh memory that nobody has touched reads as zeros, and its reader would pay for it (see written_pages.py).
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence

from ridgeline.tools.judge.process import LoadedProblem
from ridgeline.tools.records.vocabulary import ReasonCode
from ridgeline.tools.runner.failures import RunnerFailure
from ridgeline.tools.runner.output_homes import OutputHome, OutputHomes
from ridgeline.tools.runner.own_memory import LeftOutput, OwnMemory
from ridgeline.tools.runner.wire import NOTE_BYTES
from ridgeline.tools.runner.written_pages import WrittenPages
from ridgeline.tools.wording import counted

SPOILED = 16
"""Most outputs of a block that are changed beside those that were read."""
SPOILED_BYTES = 64
"""So few at a secret place: whoever looks whether an output was changed has to read all of it."""
_CHUNK_BYTES = 1 << 20
_UNREADABLE = "lay nowhere in its process's memory"
_HIGHEST_ADDRESS = (1 << 63) - 1  # the kernel counts bytes of a file in an int64


class UnreadableMemory(Exception):
    """The kernel does not let this user read a runner's memory: Yama, or root in a container without CAP_SYS_PTRACE."""


class LeftOutputs:
    """Brings one stopped runner's outputs into the judge's memory."""

    def __init__(self, pid: int, notes: int, problem: LoadedProblem) -> None:
        """Open the memory of a runner that has no candidate yet; `notes` is the address of its notes.

        Raises:
            UnreadableMemory: the kernel does not let this user read it.
        """
        self._outputs = OutputHomes.of(problem)
        self._notes = notes
        self._buffer = memoryview(bytearray(_CHUNK_BYTES))
        self._rng = random.SystemRandom()
        try:
            self._own = OwnMemory(pid, problem)
        except OSError as error:
            raise UnreadableMemory from error
        try:
            self._memory = os.open(f"/proc/{pid}/mem", os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            self._own.close()
            raise UnreadableMemory from error
        self._pages = WrittenPages(pid)
        if not self._has_read(notes, NOTE_BYTES):
            self.close()
            raise UnreadableMemory
        self._is_writable = self._has_written(notes, bytes(self._buffer[:NOTE_BYTES]))

    def bring(self, chosen: Sequence[int], called: Sequence[int]) -> None:
        """Copy the outputs that the last calls on the chosen sets left to their places in the judge's memory.

        `called` are all sets of the block. Their outputs are looked at where they lie, and some are changed there.

        Raises:
            RunnerFailure: nothing lies where the runner noted an output, it is no memory of the output's own, or a part of one
                that is chosen was not written.
        """
        left = self._left(called)
        unwritten = [  # before they are read, which brings every page
            (output, missing)
            for output in left
            if output.set_index in chosen and (missing := self._pages.missing(output.address, output.size_bytes))
        ]
        for set_index in chosen:
            self._bring(set_index)
        self._own.expect_own(left)
        if unwritten:
            raise _not_written(*unwritten[0])
        if self._is_writable:
            self._spoil(left, chosen)

    def _bring(self, set_index: int) -> None:
        for number, home in enumerate(self._outputs.homes):
            place = self._note_of(set_index, number)
            if not (self._has_read(place, NOTE_BYTES) and self._has_copied(home, set_index)):
                raise _nowhere(set_index, _UNREADABLE)

    def _left(self, called: Sequence[int]) -> list[LeftOutput]:
        """Return where the outputs of these sets lie, as they are noted; one that is empty lies nowhere."""
        found: list[LeftOutput] = []
        for index in dict.fromkeys(called):
            for number, home in enumerate(self._outputs.homes):
                if not self._has_read(self._note_of(index, number), NOTE_BYTES):
                    raise _nowhere(index, _UNREADABLE)
                address = int.from_bytes(self._buffer[:NOTE_BYTES], "little")
                found += [LeftOutput(index, number, address, home.size_bytes)] * bool(home.size_bytes)
        return found

    def _spoil(self, left: Sequence[LeftOutput], chosen: Sequence[int]) -> None:
        """Change a few bytes of the outputs of the chosen sets, and of random others, to numbers that any type can have."""
        others = [output for output in left if output.set_index not in chosen]
        others = self._rng.sample(others, min(SPOILED, len(others)))
        for output in (*(each for each in left if each.set_index in chosen), *others):
            count = min(SPOILED_BYTES, output.size_bytes)
            at = output.address + self._rng.randrange(output.size_bytes - count + 1)
            if not self._has_written(at, bytes(0x40 | byte & 7 for byte in os.urandom(count))):
                raise _nowhere(output.set_index, "lay nowhere where a caller could change it")

    def glimpse(self, set_index: int, share: float) -> bytes:
        """Return the part that lies at a share, 0 to 1, of what a set's last call left, as it is now; b"" for nothing there.

        The process may run meanwhile.
        """
        part = self._outputs.part_at(share)
        try:
            note = os.pread(self._memory, NOTE_BYTES, self._note_of(set_index, part.number))
            address = int.from_bytes(note, "little") + part.first
            return os.pread(self._memory, part.count, address) if address + part.count <= _HIGHEST_ADDRESS else b""
        except OSError:
            return b""

    def _note_of(self, set_index: int, number: int) -> int:
        """Return the address of the note of one output."""
        return self._notes + (set_index * len(self._outputs.homes) + number) * NOTE_BYTES

    def _has_copied(self, home: OutputHome, set_index: int) -> bool:
        """Copy what lies at the address that the buffer begins with, and say whether all of it could be read."""
        address = int.from_bytes(self._buffer[:NOTE_BYTES], "little")
        for done in range(0, home.size_bytes, _CHUNK_BYTES):
            count = min(_CHUNK_BYTES, home.size_bytes - done)
            if not self._has_read(address + done, count):
                return False
            os.pwrite(home.fd, self._buffer[:count], home.offset(set_index) + done)
        return True

    def _has_read(self, address: int, count: int) -> bool:
        """Read so many bytes into the buffer, and say whether all of them could be read."""
        if address + count > _HIGHEST_ADDRESS:
            return False
        try:
            return os.preadv(self._memory, [self._buffer[:count]], address) == count
        except OSError:
            return False

    def _has_written(self, address: int, data: bytes) -> bool:
        """Write these bytes there, and say whether all of them could be written."""
        if address + len(data) > _HIGHEST_ADDRESS:
            return False
        try:
            return os.pwrite(self._memory, data, address) == len(data)
        except OSError:
            return False

    def close(self) -> None:
        """Close the runner's memory."""
        os.close(self._memory)
        self._own.close()
        self._pages.close()


def _not_written(output: LeftOutput, pages: int) -> RunnerFailure:
    reason = (
        f"when its call had returned, {counted(pages, 'page')} of output {output.number} of set {output.set_index} had not "
        "been written: fresh memory reads as zeros, and whoever reads it first waits for it; write every element in the call"
    )
    return RunnerFailure(ReasonCode.TIMED_OUTPUT_WRONG, reason)


def _nowhere(set_index: int, where: str) -> RunnerFailure:
    reason = f"when its call had returned, the output of set {set_index} {where}"
    return RunnerFailure(ReasonCode.TIMED_OUTPUT_WRONG, reason)
