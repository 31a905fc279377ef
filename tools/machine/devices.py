"""This machine's devices by name: its CPU, read from /proc and /sys, its GPUs, and the cores that a measurement may use.

Needs neither torch nor any external program.
"""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path

from ridgeline.tools.errors import DeviceError
from ridgeline.tools.machine.gpus import all_gpus, detect_gpu
from ridgeline.tools.machine.logs import logger_of
from ridgeline.tools.machine.system_files import text_of
from ridgeline.tools.records.problem import Device
from ridgeline.tools.records.vocabulary import DeviceKind
from ridgeline.tools.wording import option

logger = logger_of(__name__)

UNLIMITED = 1 << 60
"""cgroup v1 writes 2**63 rounded to a page where version 2 writes "max"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuCache:
    """One cache of data, and the cores that share it."""

    level: int
    size_bytes: int
    cores: frozenset[int]


X86_64 = ("x86_64", "amd64", "AMD64")


def detect_device(spec: str = "cpu") -> Device:
    """Return the device named "cpu", "cuda" or "cuda:1".

    Raises:
        DeviceError: there is no such device here.
    """
    match = re.fullmatch(r"(cpu|cuda)(?::(\d+))?", spec)
    is_cpu = match is not None and DeviceKind(match[1]) is DeviceKind.CPU
    if match is None or (is_cpu and match[2] not in (None, "0")):
        raise DeviceError(f"device {spec!r}: unknown; {_advice(spec)}")
    return _cpu() if is_cpu else detect_gpu(int(match[2] or 0))


def same_gpus(device: Device) -> tuple[Device, ...]:
    """Return the GPUs of this machine like `device`, that one first: equal in name, architecture, memory and cores."""
    if device.kind is not DeviceKind.CUDA:
        return (device,)
    alike = (device.name, device.arch, device.memory_bytes, device.cores)
    others = [g for g in all_gpus() if g.uuid != device.uuid and (g.name, g.arch, g.memory_bytes, g.cores) == alike]
    return (device, *others)


def _advice(spec: str) -> str:
    if re.search(r"\.(cpp|cu|cc|yaml|yml)$", spec):
        named = option("device")
        return f"that is a file: {named} takes cpu, cuda or cuda:N, and {spec} stands without {named}"
    return "use cpu, cuda or cuda:N; ridgeline doctor says what is here"


def measurement_cores() -> tuple[int, ...]:
    """Return the CPU cores that both sides of a measurement are pinned to: the affinity mask cut to the CPU quota."""
    allowed = sorted(os.sched_getaffinity(0))
    quota = _cpu_quota()
    count = len(allowed) if quota is None else max(1, min(len(allowed), int(quota)))
    return tuple(allowed[:count])


# -------------------------------------------------------------------------------------------------------------- CPU


def _cpu() -> Device:
    machine = os.uname().machine
    if machine not in X86_64:  # the compiler's flags, the ceilings probe and the sandbox's filter are written for it
        raise DeviceError(f"device cpu: this processor is {machine}; kernels are built and measured on x86-64 only")
    facts = cpu_description()
    name = facts.get("model name") or facts.get("Processor") or os.uname().machine
    model = "-".join(facts[k] for k in ("cpu family", "model", "stepping") if k in facts)
    digest = hashlib.sha256(" ".join(sorted(cpu_flags())).encode()).hexdigest()[:12]
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    return Device(
        kind=DeviceKind.CPU,
        name=name,
        arch=f"{os.uname().machine}-{slug}-{model}-{digest}" if model else f"{os.uname().machine}-{slug}-{digest}",
        uuid="cpu",
        cores=len(measurement_cores()),
        memory_bytes=_memory_bytes(),
        cache_bytes=_last_level_cache_bytes(Path("/sys/devices/system/cpu")),
    )


def cpu_description() -> dict[str, str]:
    """Return what /proc/cpuinfo says of the first processor, by its own names."""
    return _cpuinfo(Path("/proc/cpuinfo").read_text())


def cpu_flags() -> tuple[str, ...]:
    """Return the first processor's features by their names in /proc/cpuinfo."""
    facts = cpu_description()
    return tuple((facts.get("flags") or facts.get("Features") or "").split())


def _cpuinfo(text: str) -> dict[str, str]:
    """Return the first processor's facts of /proc/cpuinfo."""
    first = text.split("\n\n", 1)[0]
    pairs = (line.split(":", 1) for line in first.splitlines() if ":" in line)
    return {key.strip(): value.strip() for key, value in pairs}


def _last_level_cache_bytes(root: Path) -> int:
    """Return the size of the highest-level data cache, summed over its distinct instances among our cores."""
    instances = {cache for core in measurement_cores() for cache in cache_instances(root, core)}
    if not instances:
        return 32 << 20  # a container may hide /sys; 32 MiB only decides how many sets rotate
    top = max(cache.level for cache in instances)
    return sum(cache.size_bytes for cache in instances if cache.level == top)


def cache_instances(root: Path, core: int) -> tuple[CpuCache, ...]:
    """Return the caches that hold a core's data, as /sys describes them; none in a container that hides it."""
    found = []
    for index in (root / f"cpu{core}" / "cache").glob("index*"):
        level, kind, size, shared = (_line(index / n) for n in ("level", "type", "size", "shared_cpu_list"))
        if level and size and kind != "Instruction":
            cores = _cores(shared) or frozenset({core})
            found.append(CpuCache(level=int(level), size_bytes=_parse_size(size), cores=cores))
    return tuple(found)


def _cores(listed: str) -> frozenset[int]:
    """Return the cores of a list such as "0-3,8"."""
    ranges = (part.partition("-") for part in listed.split(",") if part)
    return frozenset(core for first, _, last in ranges for core in range(int(first), int(last or first) + 1))


def _parse_size(text: str) -> int:
    units = {"K": 10, "M": 20, "G": 30}
    return int(text[:-1]) << units[text[-1]] if text[-1] in units else int(text)


def _memory_bytes() -> int:
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limits = [_cgroup_limit(path) for path in _cgroup_files("memory", "memory.max", "memory.limit_in_bytes")]
    return min([total, *(limit for limit in limits if limit is not None)])


def _cgroup_limit(path: Path) -> int | None:
    text = _line(path)
    return int(text) if text.isdigit() and int(text) < UNLIMITED else None


def _cpu_quota() -> float | None:
    """Return how many cores' worth of time the control groups allow, or None."""
    quotas = []
    for path in _cgroup_files("cpu", "cpu.max", "cpu.cfs_quota_us"):
        quota, _, period = _line(path).partition(" ")
        period = period or _line(path.with_name("cpu.cfs_period_us"))
        if quota.isdigit() and period.isdigit():
            quotas.append(int(quota) / int(period))
    return min(quotas, default=None)


def _cgroup_files(controller: str, name_v2: str, name_v1: str) -> list[Path]:
    """Return this process's limit files from its group up to the root, for both versions of control groups."""
    found: list[Path] = []
    root = Path("/sys/fs/cgroup")
    for line in text_of(Path("/proc/self/cgroup")).splitlines():
        number, controllers, group = line.split(":", 2)
        is_v2 = number == "0" and not controllers
        if is_v2 or controller in controllers.split(","):
            base = root if is_v2 else root / controllers
            folder = base / group.lstrip("/")
            name = name_v2 if is_v2 else name_v1
            levels = [folder, *(p for p in folder.parents if p.is_relative_to(base))]
            found += [p / name for p in levels if (p / name).exists()]
    return found


def _line(path: Path) -> str:
    return text_of(path).strip()
