"""The files whose code a process has mapped, read from /proc by the process that started it."""

from __future__ import annotations

from pathlib import Path, PurePath

ANONYMOUS = "code of no file"
_KERNELS = ("[vdso]", "[vsyscall]", "[uprobes]")
_DELETED = " (deleted)"


def mapped_code(pid: int) -> frozenset[str] | None:
    """Return the names, without folders, of what a process has mapped to execute; None where that may not be read.

    Memory that may be executed and belongs to no file counts as ANONYMOUS. Whoever runs in a mount namespace of its own
    cannot choose these names: they are the kernel's.
    """
    try:
        text = Path(f"/proc/{pid}/maps").read_text(errors="replace")
    except OSError:
        return None
    return frozenset(_name(line) for line in text.splitlines() if _is_code(line))


def _is_code(line: str) -> bool:
    fields = line.split(None, 5)
    return len(fields) > 1 and "x" in fields[1] and not line.endswith(_KERNELS)


def _name(line: str) -> str:
    fields = line.split(None, 5)  # proc_pid_maps(5): range, permissions, offset, device, inode, path
    if len(fields) < 6 or not fields[5].startswith("/"):
        return ANONYMOUS
    path = fields[5]
    return path if path.startswith("/memfd:") else PurePath(path.removesuffix(_DELETED)).name
