"""The include folders, libraries and flags for building against torch.

A process of its own (`build/worker/`) asks torch, once for each installed version; the answer is kept on disk.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from ridgeline.tools.errors import EngineError
from ridgeline.tools.machine.kept_records import read_kept
from ridgeline.tools.machine.places import replace_json
from ridgeline.tools.machine.python_env import python_command, python_path
from ridgeline.tools.records.codec import Record
from ridgeline.tools.records.vocabulary import DeviceKind


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchPaths(Record):
    """Paths and flags of the installed torch that an extension needs."""

    version: str
    include: tuple[str, ...]
    library_folders: tuple[str, ...]
    libraries: tuple[str, ...]
    flags: tuple[str, ...]


async def find_torch_paths(cache_dir: Path, kind: DeviceKind, cuda_home: Path | None = None) -> TorchPaths:
    """Return the paths for this interpreter's torch, from disk or from a process that imports it (2 to 6 s).

    `cuda_home` is the folder of the CUDA toolkit whose nvcc will compile. What cannot be kept is not: only time is lost.

    Raises:
        EngineError: torch does not import here.
    """
    stored = cache_dir / "torch" / f"{_identity(kind, cuda_home)}.json"
    if (known := await asyncio.to_thread(read_kept, stored, TorchPaths)) is not None:
        return known
    paths = TorchPaths.from_json(json.loads(await _ask(kind, cuda_home)))
    with contextlib.suppress(OSError):
        await asyncio.to_thread(replace_json, stored, paths.to_json())
    return paths


def _identity(kind: DeviceKind, cuda_home: Path | None) -> str:
    where = metadata.distribution("torch").locate_file("torch")
    parts = (kind, str(cuda_home or ""), metadata.version("torch"), str(where), sys.version)
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]


async def _ask(kind: DeviceKind, cuda_home: Path | None) -> str:
    """Return what a process that imports torch prints: nothing in this process's folder is imported in its place."""
    process = await asyncio.create_subprocess_exec(
        *python_command("build.worker", kind),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={
            "PATH": os.environ.get("PATH", ""),
            "PYTHONPATH": python_path(),
            **({"CUDA_HOME": str(cuda_home)} if cuda_home else {}),
        },
        cwd="/",
    )
    output, messages = await process.communicate()
    if process.returncode:
        last = messages.decode(errors="replace").strip().splitlines()[-1:]
        raise EngineError(f"torch does not import: {' '.join(last)}: install it again")
    return output.decode()
