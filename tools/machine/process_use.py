"""The processor time, threads and page faults of a process so far, read from /proc, and the cores that it may use."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from ridgeline.tools.machine.devices import measurement_cores

_AT_REST = "TtZX"  # stopped, traced, ended
_LONGEST_STAT = 4096
_RAN, _WAITED = 0, 1  # fields of /proc/PID/task/TID/schedstat
_AFTER_COMMAND = 3  # proc_pid_stat(5): the list that follows "pid (command) " starts at field 3


def cpu_seconds(pid: int) -> float:
    """Return user plus system time of all threads of a process; 0.0 when it is gone."""
    fields = _stat_fields(pid)
    return (int(fields[14 - _AFTER_COMMAND]) + int(fields[15 - _AFTER_COMMAND])) / _ticks() if fields else 0.0


def process_clock_s(pid: int) -> float:
    """Return the processor time of a process to the nanosecond, that of threads which ended too; 0.0 when it is gone."""
    scheduler = 2  # of the clocks of a process that clock_getcpuclockid(3) can name, the one in nanoseconds
    with contextlib.suppress(OSError):
        return time.clock_gettime(~pid << 3 | scheduler)
    return 0.0


def page_faults(pid: int) -> int:
    """Return the minor page faults of a process; 0 when it is gone."""
    fields = _stat_fields(pid)
    return int(fields[10 - _AFTER_COMMAND]) if fields else 0


def thread_count(pid: int) -> int:
    """Return how many threads a process has; 0 when it is gone."""
    fields = _stat_fields(pid)
    return int(fields[20 - _AFTER_COMMAND]) if fields else 0


def thread_ids(pid: int) -> list[str]:
    """Return the ids of a process's threads, [] when it is gone; PermissionError where /proc hides them."""
    try:
        return os.listdir(f"/proc/{pid}/task")
    except (FileNotFoundError, ProcessLookupError):
        return []


class Threads:
    """The threads of one process; their /proc files stay open, so that a look takes 20 us."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._stats: dict[str, int] = {}  # by thread id: its stat file's descriptor

    def are_at_rest(self) -> bool:
        """Return whether no thread can run: all are stopped, or the process is gone.

        A signal stops a thread when it returns from the kernel; one inside a long system call works on until then, also
        after the process as a whole counts as stopped.
        """
        tasks = thread_ids(self._pid)
        self._forget(self._stats.keys() - set(tasks))
        return all(self._state(task) in _AT_REST for task in tasks)

    def _state(self, task: str) -> str:
        """Return a thread's state; reading its open file fails once the thread has ended."""
        for _ in range(2):
            try:
                if task not in self._stats:
                    self._stats[task] = os.open(f"/proc/{self._pid}/task/{task}/stat", os.O_RDONLY | os.O_CLOEXEC)
                text = os.pread(self._stats[task], _LONGEST_STAT, 0)
                return chr(text[text.rindex(b")") + 2])
            except (FileNotFoundError, ProcessLookupError):
                if (ended := self._stats.pop(task, None)) is not None:
                    os.close(ended)
        return "X"

    def _forget(self, tasks: Iterable[str]) -> None:
        """Close the files of these threads: else a program that keeps replacing threads would use up this process's files."""
        for task in tasks:
            os.close(self._stats.pop(task))

    def close(self) -> None:
        """Close the files."""
        self._forget(list(self._stats))


@contextlib.contextmanager
def on_any_core(pid: int) -> Iterator[None]:
    """Let a process's first thread run on every core of the measurement: OpenMP binds it to one, which may be taken for long.

    One that is gone is left alone: whoever asks it next finds out.
    """
    bound: set[int] = set()
    with contextlib.suppress(ProcessLookupError):
        bound = os.sched_getaffinity(pid)
        os.sched_setaffinity(pid, measurement_cores())
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.sched_setaffinity(pid, bound or measurement_cores())


def _stat_fields(pid: int) -> list[str]:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")  # its name is whatever it calls itself
    except (FileNotFoundError, ProcessLookupError):
        return []
    return text[text.rindex(")") + 2 :].split()  # the command's name may hold spaces and parentheses


def _ticks() -> int:
    return os.sysconf("SC_CLK_TCK")


class ProcessorTime:
    """The time that a process spends on cores from now on."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._threads_ns = _threads_ns(pid)
        self._all_s = cpu_seconds(pid)

    def seconds(self) -> float:
        """Return the seconds so far: to the nanosecond for threads that live, in ticks of 10 ms for those that ended."""
        living_ns = sum(ns - self._threads_ns.get(task, 0) for task, ns in _threads_ns(self._pid).items())
        # user and system time are each rounded down to a tick
        with_ended_s = cpu_seconds(self._pid) - self._all_s - 2 / _ticks()
        return max(living_ns / 1e9, with_ended_s, 0.0)


def thread_waited_s() -> float:
    """Return the seconds that the calling thread could have run and waited for a core."""
    return int(Path("/proc/thread-self/schedstat").read_text().split()[_WAITED]) / 1e9


def waited_s(pid: int) -> float:
    """Return the seconds that the living threads of a process could have run and waited for a core; 0.0 when it is gone."""
    return sum(waits_ns(pid).values()) / 1e9


def waits_ns(pid: int) -> dict[str, int]:
    """Return the nanoseconds that each living thread of a process could have run and waited for a core, by its id."""
    return _threads_ns(pid, _WAITED)


def _threads_ns(pid: int, field: int = _RAN) -> dict[str, int]:
    """Return a time of each living thread by its id; one that ends meanwhile is left out."""
    found = {}
    for task in thread_ids(pid):
        try:
            found[task] = int(Path(f"/proc/{pid}/task/{task}/schedstat").read_text().split()[field])
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found
