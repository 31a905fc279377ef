"""Which compiler builds for a device, and its exact version."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from ridgeline.tools.errors import DeviceError
from ridgeline.tools.records import DeviceKind

_ADVICE = {
    DeviceKind.CPU: ("g++", "install it (Debian, Ubuntu: apt install g++; Fedora: dnf install gcc-c++)"),
    DeviceKind.CUDA: ("nvcc", "install the CUDA toolkit, or put its bin folder into PATH"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolchain:
    """One compiler: its path and what it says of itself."""

    compiler: Path
    version: str  # part of every build's key
    readable: tuple[Path, ...]  # folders outside /usr that the sandbox has to show


def find_toolchain(kind: DeviceKind) -> Toolchain:
    """Return the compiler for this kind of device.

    Raises:
        DeviceError: there is none, or it does not run.
    """
    host = _version(_find(DeviceKind.CPU))
    if kind is DeviceKind.CPU:
        return Toolchain(compiler=_find(kind), version=host, readable=())
    nvcc = _find(kind)
    # /usr/local/bin/nvcc is often a link; nvcc finds its own parts beside the file it really is.
    real = nvcc.resolve()
    root = real.parent.parent
    readable = () if root.is_relative_to("/usr") else (root,)
    return Toolchain(compiler=real, version=f"{_version(nvcc)}; {host}", readable=readable)


def _find(kind: DeviceKind) -> Path:
    name, advice = _ADVICE[kind]
    found = shutil.which(name) or shutil.which(name, path="/usr/local/cuda/bin")
    if not found:
        raise DeviceError(f"no {name} on this machine: {advice}")
    return Path(found)


def _version(compiler: Path) -> str:
    try:
        done = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True, timeout=30)
    except (OSError, subprocess.SubprocessError) as error:
        raise DeviceError(f"{compiler} does not run: {error}") from error
    lines = [line.strip() for line in done.stdout.splitlines() if line.strip()]
    return lines[-1] if compiler.name == "nvcc" else lines[0]
