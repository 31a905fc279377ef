"""Triton's cache of compiled kernels, carried from the process that compiles them to a runner.

Triton asks ptxas, `file` and ldconfig on its way to a cached kernel, and a runner may start no process. Both processes
therefore give Triton the same answers beforehand: the answers are part of a cached kernel's name.
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
    """Let Triton, which is not imported yet, keep its kernels in this folder and find them without another process."""
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
    """Unpack kernels into `folder`, and let their lists of files name it."""
    with zipfile.ZipFile(archive) as packed:
        packed.extractall(folder)
    for listed in folder.rglob(f"{_GROUP}*"):
        group = json.loads(listed.read_text())
        group["child_paths"] = {name: str(listed.parent / name) for name in group.get("child_paths") or {}}
        listed.write_text(json.dumps(group))
