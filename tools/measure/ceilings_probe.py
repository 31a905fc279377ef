"""The program that measures a device's ceilings: its build, its working sets and its run, one class for each kind."""

from __future__ import annotations

import hashlib
import json
import math
import os
import subprocess
from pathlib import Path
from typing import Any, Protocol

from ridgeline.tools.build.flags import architecture_flags
from ridgeline.tools.build.toolchain import build_trusted, toolchain_for
from ridgeline.tools.errors import EngineError
from ridgeline.tools.judge.set_count import rotating_limit
from ridgeline.tools.machine.architecture import has_wgmma
from ridgeline.tools.machine.devices import measurement_cores
from ridgeline.tools.machine.logs import logger_of
from ridgeline.tools.machine.places import default_cache_dir
from ridgeline.tools.machine.programs import is_whole_program
from ridgeline.tools.records.problem import Device
from ridgeline.tools.records.vocabulary import DeviceKind

logger = logger_of(__name__)

NATIVE = Path(__file__).parent / "native"
SMALL_TOTALS = (2 << 20, 16 << 20, 64 << 20, 256 << 20)
SECONDS_PER_TOTAL = 0.4
PROBE_TIMEOUT_S = 120.0


class CeilingsProbe(Protocol):
    """The probe of one kind of device."""

    name: str  # in the message of a failed build
    usual_s: str  # how long the probe takes, for a log
    kept_s: float  # how long its ceilings hold
    sources: tuple[Path, ...]  # the file to compile, then the files that it includes

    @property
    def file_key(self) -> str:
        """Return what tells the file of this device's ceilings from others."""
        ...

    def flags(self) -> tuple[str, ...]:
        """Return the compiler's flags."""
        ...

    def totals(self) -> tuple[int, ...]:
        """Return the working sets to measure in bytes, smallest first."""
        ...

    def environment(self) -> dict[str, str]:
        """Return the probe's whole environment."""
        ...


class CpuProbe:
    """Measures the cores that measurements use."""

    name = "the ceilings probe (OpenMP is needed)"
    usual_s = "2 to 5"
    kept_s = 3600.0  # other programs may have slowed the last probe
    sources: tuple[Path, ...] = (NATIVE / "ceilings.cpp",)

    def __init__(self, device: Device) -> None:
        self._device = device

    @property
    def file_key(self) -> str:
        return self._device.arch

    def flags(self) -> tuple[str, ...]:
        return ("-O3", "-march=native", "-mprefer-vector-width=512", "-fopenmp")

    def totals(self) -> tuple[int, ...]:
        return _totals_up_to_rotation(self._device)

    def environment(self) -> dict[str, str]:
        cores = measurement_cores()
        return {"OMP_NUM_THREADS": str(len(cores)), "OMP_PLACES": ",".join(f"{{{core}}}" for core in cores)}


class CudaProbe:
    """Measures one GPU with no other visible."""

    name = "the ceilings probe"
    usual_s = "5 to 15"
    kept_s = math.inf
    sources: tuple[Path, ...] = (NATIVE / "ceilings.cu", NATIVE / "ceilings_mma.h")

    def __init__(self, device: Device) -> None:
        self._device = device

    @property
    def file_key(self) -> str:
        return self._device.uuid

    def flags(self) -> tuple[str, ...]:
        wgmma = ("-DRIDGELINE_WGMMA",) if has_wgmma(self._device.arch) else ()
        return ("-std=c++17", "-O3", *wgmma, *architecture_flags(self._device))

    def totals(self) -> tuple[int, ...]:
        """Return the working sets, up to 32 times the cache.

        A GPU's L2 keeps part of a set twice its size, so its memory is measured at 8 and 32 times as well: problems
        whose sets are that large are held against the slower rate.
        """
        totals = _totals_up_to_rotation(self._device)
        beyond = (8 * self._device.cache_bytes, 32 * self._device.cache_bytes)
        return (*totals, *(t for t in beyond if totals[-1] < t <= self._device.memory_bytes // 8))

    def environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}  # where libcuda may lie
        return {**kept, "CUDA_VISIBLE_DEVICES": self._device.uuid}


_PROBES: dict[DeviceKind, type[CpuProbe | CudaProbe]] = {DeviceKind.CPU: CpuProbe, DeviceKind.CUDA: CudaProbe}


def probe_of(device: Device) -> CeilingsProbe:
    """Return the probe of a device."""
    return _PROBES[device.kind](device)


def run_probe(device: Device) -> dict[str, Any]:
    """Return what the probe printed, measured now over the working sets that suit the device.

    Raises:
        DeviceError: no compiler here, or a driver older than it.
        EngineError: the probe fails or hangs.
    """
    probe = probe_of(device)
    logger.info("measuring the memory and arithmetic ceilings of %s, once (%s s)", device.name, probe.usual_s)
    program = _built(probe, device)
    command = [str(program), str(SECONDS_PER_TOTAL), *(str(t) for t in probe.totals())]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=PROBE_TIMEOUT_S, check=False, env=probe.environment()
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise EngineError(f"the ceilings probe could not be run: {error}") from error
    if done.returncode != 0:
        said = done.stderr.strip()[:200]
        raise EngineError(f"{device.name}: the ceilings probe failed with status {done.returncode}: {said}")
    facts: dict[str, Any] = json.loads(done.stdout)
    return facts


def _built(probe: CeilingsProbe, device: Device) -> Path:
    """Return the compiled probe, from the cache where it was built for this compiler and architecture."""
    compiler = toolchain_for(device)
    flags = probe.flags()
    text = "\0".join((*(source.read_text() for source in probe.sources), compiler.version, device.arch, *flags))
    path = default_cache_dir() / "native" / f"ceilings-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    if not is_whole_program(path):
        command = [str(compiler.compiler), *flags, str(probe.sources[0])]
        build_trusted(path, command, what=probe.name, timeout_s=PROBE_TIMEOUT_S)
    return path


def _totals_up_to_rotation(device: Device) -> tuple[int, ...]:
    """Return the small working sets and, last, the one that a problem's sets rotate through."""
    rotating = rotating_limit(kind=device.kind, cache_bytes=device.cache_bytes, memory_bytes=device.memory_bytes)
    return (*(t for t in SMALL_TOTALS if t < rotating), rotating)
