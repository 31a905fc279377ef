"""The live processes of this machine, by what they were started with."""

from __future__ import annotations

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
