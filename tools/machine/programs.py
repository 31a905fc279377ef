"""Programs and libraries that Ridgeline compiled into the cache folder."""

from __future__ import annotations

import struct
from pathlib import Path

from ridgeline.tools.machine.kept_records import open_ordinary

_HEADER = struct.Struct("<4s36xQ10xHHH")
"""Of a 64-bit ELF file: its magic number, and where, how large and how many its section headers are; see elf(5)."""


def is_whole_program(path: Path) -> bool:
    """Say whether an ELF file is as long as its header says: its section headers come last."""
    try:
        with open_ordinary(path) as file:
            magic, start, size, count, _ = _HEADER.unpack(file.read(_HEADER.size))
            return bool(magic == b"\x7fELF" and start + size * count <= file.seek(0, 2))
    except (OSError, struct.error):
        return False
