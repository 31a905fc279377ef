"""What a process has used so far, read from /proc: processor time, threads, page faults."""

from __future__ import annotations

import os
from pathlib import Path

_AT_REST = "TtZX"  # stopped, traced, ended
IDLE_SHARE = 0.05
"""Of one core: a process that has nothing to do and uses more is at work behind the clock's back."""
_AFTER_COMMAND = 3  # proc_pid_stat(5): the list that follows "pid (command) " starts at field 3


def cpu_seconds(pid: int) -> float:
    """Return user plus system time of all threads of a process; 0.0 when it is gone."""
    fields = _stat_fields(pid)
    return (int(fields[14 - _AFTER_COMMAND]) + int(fields[15 - _AFTER_COMMAND])) / _ticks() if fields else 0.0


def page_faults(pid: int) -> int:
    """Return the minor page faults of a process; 0 when it is gone."""
    fields = _stat_fields(pid)
    return int(fields[10 - _AFTER_COMMAND]) if fields else 0


def thread_count(pid: int) -> int:
    """Return how many threads a process has; 0 when it is gone."""
    fields = _stat_fields(pid)
    return int(fields[20 - _AFTER_COMMAND]) if fields else 0


def is_stopped(pid: int) -> bool:
    """Return whether no thread of a process can run: all are stopped, or the process is gone.

    A signal stops a thread when it returns from the kernel; one inside a long system call works on until then, also
    after the process as a whole counts as stopped.
    """
    try:
        states = [_state(task / "stat") for task in Path(f"/proc/{pid}/task").iterdir()]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return all(state in _AT_REST for state in states)


def _state(stat: Path) -> str:
    try:
        text = stat.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return "X"
    return text[text.rindex(")") + 2]


def _stat_fields(pid: int) -> list[str]:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return []
    return text[text.rindex(")") + 2 :].split()  # the command's name may hold spaces and parentheses


def _ticks() -> int:
    return os.sysconf("SC_CLK_TCK")


def busy_seconds(pid: int) -> float:
    """Return the time that a process's living threads have spent on a core, to the nanosecond; 0.0 when it is gone.

    `cpu_seconds` counts in ticks of 10 ms, too coarse to see what an idle process does in as many.
    """
    total_ns = 0
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        for task in tasks:
            total_ns += int((task / "schedstat").read_text().split()[0])
    except (FileNotFoundError, ProcessLookupError):
        return cpu_seconds(pid)
    return total_ns / 1e9
