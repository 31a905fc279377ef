"""The compiler for a device: its path, its exact version, and whether the device runs what it builds."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ridgeline.tools.errors import DeviceError, StorageError
from ridgeline.tools.machine.logs import logger_of
from ridgeline.tools.records.problem import Device
from ridgeline.tools.records.vocabulary import DeviceKind
from ridgeline.tools.wording import option

logger = logger_of(__name__)

_NVCC_FOLDER = "/usr/local/cuda/bin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolchain:
    """One compiler: its path and its own description of its version."""

    compiler: Path
    version: str  # part of every build's key
    readable: tuple[Path, ...]  # folders outside /usr that the sandbox has to show
    cuda_home: Path | None = None  # of nvcc: the folder of its toolkit


class DeviceCompiler(Protocol):
    """The one compiler that everything for a kind of device is built with."""

    program: str
    folder: str  # where it is looked for after PATH, "" for nowhere
    version_line: int  # the line of `--version` that tells it from others
    advice: str  # to someone who lacks it; {cpu} is how to choose the CPU

    def toolchain(self) -> Toolchain:
        """Return this compiler as found here.

        Raises:
            DeviceError: there is none, or it does not run.
        """
        ...

    def check(self, device: Device, toolchain: Toolchain) -> None:
        """Refuse a device that does not run what this compiler builds.

        Raises:
            DeviceError: one line says what to do.
        """
        ...


class _Gxx:
    """g++, which builds for the CPU of this machine."""

    program = "g++"
    folder = ""
    version_line = 0
    advice = "install it (Debian, Ubuntu: apt install g++; Fedora: dnf install gcc-c++)"

    def toolchain(self) -> Toolchain:
        path = _found(self)
        return Toolchain(compiler=path, version=_version(self, path), readable=())

    def check(self, device: Device, toolchain: Toolchain) -> None:
        """Do nothing: the flags make it build for the machine that it runs on."""


class _Nvcc:
    """nvcc, which builds for one GPU's architecture with g++ beside it."""

    program = "nvcc"
    folder = _NVCC_FOLDER
    version_line = -1
    advice = "install the CUDA toolkit, put its bin folder into PATH, or use {cpu}"

    def toolchain(self) -> Toolchain:
        host = _Gxx().toolchain()
        path = _found(self)
        # /usr/local/bin/nvcc is often a link, and nvcc looks for its parts beside the file that the link names.
        real = path.resolve()
        root = real.parent.parent
        return Toolchain(
            compiler=real,
            version=f"{_version(self, path)}; {host.version}",
            readable=() if root.is_relative_to("/usr") else (root,),
            cuda_home=cuda_home(real),
        )

    def check(self, device: Device, toolchain: Toolchain) -> None:
        check_driver(device, toolchain.version)
        check_architecture(device, toolchain.version, _architectures(toolchain.compiler))


_COMPILERS: dict[DeviceKind, DeviceCompiler] = {DeviceKind.CPU: _Gxx(), DeviceKind.CUDA: _Nvcc()}


def find_toolchain(kind: DeviceKind) -> Toolchain:
    """Return the compiler for this kind of device.

    Raises:
        DeviceError: there is none, or it does not run.
    """
    return _COMPILERS[kind].toolchain()


def toolchain_for(device: Device) -> Toolchain:
    """Return the compiler for this device (about 50 ms for a GPU: three programs are asked).

    Raises:
        DeviceError: there is none, it does not build for this GPU, or the GPU's driver is older than it.
    """
    found = find_toolchain(device.kind)
    _COMPILERS[device.kind].check(device, found)
    return found


def check_driver(device: Device, compiler: str) -> None:
    """Refuse a driver that cannot run what this nvcc builds; `compiler` is its `--version` line.

    Within one major version of CUDA every driver runs what every toolkit builds for the GPU at hand (minor version
    compatibility, CUDA 11 and later); a driver of an earlier major version runs none of it. A newer driver always does.

    Raises:
        DeviceError: the driver is too old; one line says what to do.
    """
    offered, built = re.search(r"CUDA (\d{1,4})\.(\d{1,4})", device.driver), _release(compiler)
    if offered is None or built is None:
        return
    if int(offered[1]) < int(built[1]):
        raise DeviceError(
            f"{device.name}: its driver ({device.driver}) is older than the toolkit (CUDA {built[1]}.{built[2]}): install "
            f"a driver for CUDA {built[1]}, or put the nvcc of a CUDA {offered[1]} toolkit first in PATH"
        )


def check_architecture(device: Device, compiler: str, builds_for: frozenset[str]) -> None:
    """Refuse an nvcc that does not build for this GPU; it lists "sm_90" for "sm_90a" too.

    Raises:
        DeviceError: the toolkit is too old for the GPU, or has dropped it; one line says what to do.
    """
    if not builds_for or device.arch.rstrip("af") in builds_for:
        return
    numbers = {int(digits[0]) for name in (*builds_for, device.arch) if (digits := re.search(r"\d{1,4}", name))}
    is_dropped = device.arch.rstrip("af") == f"sm_{min(numbers)}"
    built = _release(compiler)
    toolkit = f"CUDA {built[1]}.{built[2]}" if built else "the one found"
    raise DeviceError(
        f"{device.name}: the toolkit ({toolkit}) does not build for {device.arch}: put the nvcc of "
        f"{'an earlier' if is_dropped else 'a later'} one first in PATH, or use {option('device', 'cpu')}"
    )


def _release(compiler: str) -> re.Match[str] | None:
    return re.search(r"release (\d+)\.(\d+)", compiler) or re.search(r"cuda_(\d+)\.(\d+)", compiler)


def _architectures(nvcc: Path) -> frozenset[str]:
    """Return the architectures that nvcc builds for, none where it does not say (before CUDA 11)."""
    try:
        done = subprocess.run([nvcc, "--list-gpu-code"], capture_output=True, text=True, check=False, timeout=30)
    except (OSError, subprocess.SubprocessError) as error:
        raise DeviceError(f"{nvcc} does not run: {error}") from error
    return frozenset(done.stdout.split()) if done.returncode == 0 else frozenset()


def cuda_home(nvcc: Path) -> Path:
    """Return the folder of nvcc's toolkit, which holds the headers. Where PATH has a script for nvcc: the default folder."""
    root = nvcc.resolve().parent.parent
    return root if (root / "include" / "cuda_runtime.h").exists() else Path(_NVCC_FOLDER).parent


def compiler_path(kind: DeviceKind) -> Path | None:
    """Return the one compiler that everything for this kind of device is built with, or None without it.

    $CXX is ignored: torch's headers and the flags are tried with g++ alone. nvcc is looked for in PATH, then in its
    default folder.
    """
    return _located(_COMPILERS[kind])


def installed_version(kind: DeviceKind) -> str | None:
    """Return the compiler's description of its version; None where there is no compiler, or it does not run."""
    found = compiler_path(kind)
    if found is None:
        return None
    try:
        return _version(_COMPILERS[kind], found)
    except DeviceError as error:
        logger.warning("%s", error)
        return None


def _version(compiler: DeviceCompiler, path: Path) -> str:
    """Return the line of `--version` that tells this compiler from others.

    Raises:
        DeviceError: it does not run.
    """
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, check=True, timeout=30)
    except (OSError, subprocess.SubprocessError) as error:
        raise DeviceError(f"{path} does not run: {error}") from error
    lines = [line.strip() for line in done.stdout.splitlines() if line.strip()] or ["unknown version"]
    return lines[compiler.version_line]


def _found(compiler: DeviceCompiler) -> Path:
    path = _located(compiler)
    if path is None:
        advice = compiler.advice.format(cpu=option("device", "cpu"))
        raise DeviceError(f"no {compiler.program} on this machine: {advice}")
    return path


def _located(compiler: DeviceCompiler) -> Path | None:
    found = shutil.which(compiler.program)
    if found is None and compiler.folder:
        found = shutil.which(compiler.program, path=compiler.folder)
    return Path(found) if found else None


def build_trusted(product: Path, command: Sequence[str], *, what: str, timeout_s: float = 120.0) -> None:
    """Run a compiler on a source of Ridgeline's own and put what it builds at `product` by one rename.

    `command` lacks only its `-o`.

    Raises:
        DeviceError: the compiler fails or hangs; one line says why.
        StorageError: the product's folder cannot be written.
    """
    try:
        product.parent.mkdir(parents=True, exist_ok=True, mode=0o755)
        with tempfile.TemporaryDirectory(dir=product.parent) as scratch:
            fresh = Path(scratch) / product.name
            built = subprocess.run(
                [*command, "-o", str(fresh)], capture_output=True, text=True, check=False, timeout=timeout_s
            )
            if built.returncode != 0:
                first = next(iter(built.stderr.strip().splitlines()), "no message")
                raise DeviceError(f"{command[0]} cannot build {what}: {first}")
            fresh.chmod(0o755)
            os.replace(fresh, product)
    except subprocess.TimeoutExpired as error:
        raise DeviceError(f"{command[0]} did not build {what} within {timeout_s:.0f} s") from error
    except OSError as error:
        raise StorageError(f"{product.parent}: {what} cannot be built there: {error.strerror or error}") from error
