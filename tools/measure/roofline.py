"""The hardware's ceilings, measured once for each device, and the floor they put under a problem's time.

The floor counts each input read once and each output written once, at the fastest rate at which this device was seen
to move that much memory in any way: reading, writing or copying, with streaming stores or without. An honest kernel
cannot be faster, whatever it does; a plain copy's rate would have put an honest streaming kernel below it.

Beside it stands an advisory floor of arithmetic: the FLOPs by formula on the fastest unit whose precision the problem
accepts. An algorithm may need fewer operations, so nothing is refused for being below it.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import reduce
from pathlib import Path
from typing import Any

from ridgeline.tools.build.flags import architecture_flags
from ridgeline.tools.build.toolchain import build_trusted, toolchain_for
from ridgeline.tools.errors import EngineError
from ridgeline.tools.judge.set_count import rotating_bytes, rotating_limit
from ridgeline.tools.machine.architecture import has_wgmma
from ridgeline.tools.machine.devices import measurement_cores
from ridgeline.tools.machine.places import default_cache_dir, home_dir, is_older, replace_json
from ridgeline.tools.records.codec import Record
from ridgeline.tools.records.dtypes import element_bytes
from ridgeline.tools.records.precision import accepted_classes, strictness
from ridgeline.tools.records.problem import ArgSpec, Description, Device, Signature
from ridgeline.tools.records.results import Floor
from ridgeline.tools.records.vocabulary import STRICTEST_FIRST, ArgKind, DeviceKind, PrecisionClass, Role

logger = logging.getLogger(__name__)

CEILINGS_VERSION = 2
"""Part of the cached file: raise it when the probe measures differently; files of another version are measured anew."""
NATIVE = Path(__file__).parent / "native"
PROBE_SOURCES: Mapping[DeviceKind, tuple[Path, ...]] = {
    DeviceKind.CPU: (NATIVE / "ceilings.cpp",),
    DeviceKind.CUDA: (NATIVE / "ceilings.cu", NATIVE / "ceilings_mma.h"),
}
"""Each device's probe: the file to compile, then what it includes."""
CPU_PROBE_FLAGS = ("-O3", "-march=native", "-mprefer-vector-width=512", "-fopenmp")
CUDA_PROBE_FLAGS = ("-std=c++17", "-O3")
SMALL_TOTALS = (2 << 20, 16 << 20, 64 << 20, 256 << 20)
SECONDS_PER_TOTAL = 0.4
CPU_CEILINGS_KEPT_S = 3600.0
PROBE_TIMEOUT_S = 120.0
_RATES = ("read", "read_streaming", "write", "write_streaming", "copy", "copy_streaming")
_FLOATING = {"float64", "float32", "float16", "bfloat16"}
_STORED_AS = {PrecisionClass.FP16: "float16", PrecisionClass.BF16: "bfloat16"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bandwidth(Record):
    """Rates at one working-set size in 1e9 bytes a second, bytes read plus bytes written."""

    bytes: int
    read: float
    write: float
    write_streaming: float
    copy: float
    copy_streaming: float
    read_streaming: float = 0.0  # GPUs only: loads marked evict-first

    @property
    def fastest(self) -> float:
        """Return the ceiling at this size."""
        return max(self.read, self.read_streaming, self.write, self.write_streaming, self.copy, self.copy_streaming)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceilings(Record):
    """What one device can do at most."""

    version: int = CEILINGS_VERSION
    device: Device
    date: str
    threads: int  # of a CPU; a GPU's multiprocessors
    fma_gflops: float  # fp32, multiply and add counted separately
    bandwidth: tuple[Bandwidth, ...]  # by size, smallest first
    class_gflops: dict[str, float] = field(default_factory=dict)  # by precision class: the unit that computes in it

    def fastest_at(self, total_bytes: int) -> float:
        """Return the ceiling for a working set: that of the largest measured size within it, so never too low."""
        within = [b for b in self.bandwidth if b.bytes <= total_bytes] or [self.bandwidth[0]]
        return within[-1].fastest

    @property
    def fastest_anywhere(self) -> float:
        """Return the fastest rate at any size: that of data which stays in a cache."""
        return max(b.fastest for b in self.bandwidth)

    def fastest_unit(self, classes: Sequence[PrecisionClass]) -> tuple[str, float]:
        """Return the class and the rate (1e9 operations a second) of the fastest unit among these classes' ones."""
        measured = {c.value: self.class_gflops[c.value] for c in classes if c.value in self.class_gflops}
        rates = {"fp32": self.fma_gflops} | measured
        name = max(rates, key=lambda unit: rates[unit])
        return name, rates[name]


def ceilings(device: Device, *, again: bool = False) -> Ceilings:
    """Return the device's ceilings: from $RIDGELINE_HOME, else measured now (2 to 5 s) and kept there.

    Where that folder cannot be written they are kept in the cache folder, with a warning.
    `again` measures once more and keeps the faster figure of each, for a machine that was busy the first time; a CPU is
    measured so once an hour.

    Raises:
        DeviceError: no compiler, or a kind of device whose ceilings cannot be measured.
    """
    paths = [folder / f"ceilings-{_slug(device)}.json" for folder in (home_dir(), default_cache_dir())]
    known = [found for found in (_read(path, device) for path in paths) if found is not None]
    # a CPU is seldom alone: what others took of it the first time is found the next
    is_due = device.kind is DeviceKind.CPU and all(is_older(path, CPU_CEILINGS_KEPT_S) for path in paths)
    if known and not again and not is_due:
        return reduce(_fastest_of, known)
    measured = reduce(_fastest_of, [*known, measure_ceilings(device)])
    _publish(paths, measured)
    return measured


def measure_ceilings(device: Device, totals: tuple[int, ...] | None = None) -> Ceilings:
    """Run the probe: on a CPU on the cores that measurements use, on a GPU with no other visible.

    Raises:
        DeviceError: no compiler here, or a driver older than it.
        EngineError: the probe fails or hangs.
    """
    totals = totals or _totals(device)
    seconds = "2 to 5" if device.kind is DeviceKind.CPU else "5 to 15"
    logger.info("measuring the memory and arithmetic ceilings of %s, once (%s s)", device.name, seconds)
    facts = _run_probe(device, [str(_probe(device)), str(SECONDS_PER_TOTAL), *(str(t) for t in totals)])
    rates = {str(name): float(rate) for name, rate in facts.get("class_gflops", {}).items()}
    return Ceilings(
        device=device,
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        threads=facts["threads"],
        fma_gflops=rates["fp32"] if rates else facts["fma_gflops"],
        class_gflops=rates or {"fp32": facts["fma_gflops"]},
        bandwidth=tuple(sorted((Bandwidth.from_json(b) for b in facts["bandwidth"]), key=lambda b: b.bytes)),
    )


def _totals(device: Device) -> tuple[int, ...]:
    """Return the working sets to measure.

    A GPU's L2 keeps part of a set twice its size, so its memory is measured at 8 and 32 times as well: problems whose
    sets are that large are held against the slower rate.
    """
    rotating = rotating_limit(kind=device.kind, cache_bytes=device.cache_bytes, memory_bytes=device.memory_bytes)
    small = tuple(t for t in SMALL_TOTALS if t < rotating)
    if device.kind is DeviceKind.CPU:
        return (*small, rotating)
    beyond = (8 * device.cache_bytes, 32 * device.cache_bytes)
    return (*small, rotating, *(t for t in beyond if rotating < t <= device.memory_bytes // 8))


def _run_probe(device: Device, command: list[str]) -> dict[str, Any]:
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=PROBE_TIMEOUT_S,
            check=False,
            env=_probe_environment(device),
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise EngineError(f"the ceilings probe could not be run: {error}") from error
    if done.returncode != 0:
        said = done.stderr.strip()[:200]
        raise EngineError(f"{device.name}: the ceilings probe failed with status {done.returncode}: {said}")
    facts: dict[str, Any] = json.loads(done.stdout)
    return facts


def _probe_environment(device: Device) -> dict[str, str]:
    if device.kind is DeviceKind.CUDA:
        kept = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}  # where libcuda may lie
        return {**kept, "CUDA_VISIBLE_DEVICES": device.uuid}
    cores = measurement_cores()
    return {"OMP_NUM_THREADS": str(len(cores)), "OMP_PLACES": ",".join(f"{{{core}}}" for core in cores)}


def floor_for(description: Description, limits: Ceilings, tolerance: str = "fp32") -> Floor:
    """Return the least time the problem can take on this device, when results of class `tolerance` are accepted.

    Inputs and outputs rotate through more memory than the caches hold, so they move at main memory's rate. Parameters
    are the same in every call and may stay in a cache, so they count at the fastest rate of any size.

    Raises:
        ProblemError: the tolerance is not a class.
    """
    signature = description.signature
    resident = sum(stored_bytes(a) for a in signature.with_role(Role.PARAMETER, Role.BUFFER))
    moving = max(description.compulsory_bytes - resident, 0)
    device = limits.device
    moved = rotating_bytes(moving, kind=device.kind, cache_bytes=device.cache_bytes, memory_bytes=device.memory_bytes)
    rate = limits.fastest_at(moved)
    memory_ms = (moving / rate + resident / limits.fastest_anywhere) / 1e6
    unit, gflops = limits.fastest_unit(legal_classes(signature, tolerance))
    compute_ms = description.flops / gflops / 1e6
    return Floor(
        floor_ms=memory_ms,
        compute_floor_ms=compute_ms,
        bound="memory" if memory_ms >= compute_ms else "compute",
        bandwidth_gbps=rate,
        gflops=gflops,
        unit=unit,
        class_gflops=dict(limits.class_gflops),
    )


def legal_classes(signature: Signature, tolerance: str) -> tuple[PrecisionClass, ...]:
    """Return the classes whose units a correct kernel may compute on.

    Those as strict as the loosest class accepted, and those in which all floating operands are stored: products of
    fp16 numbers are exact on a tensor core that adds in fp32, whatever the problem's tolerance.

    Raises:
        ProblemError: the tolerance is not a class.
    """
    outputs = tuple(a.dtype for a in signature.with_role(Role.OUTPUT) if a.kind is ArgKind.TENSOR)
    loosest = strictness(accepted_classes(tolerance, outputs)[-1])
    operands = {a.dtype for a in signature.args if a.role is not Role.OUTPUT and a.kind is ArgKind.TENSOR}
    floating = operands & _FLOATING
    return tuple(c for c in STRICTEST_FIRST if strictness(c) <= loosest or floating == {_STORED_AS.get(c)})


def stored_bytes(arg: ArgSpec) -> int:
    """Return how much memory a tensor argument names; a dimension of stride 0 is stored once, a scalar nowhere."""
    if arg.kind is not ArgKind.TENSOR:
        return 0
    strides = arg.strides or (1,) * len(arg.shape)
    stored = [n for n, stride in zip(arg.shape, strides, strict=True) if stride != 0 or n == 0]
    return math.prod(stored) * element_bytes(arg.dtype)


# ------------------------------------------------------------------------------------------------------ the probe


def _probe(device: Device) -> Path:
    """Return the compiled probe, from the cache where it has been built for this compiler and architecture."""
    compiler = toolchain_for(device)
    sources, flags = PROBE_SOURCES[device.kind], _probe_flags(device)
    text = "\0".join((*(source.read_text() for source in sources), compiler.version, device.arch, *flags))
    path = default_cache_dir() / "native" / f"ceilings-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    if not path.exists():
        build_trusted(
            path,
            [str(compiler.compiler), *flags, str(sources[0])],
            what="the ceilings probe" + (" (OpenMP is needed)" if device.kind is DeviceKind.CPU else ""),
            timeout_s=PROBE_TIMEOUT_S,
        )
    return path


def _probe_flags(device: Device) -> tuple[str, ...]:
    if device.kind is DeviceKind.CPU:
        return CPU_PROBE_FLAGS
    wgmma = ("-DRIDGELINE_WGMMA",) if has_wgmma(device.arch) else ()
    return (*CUDA_PROBE_FLAGS, *wgmma, *architecture_flags(device))


def _slug(device: Device) -> str:
    return device.arch if device.kind is DeviceKind.CPU else f"{device.uuid}"


def _read(path: Path, device: Device) -> Ceilings | None:
    """Return what is kept for this very device, or None: absent, damaged, of another version or core count."""
    try:
        known = Ceilings.from_json(json.loads(path.read_text()))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    is_same = known.version == CEILINGS_VERSION and known.device == device and known.bandwidth
    return known if is_same else None


def _publish(paths: Sequence[Path], measured: Ceilings) -> None:
    """Keep the ceilings at the first of `paths` that can be written; without any, the next call measures again."""
    for path in paths:
        try:
            replace_json(path, measured.to_json())
        except OSError as error:
            logger.warning("the ceilings are not kept in %s: %s", path.parent, error.strerror or error)
        else:
            return


def _fastest_of(first: Ceilings, second: Ceilings) -> Ceilings:
    """Return the faster figure of each: a disturbance only ever makes a ceiling look lower."""
    pairs = zip(first.bandwidth, second.bandwidth, strict=True)
    units = {*first.class_gflops, *second.class_gflops}
    return replace(
        second,
        fma_gflops=max(first.fma_gflops, second.fma_gflops),
        class_gflops={u: max(first.class_gflops.get(u, 0.0), second.class_gflops.get(u, 0.0)) for u in sorted(units)},
        bandwidth=tuple(
            replace(b, **{name: max(getattr(a, name), getattr(b, name)) for name in _RATES}) for a, b in pairs
        ),
    )
