"""A run's mailbox folder: requests as files, and the answers that somebody puts beside them.

A file is read once it is whole: it has not changed for SETTLED_S, and no process has it open for writing. What is read is
never a link, a pipe or a device, since the folder may come from a stranger.
"""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import stat
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ridgeline.checkpoints.storage.errors import storage_errors
from ridgeline.checkpoints.storage.own_files import MAILBOX, replace_file
from ridgeline.graph.models.mailbox.answers import MOST_BYTES, RefusedAnswer, too_large
from ridgeline.graph.models.mailbox.document import document_of
from ridgeline.graph.models.waiting_request import WaitingRequest
from ridgeline.tools.errors import StorageError
from ridgeline.tools.machine.logs import logger_of
from ridgeline.tools.records.printable import printable

logger = logger_of(__name__)

SETTLED_S = 1.0
"""A program that writes a file in several goes seldom rests longer between two of them."""

_REQUEST, _ANSWER, _REFUSED = ".request.md", ".answer.", ".refused.txt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """A file that somebody put into the folder as an answer, at one of its states."""

    path: Path
    stem: str
    suffix: str
    state: tuple[int, int, int]  # inode, size, nanoseconds of the last change

    @property
    def name(self) -> str:
        """Return the file's name as it may be printed."""
        return printable(self.path.name)


class Folder:
    """The folder `mailbox` of one run."""

    def __init__(self, run_dir: Path) -> None:
        self.path = run_dir / MAILBOX

    def publish(self, requests: Sequence[WaitingRequest]) -> None:
        """Write the files of these requests as far as they are missing, and remove those of all others."""
        wanted = {request.request_file: request for request in requests}
        present = {path.name for path in self._files() if path.name.endswith(_REQUEST)}
        for name in wanted.keys() - present:
            with storage_errors(self.path):
                self.path.mkdir(exist_ok=True)
            replace_file(self.path / name, document_of(wanted[name]))
        for name in present - wanted.keys():
            self._remove(self.path / name)
        for name in wanted.keys() & present:
            if not (self.path / name).is_file():
                logger.warning("%s: lies in the place of a request's file; move it away", self.path / name)

    def drops(self) -> list[Drop]:
        """Return the files that are named as answers are, by name; an empty one is no answer yet."""
        found: list[Drop] = []
        for path in self._files():
            stem, is_answer, suffix = path.name.partition(_ANSWER)
            if not (stem and is_answer and suffix) or stem.startswith("."):
                continue
            try:
                facts = path.lstat()
            except OSError as error:
                _left_alone(path, error)
                continue
            if facts.st_size or not stat.S_ISREG(facts.st_mode):
                state = (facts.st_ino, facts.st_size, facts.st_mtime_ns)
                found.append(Drop(path=path, stem=stem, suffix=suffix, state=state))
        return sorted(found, key=lambda drop: drop.path.name)

    def content(self, drop: Drop) -> bytes | None:
        """Return what a file holds, or None while it is being written.

        Raises:
            RefusedAnswer: it is no regular file, or too large.
        """
        age_s = time.time() - drop.state[2] / 1e9
        if 0 <= age_s < SETTLED_S:
            return None
        try:
            descriptor = os.open(drop.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            if error.errno == errno.ENOENT:
                return None
            reason = "is a link" if error.errno == errno.ELOOP else f"cannot be read ({error.strerror})"
            raise RefusedAnswer(f"{drop.name} {reason}; put the file itself there") from None
        try:
            return _content_of(descriptor, drop.name)
        except OSError as error:
            raise RefusedAnswer(f"{drop.name} cannot be read ({error.strerror}); put another file there") from None
        finally:
            os.close(descriptor)

    def refuse(self, stem: str, why: str) -> None:
        """Put beside an answer what is wrong with it, if a file can be put there."""
        path, text = self.path / f"{stem}{_REFUSED}", f"{why}\n"
        with suppress(OSError, UnicodeDecodeError):
            facts = path.lstat()  # a pipe would be waited for
            is_as_long = stat.S_ISREG(facts.st_mode) and facts.st_size == len(text.encode())
            if is_as_long and path.read_text(encoding="utf-8") == text:
                return
        try:
            replace_file(path, text)
        except (OSError, StorageError) as error:
            _left_alone(path, error)

    def withdraw(self, request: WaitingRequest) -> None:
        """Remove the files of a request that is answered; the answer's own file stays."""
        for name in (request.request_file, f"{request.stem}{_REFUSED}"):
            self._remove(self.path / name)

    def holds(self, names: Collection[str]) -> list[str]:
        """Return those of these names that lie in the folder."""
        return [name for name in names if (self.path / name).exists()]

    def _files(self) -> Iterator[Path]:
        with storage_errors(self.path), suppress(FileNotFoundError):
            yield from list(self.path.iterdir())

    def _remove(self, path: Path) -> None:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:  # a folder, say: it may stay
            _left_alone(path, error)


def _left_alone(path: Path, error: Exception) -> None:
    """Log that one file is left as it is: what somebody put into the folder must not end a search."""
    if not isinstance(error, FileNotFoundError):
        logger.warning("%s: left alone: %s", printable(path.name), printable(str(error)))


def _content_of(descriptor: int, name: str) -> bytes | None:
    """Return what an open file holds, or None while it is being written."""
    facts = os.fstat(descriptor)
    if not stat.S_ISREG(facts.st_mode):
        raise RefusedAnswer(f"{name} is no regular file; put a file there")
    if facts.st_size > MOST_BYTES:
        raise RefusedAnswer(too_large(facts.st_size))
    if _is_written(descriptor):
        return None
    with os.fdopen(os.dup(descriptor), "rb") as file:
        return file.read(MOST_BYTES + 1)


def _is_written(descriptor: int) -> bool:
    """Say whether a process has the file open for writing.

    A read lease is granted on a file that nobody writes (fcntl(2)). Where there are no leases, or the file is another
    user's, its rest for SETTLED_S is all that is known. Somebody who opens the file just then waits for the lease's end,
    and a signal says so: SIGURG, which does nothing, in the place of SIGIO, which ends a process.
    """
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except OSError as error:
        return error.errno == errno.EAGAIN
    fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    return False
