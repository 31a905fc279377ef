"""What building against torch needs: its include folders, libraries and flags.

torch itself is asked, in a process of its own (`python -m ridgeline.tools.torch_paths`), once per installed version;
the answer is kept on disk. Nothing else here imports torch.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import sys
import sysconfig
import tempfile
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from ridgeline.tools.errors import EngineError
from ridgeline.tools.records import Record

TORCH_MODULE = "ridgeline_candidate"  # the extension's Python name


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchPaths(Record):
    """Where the installed torch keeps what an extension needs."""

    version: str
    include: tuple[str, ...]
    library_folders: tuple[str, ...]
    libraries: tuple[str, ...]
    flags: tuple[str, ...]


async def find_torch_paths(cache_dir: Path, kind: str, cuda_home: str = "") -> TorchPaths:
    """Return the paths for this interpreter's torch, from disk or from a process that imports it (2 to 6 s).

    `cuda_home` is the folder of the CUDA toolkit whose nvcc will compile.

    Raises:
        EngineError: torch does not import here.
    """
    stored = cache_dir / "torch" / f"{_identity(kind, cuda_home)}.json"
    try:
        return TorchPaths.from_json(json.loads(stored.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        answer = await _ask(kind, cuda_home)
    paths = TorchPaths.from_json(json.loads(answer))
    stored.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=stored.parent, delete=False, encoding="utf-8") as file:
        file.write(answer)
    os.replace(file.name, stored)
    return paths


def _identity(kind: str, cuda_home: str) -> str:
    where = metadata.distribution("torch").locate_file("torch")
    parts = (kind, cuda_home, metadata.version("torch"), str(where), sys.version)
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]


async def _ask(kind: str, cuda_home: str) -> str:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "ridgeline.tools.torch_paths",
        kind,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={
            "PATH": os.environ.get("PATH", ""),
            "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
            **({"CUDA_HOME": cuda_home} if cuda_home else {}),
        },
    )
    output, messages = await process.communicate()
    if process.returncode:
        last = messages.decode(errors="replace").strip().splitlines()[-1:]
        raise EngineError(f"torch does not import: {' '.join(last)}: install it again")
    return output.decode()


def _answer(kind: str) -> TorchPaths:
    import torch
    from torch.utils import cpp_extension

    on_gpu = kind == "cuda"
    cuda = ("c10_cuda", "torch_cuda", "cudart") if on_gpu else ()
    # torch's own nvcc flags, and the runtime that torch itself loads: not a second one in the extension
    nvcc = (*cpp_extension.COMMON_NVCC_FLAGS, "-cudart=shared") if on_gpu else ()
    return TorchPaths(
        version=str(torch.__version__),
        include=(*cpp_extension.include_paths(kind), sysconfig.get_path("include")),
        library_folders=tuple(cpp_extension.library_paths(kind)),
        libraries=("c10", "torch_cpu", "torch", "torch_python", *cuda),
        flags=(
            "-std=c++20",  # what this torch's own extension builder passes; its headers need it
            "-DTORCH_API_INCLUDE_EXTENSION_H",
            f"-DTORCH_EXTENSION_NAME={TORCH_MODULE}",
            f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}",
            *nvcc,
        ),
    )


if __name__ == "__main__":
    sys.stdout.write(json.dumps(_answer(sys.argv[1]).to_json()))
