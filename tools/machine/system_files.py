"""Files that the kernel or a distribution writes for whoever looks, as in /proc: one that is not there says nothing."""

from __future__ import annotations

from pathlib import Path


def text_of(path: Path) -> str:
    """Return what a file says, "" where it cannot be read; a process may have named itself by bytes that are no UTF-8."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
