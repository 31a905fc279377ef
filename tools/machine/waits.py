"""Waits for a device that another process holds: the kernel names the holders, a listener shows them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ridgeline.tools.errors import NotBegun
from ridgeline.tools.machine.logs import logger_of
from ridgeline.tools.machine.system_files import text_of
from ridgeline.tools.records.printable import printable
from ridgeline.tools.wording import counted

logger = logger_of(__name__)

TELL_AFTER_S = 1.5
LOOK_EVERY_S = 0.5
REPEAT_AFTER_S = 60.0
"""Between two reports of one holder in a log: two searches on one device wait for each other all the time."""
NEWS_EVERY_S = 15.0
"""Between two reports of any holders in a log: among many searches the holder changes every few seconds."""
_COMMAND_SHOWN = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Holders:
    """The processes that hold a lock."""

    words: str  # "pid 12 (ridgeline run softmax)", "pid 12 (ridgeline run softmax) and 2 others"
    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """This process waits for a device that others hold; without a holder, it has the device now."""

    device: str  # "cpu", or a GPU's UUID
    holder: str  # Holders.words
    holders: int = 1  # how many processes hold it
    is_news: bool  # for a log: this holder was not reported within the last minute, nor any within some seconds

    @property
    def is_over(self) -> bool:
        """Say whether the device was waited for and is had now."""
        return not self.holder


_ELSEWHERE = Holders(words="a process that cannot be seen from here, such as one of another container")
Listener = Callable[[Wait | None], None]
"""Called with a wait when one begins, its holder changes or it is over, with None where it was given up."""


class Waits:
    """All waits of one engine for other processes; the listener hears of the oldest."""

    def __init__(
        self,
        listener: Listener | None = None,
        *,
        tell_after_s: float = TELL_AFTER_S,
        is_stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        self.tell_after_s = tell_after_s
        self.is_stopping = is_stopping
        self._listener = listener
        self._holders: dict[Watch, Holders] = {}
        self._told: tuple[str, Holders] | None = None
        self._told_at: dict[tuple[str, Holders], float] = {}
        self._newest: tuple[str, Holders] | None = None  # the last that was news

    def set(self, watch: Watch, holders: Holders | None) -> None:
        """Note the processes that `watch` waits for; None: no process but this one."""
        if holders is not None:
            self._holders[watch] = holders
        else:
            self._holders.pop(watch, None)
        self._tell_oldest(had=watch.device)

    def end(self, watch: Watch, *, is_had: bool) -> None:
        """End a wait: with the device, or given up."""
        self._holders.pop(watch, None)
        self._tell_oldest(had=watch.device if is_had else None)

    def _tell_oldest(self, *, had: str | None) -> None:
        """Tell of the oldest wait where that is something new; of none at all, which device this process has now."""
        oldest = next(iter(self._holders), None)
        now = (oldest.device, self._holders[oldest]) if oldest else None
        if now != self._told or (now is not None and now != self._newest and self._is_news(now)):
            self._told = now
            self._tell(now, had)

    def check_begin(self) -> None:
        """Raise NotBegun once a stop was asked for."""
        if self.is_stopping():
            raise NotBegun("a stop was asked for before it began")

    def _tell(self, now: tuple[str, Holders] | None, had: str | None) -> None:
        wait = Wait(device=had, holder="", holders=0, is_news=True) if had is not None else None
        if now is None:
            self._newest = None  # whoever holds the device next, and for long, is told of again
        else:
            is_news = self._is_news(now)
            if is_news:
                self._newest, self._told_at[now] = now, time.monotonic()
                logger.info("waiting for %s, held by %s", now[0], now[1].words)
            wait = Wait(device=now[0], holder=now[1].words, holders=now[1].count, is_news=is_news)
        if self._listener is not None:
            self._listener(wait)

    def _is_news(self, now: tuple[str, Holders]) -> bool:
        """Say whether a log should report the wait: its holder not within a minute, nor any within some seconds."""
        at = time.monotonic()
        newest_at = max(self._told_at.values(), default=-NEWS_EVERY_S)
        return at - self._told_at.get(now, -REPEAT_AFTER_S) >= REPEAT_AFTER_S and at - newest_at >= NEWS_EVERY_S


class Watch:
    """One wait for one device; `waits` hears of it once it has lasted a while and another process is the reason."""

    def __init__(self, device: str, waits: Waits) -> None:
        self.device = device
        self._waits = waits
        self._look_at = time.monotonic() + waits.tell_after_s
        self._was_unseen = False

    def look(self, descriptor: int) -> None:
        """Find out who holds the lock that is waited for now, when the next look is due.

        Raises:
            NotBegun: a stop was asked for, so the task that waits need not begin.
        """
        self._waits.check_begin()
        if time.monotonic() >= self._look_at:
            self._look_at = time.monotonic() + LOOK_EVERY_S
            self._waits.set(self, self._holder(descriptor))

    def end(self, *, is_had: bool) -> None:
        """End the wait, with the device or without."""
        self._waits.end(self, is_had=is_had)

    def _holder(self, descriptor: int) -> Holders | None:
        pids = lock_holders(descriptor)
        if pids:
            return name_processes([pid for pid in pids if pid != os.getpid()])
        was_unseen, self._was_unseen = self._was_unseen, True
        return _ELSEWHERE if was_unseen else None  # unseen once: the lock was released just now


def lock_holders(descriptor: int) -> list[int]:
    """Return the processes that hold the file's lock, as far as the kernel tells this one of them."""
    inode = f":{os.fstat(descriptor).st_ino}"
    lines = [line.split() for line in text_of(Path("/proc/locks")).splitlines()]
    # "1: FLOCK  ADVISORY  WRITE 715 08:02:1234 0 EOF"; a waiter's line has "->" second, a foreign pid is 0
    held = [words for words in lines if len(words) > 5 and words[1] == "FLOCK" and words[5].endswith(inode)]
    return list(dict.fromkeys(int(words[4]) for words in held if words[4].isdigit() and words[4] != "0"))


def name_process(pid: int) -> str:
    """Return a process in words: its number, and its command where it may be read."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return f"pid {pid}"
    command = " ".join([os.path.basename(words[0]), *words[1:]]).strip()
    shown = printable(command)
    return f"pid {pid} ({shown[:_COMMAND_SHOWN]}{'…' * (len(shown) > _COMMAND_SHOWN)})" if shown else f"pid {pid}"


def name_processes(pids: Sequence[int]) -> Holders | None:
    """Return the first process in words and how many others there are; None without one."""
    if not pids:
        return None
    others = f" and {counted(len(pids) - 1, 'other')}" if len(pids) > 1 else ""
    return Holders(words=name_process(pids[0]) + others, count=len(pids))


def describe_wait(device: str, holder: str, holders: int = 1) -> str:
    """Return a wait in one line for a person; `holders` is how many processes `holder` stands for. Without one it is over."""
    if not holder:
        return f"{device} is free: going on"
    return f"waiting for {device}: {holder} {'holds' if holders == 1 else 'hold'} it"
