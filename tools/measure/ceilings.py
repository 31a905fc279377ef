"""The hardware's ceilings, measured once for each device and kept: rates of memory by working set, and of arithmetic."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import reduce
from pathlib import Path

from ridgeline.tools.machine.kept_records import read_kept
from ridgeline.tools.machine.logs import logger_of
from ridgeline.tools.machine.places import default_cache_dir, home_dir, is_older, replace_json
from ridgeline.tools.measure.ceilings_probe import probe_of, run_probe
from ridgeline.tools.records.codec import Record
from ridgeline.tools.records.problem import Device
from ridgeline.tools.records.vocabulary import PrecisionClass

logger = logger_of(__name__)

CEILINGS_VERSION = 3
"""Part of the cached file: raise it when the probe measures differently; files of another version are measured anew."""
_RATES = ("read", "read_streaming", "write", "write_streaming", "copy", "copy_streaming")


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
    """The fastest rates at which one device was seen to work."""

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

    @property
    def is_sound(self) -> bool:
        """Say whether there is a rate for every size, and every rate is one."""
        rates = [self.fma_gflops, *self.class_gflops.values(), *(b.fastest for b in self.bandwidth)]
        each = [getattr(b, name) for b in self.bandwidth for name in _RATES]
        return bool(self.bandwidth) and all(0 < r < math.inf for r in rates) and all(0 <= r < math.inf for r in each)

    def fastest_unit(self, classes: Sequence[PrecisionClass]) -> tuple[str, float]:
        """Return the class and the rate (1e9 operations a second) of the fastest unit among these classes' ones."""
        measured = {c.value: self.class_gflops[c.value] for c in classes if c.value in self.class_gflops}
        rates = {"fp32": self.fma_gflops} | measured
        name = max(rates, key=lambda unit: rates[unit])
        return name, rates[name]


def ceilings(device: Device, *, again: bool = False) -> Ceilings:
    """Return the device's ceilings: from $RIDGELINE_HOME, else measured now (2 to 5 s) and kept there.

    Where that folder cannot be written the ceilings are kept in the cache folder, with a warning. `again` measures
    once more and keeps the faster figure of each, for a machine that was busy the first time. So does the age of a
    CPU's file: see `CeilingsProbe.kept_s`.

    Raises:
        DeviceError: no compiler, or a kind of device whose ceilings cannot be measured.
    """
    probe = probe_of(device)
    name = f"ceilings-{probe.file_key}.json"
    paths = [folder / name for folder in (home_dir(), default_cache_dir())]
    sizes = len(probe.totals())
    read = (_read(path, device) for path in paths)
    known = [found for found in read if found is not None and len(found.bandwidth) == sizes]
    is_due = all(is_older(path, probe.kept_s) for path in paths)
    if known and not again and not is_due:
        return reduce(_fastest_of, known)
    measured = reduce(_fastest_of, [*known, measure_ceilings(device)])
    _publish(paths, measured)
    return measured


def measure_ceilings(device: Device) -> Ceilings:
    """Return what the probe measures now.

    Raises:
        DeviceError: no compiler here, or a driver older than it.
        EngineError: the probe fails or hangs.
    """
    facts = run_probe(device)
    rates = {str(name): float(rate) for name, rate in facts.get("class_gflops", {}).items()}
    return Ceilings(
        device=device,
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        threads=facts["threads"],
        fma_gflops=rates["fp32"] if rates else facts["fma_gflops"],
        class_gflops=rates or {"fp32": facts["fma_gflops"]},
        bandwidth=tuple(sorted((Bandwidth.from_json(b) for b in facts["bandwidth"]), key=lambda b: b.bytes)),
    )


def _read(path: Path, device: Device) -> Ceilings | None:
    """Return what is kept for this very device, or None: absent, damaged, of another version or core count."""
    known = read_kept(path, Ceilings)
    if known is None or known.version != CEILINGS_VERSION or known.device != device:
        return None
    return known if known.is_sound else None


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
