"""Findings on a CUDA kernel: always of its code, without running it; of counters where Nsight Compute works."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from ridgeline.tools.errors import EngineError
from ridgeline.tools.machine.architecture import has_wgmma
from ridgeline.tools.machine.occupancy import LARGEST_BLOCK, WARP, multiprocessor, occupancy, register_warps
from ridgeline.tools.profile.counter_notes import advice, rates
from ridgeline.tools.profile.executed import executed_work
from ridgeline.tools.profile.findings import Findings, Specimen
from ridgeline.tools.profile.gpu_code import (
    TENSOR_OPCODES,
    KernelCode,
    find_cuobjdump,
    merged,
    read_ptxas,
    read_resource_usage,
    read_sass,
)
from ridgeline.tools.profile.gpu_counters import (
    ACHIEVED_PCT,
    DURATION_NS,
    SPECIAL_PIPES,
    TENSOR_PIPES,
    KernelCounters,
    count_kernels,
    last_launches,
)
from ridgeline.tools.profile.vendor_code import gpu_work, read_links, with_links
from ridgeline.tools.records.baselines import Floor
from ridgeline.tools.records.problem import Device
from ridgeline.tools.sandbox.rules import Confined, Limits, temporary_workdir
from ridgeline.tools.sandbox.sandbox import Sandbox

FEW_WARPS = 0.5
MOST_KERNELS_NAMED = 4
_PTXAS = "ptxas info"
_LISTING_BYTES = 64 << 20
_CUOBJDUMP_LIMITS = Limits(wall_s=60.0, cpu_s=60, memory_bytes=2 << 30, file_bytes=_LISTING_BYTES)


def look_into_kernels(specimen: Specimen) -> Findings:
    """Return the findings of a CUDA library's code and, where Nsight Compute works, of its counters."""
    description, library, sandbox = specimen.description, specimen.library, specimen.sandbox
    code, missing = read_code(library, build_log=specimen.build_log, arch=specimen.device.arch, sandbox=sandbox)
    launches, reason = count_kernels(specimen.runner, signature=description.signature, library=library, sandbox=sandbox)
    ceiling = specimen.floor.bandwidth_gbps if specimen.floor else 0.0
    of_code = code_notes(code, device=specimen.device, floor=specimen.floor)
    is_known = bool(code) or not missing or _PTXAS in specimen.build_log  # a library may hold no kernel at all
    own_work = gpu_work(launches, {kernel.name for kernel in code} if is_known else None, reason)
    return Findings(
        notes=(
            *advice(launches, compulsory_bytes=description.compulsory_bytes),
            *of_code,
            *missing,
            *([reason] if reason else []),
        ),
        rates=tuple(rates(launches, ceiling_gbps=ceiling)),
        details=_details(code, launches),
        own_work=with_links(own_work, read_links(library, sandbox)[0]),
        executed=executed_work(launches),
    )


def read_code(
    library: Path, *, build_log: str, arch: str, sandbox: Sandbox
) -> tuple[tuple[KernelCode, ...], list[str]]:
    """Return every kernel of a library as compiled, and a note on each part that is unknown.

    ptxas' messages tell spills from arrays; cuobjdump stands in where the log has none, and alone lists instructions.
    """
    described = read_ptxas(build_log)
    cuobjdump = find_cuobjdump()
    if cuobjdump is None:
        return merged(described, {}), ["the instructions are unknown: cuobjdump is not installed (CUDA toolkit)"]
    usage, sass = "", ""
    try:
        usage = "" if described else _listing(cuobjdump, "--dump-resource-usage", library, sandbox)
        sass = _listing(cuobjdump, "--dump-sass", library, sandbox)
    except EngineError as error:
        return merged(described or read_resource_usage(usage, arch), {}), [str(error)]
    return merged(described or read_resource_usage(usage, arch), read_sass(sass)), []


def _listing(cuobjdump: Path, option: str, library: Path, sandbox: Sandbox) -> str:
    """Return cuobjdump's listing of a library, made in the sandbox since the file is untrusted.

    Raises:
        EngineError: cuobjdump fails.
    """
    with temporary_workdir("ridgeline-profile-") as folder:
        shutil.copyfile(library, folder / "kernel.so")
        (folder / "kernel.so").chmod(0o644)
        confined = Confined(
            command=(str(cuobjdump), option, str(folder / "kernel.so")),
            workdir=folder,
            readable=(cuobjdump.resolve().parent,),
            env={"PATH": f"{cuobjdump.resolve().parent}:/usr/local/cuda/bin:/usr/bin:/bin"},  # it starts nvdisasm
            limits=_CUOBJDUMP_LIMITS,
            allow_processes=True,
        )
        ended, output = sandbox.run(confined)
    if not ended.is_success:
        raise EngineError(f"the kernels' code is unknown: cuobjdump failed ({ended.message or output.strip()[:200]})")
    return output


# ------------------------------------------------------------------------------------------------------- in words


def code_notes(kernels: Sequence[KernelCode], *, device: Device, floor: Floor | None) -> list[str]:
    """Return notes on each kernel from its code alone."""
    notes = []
    for kernel in kernels[:MOST_KERNELS_NAMED]:
        found = [
            *_resource_notes(kernel, device.arch),
            *_stack_notes(kernel),
            *_tensor_notes(kernel, device.arch, floor),
            *_width_notes(kernel, floor),
        ]
        notes += [f"{kernel.name}: {note}" for note in found]
    if len(kernels) > MOST_KERNELS_NAMED:
        notes.append(f"{len(kernels) - MOST_KERNELS_NAMED} more kernels are not described")
    return notes


def _resource_notes(kernel: KernelCode, arch: str) -> list[str]:
    limits = multiprocessor(arch)
    if kernel.registers is None:
        return []
    shared = f", {kernel.shared_bytes} bytes static shared memory" if kernel.shared_bytes else ""
    text = f"{kernel.registers} registers a thread{shared}"
    if limits is None:
        return [text]
    warps = register_warps(limits, kernel.registers)
    notes = [f"{text}: registers allow {warps} of {limits.warps} warps a multiprocessor ({warps / limits.warps:.0%})"]
    full = occupancy(limits, threads=LARGEST_BLOCK, registers=1, shared_bytes=kernel.shared_bytes)
    small = occupancy(limits, threads=4 * WARP, registers=1, shared_bytes=kernel.shared_bytes)
    if kernel.shared_bytes and small.fraction < FEW_WARPS and small.limited_by == "shared memory":
        notes.append(
            f"static shared memory allows {small.blocks} blocks a multiprocessor, {small.fraction:.0%} of its warps with "
            f"128 threads a block and {full.fraction:.0%} with 1024"
        )
    return notes


def _stack_notes(kernel: KernelCode) -> list[str]:
    stores, loads = kernel.spill_store_bytes, kernel.spill_load_bytes
    if stores or loads:
        note = (
            f"register spills: {stores} bytes stored and {loads} bytes loaded a thread in the code, {kernel.stack_bytes} "
            "bytes of local memory: keep fewer values alive, unroll less, or allow more registers (__launch_bounds__)"
        )
        return [note]
    if kernel.stack_bytes or kernel.count("LDL") or kernel.count("STL"):
        what = (
            "an array is indexed at run time"
            if stores == 0
            else "registers are spilled or an array is indexed at run time"
        )
        return [
            f"{kernel.stack_bytes} bytes of local memory a thread: {what}; unroll its loops so that it stays in registers"
        ]
    return []


def _tensor_notes(kernel: KernelCode, arch: str, floor: Floor | None) -> list[str]:
    used = kernel.tensor_cores
    if used:
        slower = has_wgmma(arch) and not kernel.uses_wgmma
        return [f"tensor cores by {', '.join(used)}" + ("; wgmma is faster on this architecture" if slower else "")]
    is_compute_bound = floor is not None and floor.bound == "compute" and floor.unit not in {"", "fp32"}
    if is_compute_bound and kernel.instructions:
        return ["no tensor core instruction, though the accepted precision allows them: fp32 arithmetic only"]
    return []


def _width_notes(kernel: KernelCode, floor: Floor | None) -> list[str]:
    if floor is not None and floor.bound != "memory":
        return []
    notes = []
    for opcode, what in (("LDG", "loads"), ("STG", "stores")):
        widest = kernel.widest(opcode)
        if 0 < widest < 128:
            notes.append(
                f"global {what} are {widest // 8} bytes wide at most: 16 bytes a thread (float4) need fewer of them"
            )
    return notes


def _details(kernels: Sequence[KernelCode], launches: Sequence[KernelCounters]) -> dict[str, float]:
    details: dict[str, float] = {"kernels": len(kernels)}
    if kernels:
        details |= {
            "registers": max((k.registers or 0) for k in kernels),
            "spill_store_bytes": sum((k.spill_store_bytes or 0) for k in kernels),
            "spill_load_bytes": sum((k.spill_load_bytes or 0) for k in kernels),
            "stack_bytes": max(k.stack_bytes for k in kernels),
            "static_shared_bytes": max(k.shared_bytes for k in kernels),
            "tensor_instructions": sum(k.count(op) for k in kernels for op in TENSOR_OPCODES),
            "ffma_instructions": sum(k.count("FFMA") for k in kernels),
            "widest_global_load_bits": max(k.widest("LDG") for k in kernels),
        }
    longest = next(iter(last_launches(launches)), None)
    if longest is not None:
        names = {
            "achieved_occupancy_pct": (ACHIEVED_PCT,),
            "tensor_pipe_pct": TENSOR_PIPES,
            "special_pipe_pct": SPECIAL_PIPES,
            "kernel_ns": (DURATION_NS,),
        }
        found = {name: longest.largest(metrics) for name, metrics in names.items()}
        details |= {name: value for name, value in found.items() if value is not None}
        details["dram_bytes"] = longest.dram_bytes
    return {name: float(value) for name, value in details.items()}
