"""The outputs that a stopped Python runner left in its own memory, read from outside (no torch here).

A runner notes where each call's outputs lie when the call has returned. Whatever is noted, an output counts as what lies there
when the process has been stopped: no code of a candidate runs between its last call and the judge's look. The runner's
memory is opened before the candidate is loaded, so no candidate can refuse it.
"""

from __future__ import annotations

import os

from ridgeline.tools.judge.process import LoadedProblem
from ridgeline.tools.records.vocabulary import ReasonCode
from ridgeline.tools.runner.failures import RunnerFailure
from ridgeline.tools.runner.output_homes import OutputHome, OutputHomes
from ridgeline.tools.runner.wire import NOTE_BYTES

_CHUNK_BYTES = 1 << 20
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
        try:
            self._memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise UnreadableMemory from error
        if not self._has_read(notes, NOTE_BYTES):
            self.close()
            raise UnreadableMemory

    def bring(self, set_index: int) -> None:
        """Copy the outputs that a set's last call left to their place in the judge's memory.

        Raises:
            RunnerFailure: nothing lies where the runner noted an output.
        """
        for number, home in enumerate(self._outputs.homes):
            place = self._note_of(set_index, number)
            if not (self._has_read(place, NOTE_BYTES) and self._has_copied(home, set_index)):
                reason = (
                    f"when its call had returned, the output of set {set_index} lay nowhere in its process's memory"
                )
                raise RunnerFailure(ReasonCode.TIMED_OUTPUT_WRONG, reason)

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

    def close(self) -> None:
        """Close the runner's memory."""
        os.close(self._memory)
