"""The live processes of this machine, by what they were started with, and what this one holds open."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def processes_naming(path: str) -> list[str]:
    """Return the command lines of live processes that name `path`."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                command = (entry / "cmdline").read_bytes().decode(errors="replace")
            except (FileNotFoundError, ProcessLookupError):
                continue
            if path in command:
                found.append(command)
    return found


def open_files() -> set[tuple[str, str]]:
    """Return this process's descriptors and what each is open on.

    What a test opened is the difference to before. A count is none: what an earlier test left may be collected meanwhile.
    """
    found = set()
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):  # that of the listing itself
            found.add((number, os.readlink(f"/proc/self/fd/{number}")))
    return found
