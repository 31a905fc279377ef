"""The include folders, libraries and flags for building against torch.

A process of its own (`build/worker/`) asks torch, once for each installed version; the answer is kept on disk.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import sys
import tempfile
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from ridgeline.tools.errors import EngineError
from ridgeline.tools.machine.kept_records import read_kept
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

    `cuda_home` is the folder of the CUDA toolkit whose nvcc will compile.

    Raises:
        EngineError: torch does not import here.
    """
    stored = cache_dir / "torch" / f"{_identity(kind, cuda_home)}.json"
    if (known := read_kept(stored, TorchPaths)) is not None:
        return known
    answer = await _ask(kind, cuda_home)
    paths = TorchPaths.from_json(json.loads(answer))
    stored.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=stored.parent, delete=False, encoding="utf-8") as file:
        file.write(answer)
    os.replace(file.name, stored)
    return paths


def _identity(kind: DeviceKind, cuda_home: Path | None) -> str:
    where = metadata.distribution("torch").locate_file("torch")
    parts = (kind, str(cuda_home or ""), metadata.version("torch"), str(where), sys.version)
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]


async def _ask(kind: DeviceKind, cuda_home: Path | None) -> str:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "ridgeline.tools.build.worker",
        kind,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={
            "PATH": os.environ.get("PATH", ""),
            "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
            **({"CUDA_HOME": str(cuda_home)} if cuda_home else {}),
        },
    )
    output, messages = await process.communicate()
    if process.returncode:
        last = messages.decode(errors="replace").strip().splitlines()[-1:]
        raise EngineError(f"torch does not import: {' '.join(last)}: install it again")
    return output.decode()
