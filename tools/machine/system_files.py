"""Reading what the kernel or a distribution tells in files, such as those of /proc; a missing one counts as empty."""

from __future__ import annotations

from pathlib import Path


def text_of(path: Path) -> str:
    """Return what a file says, "" where it cannot be read; a process may have named itself by bytes that are no UTF-8."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
