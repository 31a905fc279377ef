"""The compiler for one device, checked: it builds for this GPU, and its driver runs what comes out."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from ridgeline.tools.build.toolchain import Toolchain, find_toolchain
from ridgeline.tools.errors import DeviceError
from ridgeline.tools.records.problem import Device
from ridgeline.tools.records.vocabulary import DeviceKind


def toolchain_for(device: Device) -> Toolchain:
    """Return the compiler for this device (about 50 ms for a GPU: three programs are asked).

    Raises:
        DeviceError: there is none, it does not build for this GPU, or the GPU's driver is older than it.
    """
    found = find_toolchain(device.kind)
    if device.kind is DeviceKind.CUDA:
        check_driver(device, found.version)
        check_architecture(device, found.version, _architectures(found.compiler))
    return found


def check_driver(device: Device, compiler: str) -> None:
    """Refuse a driver that cannot run what this nvcc builds; `compiler` is its `--version` line.

    Within one major version of CUDA every driver runs what every toolkit builds for the GPU at hand (minor version
    compatibility, CUDA 11 and later); a driver of an earlier major version runs none of it. A newer driver always does.

    Raises:
        DeviceError: the driver is too old; one line says what to do.
    """
    offered, built = re.search(r"CUDA (\d+)\.(\d+)", device.driver), _release(compiler)
    if device.kind is not DeviceKind.CUDA or offered is None or built is None:
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
    numbers = {int(digits[0]) for name in (*builds_for, device.arch) if (digits := re.search(r"\d+", name))}
    is_dropped = device.arch.rstrip("af") == f"sm_{min(numbers)}"
    built = _release(compiler)
    toolkit = f"CUDA {built[1]}.{built[2]}" if built else "the one found"
    raise DeviceError(
        f"{device.name}: the toolkit ({toolkit}) does not build for {device.arch}: put the nvcc of "
        f"{'an earlier' if is_dropped else 'a later'} one first in PATH, or use --device cpu"
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
