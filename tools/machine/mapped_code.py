"""The files whose code a process has mapped, read from /proc by the process that started it."""

from __future__ import annotations

import contextlib
from pathlib import Path

from ridgeline.tools.machine.process_use import thread_ids
from ridgeline.tools.machine.system_files import text_of

ANONYMOUS = "code of no file"
_KERNELS = frozenset({"[vdso]", "[vsyscall]", "[uprobes]"})
_DELETED = " (deleted)"


def mapped_code(pid: int) -> frozenset[str] | None:
    """Return the paths of what a process has mapped to execute; None where that may not be read.

    Memory that may be executed and belongs to no file counts as ANONYMOUS. A process may name a file that it makes as it
    likes, where it may make one: in its own scratch.
    """
    lines = _maps(pid)
    return frozenset(map(_path, filter(_is_code, lines))) if lines else None


def _maps(pid: int) -> list[str]:
    """Return what a process has mapped, [] where that is unknown.

    /proc/PID shows the first thread's memory, which is none once that thread has ended; the others go on with it.
    """
    with contextlib.suppress(OSError):  # the listing may be hidden
        for maps in (f"/proc/{pid}/maps", *(f"/proc/{pid}/task/{thread}/maps" for thread in thread_ids(pid))):
            if text := text_of(Path(maps)):
                return text.rstrip("\n").split("\n")  # of what separates lines, a name has that alone escaped
    return []


def _is_code(line: str) -> bool:
    fields = line.split(None, 5)
    return len(fields) > 1 and "x" in fields[1] and fields[-1] not in _KERNELS


def _path(line: str) -> str:
    fields = line.split(None, 5)  # proc_pid_maps(5): range, permissions, offset, device, inode, path
    if len(fields) < 6 or not fields[5].startswith("/"):
        return ANONYMOUS
    return fields[5].removesuffix(_DELETED)
