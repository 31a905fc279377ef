"""A device's table: what a kernel's author has to know of it and its record (`Device`) does not say.

From the processor's own description, the architecture's tables and, where they are given, measured ceilings. What is
not known is left out; nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from ridgeline.tools.machine.architecture import has_async_copies, has_clusters, has_reduced_products, has_wgmma
from ridgeline.tools.machine.devices import cache_instances, cpu_description, cpu_flags, measurement_cores
from ridgeline.tools.machine.microarchitecture import microarchitecture
from ridgeline.tools.machine.occupancy import (
    LARGEST_BLOCK,
    REGISTERS,
    REGISTERS_A_THREAD,
    block_shared_bytes,
    multiprocessor,
)
from ridgeline.tools.machine.vectors import VECTOR_REGISTERS, vector_registers
from ridgeline.tools.records.baselines import Floor
from ridgeline.tools.records.problem import Device, DeviceFact
from ridgeline.tools.records.vocabulary import DeviceKind
from ridgeline.tools.wording import counted

_INSTRUCTION_SETS: dict[str, dict[str, str]] = {
    "AVX-512": {
        "avx512f": "F",
        "avx512cd": "CD",
        "avx512bw": "BW",
        "avx512dq": "DQ",
        "avx512vl": "VL",
        "avx512_vnni": "VNNI",
        "avx512vbmi": "VBMI",
        "avx512_vbmi2": "VBMI2",
        "avx512_bf16": "BF16",
        "avx512_fp16": "FP16",
    },
    "AMX": {"amx_tile": "tile", "amx_int8": "int8", "amx_bf16": "bf16", "amx_fp16": "fp16"},
}
"""By name: /proc/cpuinfo's flags of its parts, and what Intel's manual calls them."""
_WIDEST = {"avx2": "AVX2", "avx": "AVX", "sse4_2": "SSE4.2"}
"""Each holds those after it."""
_SINGLE = {"avx_vnni": "AVX-VNNI", "fma": "FMA", "f16c": "F16C"}
_CPUS = Path("/sys/devices/system/cpu")


def device_facts(device: Device, *, floor: Floor | None = None, compiler: str = "") -> tuple[DeviceFact, ...]:
    """Return the table, each fact once and with its unit.

    `floor` adds the measured peaks and the bandwidth at the problem's size, `compiler` is its own line of its version.
    """
    found = [*_OF_KIND[device.kind](device), *_measured(floor)]
    if compiler:
        found.append(("compiler", compiler))
    return tuple(DeviceFact(name=name, value=value) for name, value in found)


def _of_cpu(device: Device) -> Iterator[tuple[str, str]]:
    facts = cpu_description()
    flags = set(cpu_flags())
    if name := microarchitecture(facts):
        yield "microarchitecture", name
    threads, cores = (facts.get(name, "") for name in ("siblings", "cpu cores"))
    if threads.isdigit() and cores.isdigit() and int(cores):
        yield "hardware threads", f"{int(threads) // int(cores)} a core"
    if sets := instruction_sets(flags):
        yield "instruction set", sets
    if registers := vector_registers(flags):
        yield VECTOR_REGISTERS, registers
    yield from _caches()


def instruction_sets(flags: set[str]) -> str:
    """Return "AVX-512 (F, BW, VL), AVX2, FMA" of a processor's flags."""
    grouped = {
        name: ", ".join(word for flag, word in parts.items() if flag in flags)
        for name, parts in _INSTRUCTION_SETS.items()
    }
    families = [f"{name} ({parts})" for name, parts in grouped.items() if parts]
    widest = [name for flag, name in _WIDEST.items() if flag in flags][:1]
    return ", ".join([*families, *widest, *(name for flag, name in _SINGLE.items() if flag in flags)])


def _caches() -> Iterator[tuple[str, str]]:
    """Return each level's data cache as the first of our cores sees it."""
    ours = set(measurement_cores())
    first = min(ours)
    for cache in sorted(cache_instances(_CPUS, first), key=lambda cache: cache.level):
        sharing = len(ours & cache.cores)
        whose = f"for {counted(sharing, 'core')} together" if sharing > 1 else "a core"
        yield f"L{cache.level} {'data cache' if cache.level == 1 else 'cache'}", f"{_size(cache.size_bytes)} {whose}"


def _of_gpu(device: Device) -> Iterator[tuple[str, str]]:
    if limits := multiprocessor(device.arch):
        yield (
            "shared memory",
            f"at most {_size(block_shared_bytes(device.arch))} a block, {_size(limits.shared_bytes)} a multiprocessor",
        )
        yield "registers", f"{REGISTERS:,} a multiprocessor, at most {REGISTERS_A_THREAD} a thread"
        yield (
            "resident",
            f"at most {limits.warps} warps and {limits.blocks} blocks a multiprocessor, {LARGEST_BLOCK} threads a block",
        )
    yield "L2 cache", _size(device.cache_bytes)
    has = {
        "wgmma": has_wgmma(device.arch),
        "mma.sync on fp16, bf16 and tf32": has_reduced_products(device.arch),
        "cp.async": has_async_copies(device.arch),
        "clusters and TMA": has_clusters(device.arch),
    }
    if any(has.values()):
        yield "instructions", ", ".join(name for name, is_there in has.items() if is_there)


def _measured(floor: Floor | None) -> Iterator[tuple[str, str]]:
    if floor is None:
        return
    for unit, gflops in (floor.class_gflops or {floor.unit: floor.gflops}).items():
        if unit and gflops > 0:
            yield f"peak {unit}", f"{_rate(gflops, 'FLOP/s')}, measured"
    yield "memory bandwidth", f"{_rate(floor.bandwidth_gbps, 'B/s')} read and written, measured at this problem's size"


def _rate(giga: float, unit: str) -> str:
    return f"{giga / 1e3:.3g} T{unit}" if giga >= 1e3 else f"{giga:.3g} G{unit}"


def _size(size_bytes: int) -> str:
    return f"{size_bytes / (1 << 20):.4g} MiB" if size_bytes >= 1 << 20 else f"{size_bytes / (1 << 10):.4g} KiB"


_OF_KIND: dict[DeviceKind, Callable[[Device], Iterator[tuple[str, str]]]] = {
    DeviceKind.CPU: _of_cpu,
    DeviceKind.CUDA: _of_gpu,
}
