"""The hardware's ceilings, measured once for each device, and the floor they put under a problem's time.

The floor counts each input read once and each output written once, at the fastest rate at which this device was seen
to move that much memory in any way: reading, writing or copying, with streaming stores or without. An honest kernel
cannot be faster, whatever it does; a plain copy's rate would have put an honest streaming kernel below it.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import reduce
from pathlib import Path

from ridgeline.tools.atomic_file import replace_json
from ridgeline.tools.cache import default_cache_dir
from ridgeline.tools.dtypes import element_bytes
from ridgeline.tools.errors import DeviceError, EngineError
from ridgeline.tools.hardware import measurement_cores
from ridgeline.tools.records import ArgKind, ArgSpec, Description, Device, DeviceKind, Floor, Record, Role
from ridgeline.tools.rotation import rotating_bytes, rotating_limit
from ridgeline.tools.toolchain import build_trusted, find_toolchain

logger = logging.getLogger(__name__)

CEILINGS_VERSION = 1
"""Part of the cached file: raise it when the probe measures differently."""
PROBE_SOURCE = Path(__file__).parent / "native" / "ceilings.cpp"
PROBE_FLAGS = ("-O3", "-march=native", "-mprefer-vector-width=512", "-fopenmp")
SMALL_TOTALS = (2 << 20, 16 << 20, 64 << 20, 256 << 20)
SECONDS_PER_TOTAL = 0.4
PROBE_TIMEOUT_S = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Bandwidth(Record):
    """Rates at one working-set size in 1e9 bytes a second, bytes read plus bytes written."""

    bytes: int
    read: float
    write: float
    write_streaming: float
    copy: float
    copy_streaming: float

    @property
    def fastest(self) -> float:
        """Return the ceiling at this size."""
        return max(self.read, self.write, self.write_streaming, self.copy, self.copy_streaming)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceilings(Record):
    """What one device can do at most."""

    version: int = CEILINGS_VERSION
    device: Device
    date: str
    threads: int
    fma_gflops: float  # fp32, multiply and add counted separately
    bandwidth: tuple[Bandwidth, ...]  # by size, smallest first

    def fastest_at(self, total_bytes: int) -> float:
        """Return the ceiling for a working set: that of the largest measured size within it, so never too low."""
        within = [b for b in self.bandwidth if b.bytes <= total_bytes] or [self.bandwidth[0]]
        return within[-1].fastest

    @property
    def fastest_anywhere(self) -> float:
        """Return the fastest rate at any size: that of data which stays in a cache."""
        return max(b.fastest for b in self.bandwidth)


def ceilings(device: Device, *, again: bool = False) -> Ceilings:
    """Return the device's ceilings: from $RIDGELINE_HOME, else measured now (2 to 5 s) and kept there.

    Where that folder cannot be written they are kept in the cache folder, with a warning.
    `again` measures once more and keeps the faster figure of each, for a machine that was busy the first time.

    Raises:
        DeviceError: no compiler, or a kind of device whose ceilings cannot be measured.
    """
    paths = [folder / f"ceilings-{_slug(device)}.json" for folder in (home_dir(), default_cache_dir())]
    known = [found for found in (_read(path, device) for path in paths) if found is not None]
    if known and not again:
        return reduce(_fastest_of, known)
    measured = reduce(_fastest_of, [*known, measure_ceilings(device)])
    _publish(paths, measured)
    return measured


def home_dir() -> Path:
    """Return the folder of what outlives runs: $RIDGELINE_HOME, else $XDG_DATA_HOME/ridgeline."""
    chosen = os.environ.get("RIDGELINE_HOME")
    if chosen:
        return Path(chosen).absolute()
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "ridgeline"


def measure_ceilings(device: Device, totals: tuple[int, ...] | None = None) -> Ceilings:
    """Run the probe on the cores that measurements use.

    Raises:
        DeviceError: no compiler here, or the device is not a CPU.
    """
    if device.kind is not DeviceKind.CPU:
        raise DeviceError(f"{device.name}: ceilings are measured on CPUs only so far; use --device cpu")
    rotating = rotating_limit(cache_bytes=device.cache_bytes, memory_bytes=device.memory_bytes)
    totals = totals or (*(t for t in SMALL_TOTALS if t < rotating), rotating)
    cores = measurement_cores()
    logger.info("measuring the memory and arithmetic ceilings of %s, once (2 to 5 s)", device.name)
    command = [str(_probe(device)), str(SECONDS_PER_TOTAL), *(str(t) for t in totals)]
    environment = {"OMP_NUM_THREADS": str(len(cores)), "OMP_PLACES": ",".join(f"{{{core}}}" for core in cores)}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=PROBE_TIMEOUT_S, check=False, env=environment
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise EngineError(f"the ceilings probe could not be run: {error}") from error
    if done.returncode != 0:
        raise EngineError(f"the ceilings probe failed with status {done.returncode}: {done.stderr.strip()[:200]}")
    facts = json.loads(done.stdout)
    return Ceilings(
        device=device,
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        threads=facts["threads"],
        fma_gflops=facts["fma_gflops"],
        bandwidth=tuple(sorted((Bandwidth.from_json(b) for b in facts["bandwidth"]), key=lambda b: b.bytes)),
    )


def floor_for(description: Description, limits: Ceilings) -> Floor:
    """Return the least time the problem can take on this device.

    Inputs and outputs rotate through more memory than the caches hold, so they move at main memory's rate. Parameters
    are the same in every call and may stay in a cache, so they count at the fastest rate of any size.
    """
    signature = description.signature
    resident = sum(stored_bytes(a) for a in signature.with_role(Role.PARAMETER, Role.BUFFER))
    moving = max(description.compulsory_bytes - resident, 0)
    device = limits.device
    moved = rotating_bytes(moving, cache_bytes=device.cache_bytes, memory_bytes=device.memory_bytes)
    rate = limits.fastest_at(moved)
    memory_ms = (moving / rate + resident / limits.fastest_anywhere) / 1e6
    compute_ms = description.flops / limits.fma_gflops / 1e6
    return Floor(
        floor_ms=memory_ms,
        compute_floor_ms=compute_ms,
        bound="memory" if memory_ms >= compute_ms else "compute",
        bandwidth_gbps=rate,
        gflops=limits.fma_gflops,
    )


def stored_bytes(arg: ArgSpec) -> int:
    """Return how much memory a tensor argument names; a dimension of stride 0 is stored once, a scalar nowhere."""
    if arg.kind is not ArgKind.TENSOR:
        return 0
    strides = arg.strides or (1,) * len(arg.shape)
    stored = [n for n, stride in zip(arg.shape, strides, strict=True) if stride != 0 or n == 0]
    return math.prod(stored) * element_bytes(arg.dtype)


# ------------------------------------------------------------------------------------------------------ the probe


def _probe(device: Device) -> Path:
    """Return the compiled probe, from the cache where it has been built for this compiler and processor."""
    compiler = find_toolchain(DeviceKind.CPU)
    text = "\0".join((PROBE_SOURCE.read_text(), compiler.version, device.arch, *PROBE_FLAGS))
    path = default_cache_dir() / "native" / f"ceilings-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    if not path.exists():
        build_trusted(
            path,
            [str(compiler.compiler), *PROBE_FLAGS, str(PROBE_SOURCE)],
            what="the ceilings probe (OpenMP is needed)",
            timeout_s=PROBE_TIMEOUT_S,
        )
    return path


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
    rates = ("read", "write", "write_streaming", "copy", "copy_streaming")
    return replace(
        second,
        fma_gflops=max(first.fma_gflops, second.fma_gflops),
        bandwidth=tuple(
            replace(b, **{name: max(getattr(a, name), getattr(b, name)) for name in rates}) for a, b in pairs
        ),
    )
