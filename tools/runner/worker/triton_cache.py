"""Triton's cache of compiled kernels, carried from where processes may be started to where none may (in both).

Triton asks ptxas, `file` and ldconfig on its way to a cached kernel. Where it may start no process it needs their answers
given, and the same answers where the kernels were compiled, because they are part of a cached kernel's name.
"""

from __future__ import annotations

import json
import os
import platform
import zipfile
from pathlib import Path

_GROUP = "__grp__"  # how Triton's list of a kernel's files is called, which names them by their whole path
_SAME_EVERYWHERE = {"TRITON_MOCK_PTX_VERSION": "ahead", "TRITON_CACHE_AUTOTUNING": "0"}


def use_cache(folder: Path) -> None:
    """Let Triton, which is not imported yet, keep its kernels in this folder and start no process to find one there."""
    folder.mkdir(exist_ok=True)
    os.environ.update(_SAME_EVERYWHERE, TRITON_CACHE_DIR=str(folder))
    platform.architecture = lambda *_args, **_named: ("64bit", "ELF")


def pack(folder: Path, target: Path) -> None:
    """Write everything that Triton keeps into one file."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and not path.is_symlink():
                archive.write(path, str(path.relative_to(folder)))


def unpack(archive: Path, folder: Path) -> None:
    """Put kernels back, where their lists of files then say that they are."""
    with zipfile.ZipFile(archive) as packed:
        packed.extractall(folder)
    for listed in folder.rglob(f"{_GROUP}*"):
        group = json.loads(listed.read_text())
        group["child_paths"] = {name: str(listed.parent / name) for name in group.get("child_paths") or {}}
        listed.write_text(json.dumps(group))
