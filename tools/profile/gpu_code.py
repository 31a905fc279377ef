"""The kernels of a CUDA library as compiled: registers, spills, shared memory, instructions.

Read from ptxas' messages of the build (`-Xptxas=-v`) and from cuobjdump's listing; the library is never loaded.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from ridgeline.tools.build.toolchain import compiler_path
from ridgeline.tools.records.codec import Record
from ridgeline.tools.records.vocabulary import DeviceKind

RESERVED_SHARED = 1024  # cuobjdump counts the system's own bytes from compute capability 9.0 on, ptxas does not

_ENTRY = re.compile(r"Compiling entry function '([^']+)'")
_PROPERTIES = re.compile(r"Function properties for (\S+)")
_STACK = re.compile(r"\b(\d{1,9}) bytes stack frame, (\d{1,9}) bytes spill stores, (\d{1,9}) bytes spill loads")
_USED = re.compile(r"Used (\d{1,9}) registers")
_STATIC_SHARED = re.compile(r"\b(\d{1,9}) bytes smem")
_RESOURCE_FUNCTION = re.compile(r"^\s*Function (\S+):$")
_RESOURCES = re.compile(r"REG:(\d{1,9}) STACK:(\d{1,9}) SHARED:(\d{1,9}) LOCAL:(\d{1,9})")
_SASS_FUNCTION = re.compile(r"^\s*Function : (\S+)")
_INSTRUCTION = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_]*)((?:\.[A-Za-z0-9_]+)*)")
_WIDTHS = {"U8": 8, "S8": 8, "U16": 16, "S16": 16, "64": 64, "128": 128}
_MEMORY = {"LDG", "STG", "LDS", "STS", "LDL", "STL", "LDGSTS"}
TENSOR_OPCODES = {
    "HGMMA": "wgmma",
    "QGMMA": "wgmma on 8-bit numbers",
    "IGMMA": "wgmma on integers",
    "HMMA": "mma.sync",
    "QMMA": "mma.sync on 8-bit numbers",
    "IMMA": "mma.sync on integers",
    "DMMA": "mma.sync in fp64",
    "UTCHMMA": "tcgen05",
    "UTCQMMA": "tcgen05 on 8-bit numbers",
}

WGMMA_OPCODES = ("HGMMA", "QGMMA", "IGMMA")


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelCode(Record):
    """One kernel as the compiler left it; None is unknown."""

    name: str  # the function's own name, without namespaces and parameters
    registers: int | None = None  # of a thread
    stack_bytes: int = 0  # of a thread, in local memory: spilled registers, and arrays indexed at run time
    spill_store_bytes: int | None = None  # in the code, not at run time
    spill_load_bytes: int | None = None
    shared_bytes: int = 0  # static; a launch's dynamic part is not in the code
    instructions: dict[str, int] = field(default_factory=dict)  # opcode, memory ones with their width: "LDG.128"

    @property
    def tensor_cores(self) -> tuple[str, ...]:
        """Return which tensor core instructions the code holds, as a programmer calls them."""
        return tuple(name for opcode, name in TENSOR_OPCODES.items() if self.instructions.get(opcode))

    @property
    def uses_wgmma(self) -> bool:
        """Return whether the code multiplies with warpgroup-wide tensor core instructions."""
        return any(self.instructions.get(opcode) for opcode in WGMMA_OPCODES)

    def widest(self, opcode: str) -> int:
        """Return the widest access of LDG, STG, LDS or STS in bits, 0 without any."""
        widths = [int(key.split(".")[1]) for key in self.instructions if key.startswith(f"{opcode}.")]
        return max(widths, default=0)

    def count(self, opcode: str) -> int:
        """Return how many instructions of this opcode the code holds, whatever their width."""
        return sum(n for key, n in self.instructions.items() if key.partition(".")[0] == opcode)


def read_ptxas(log: str) -> dict[str, KernelCode]:
    """Return the kernels that ptxas' messages describe, by mangled name."""
    kernels: dict[str, KernelCode] = {}
    current = ""
    for line in log.splitlines():
        if named := _ENTRY.search(line):
            current = named[1]
            kernels[current] = KernelCode(name=short_name(current))
        elif described := _PROPERTIES.search(line):
            current = described[1]  # of a device function too, which is no kernel
        elif current in kernels:
            kernels[current] = _with_ptxas_line(kernels[current], line)
    return kernels


def _with_ptxas_line(kernel: KernelCode, line: str) -> KernelCode:
    if stack := _STACK.search(line):
        frame, stores, loads = (int(n) for n in stack.groups())
        return replace(kernel, stack_bytes=frame, spill_store_bytes=stores, spill_load_bytes=loads)
    if used := _USED.search(line):
        shared = _STATIC_SHARED.search(line)
        return replace(kernel, registers=int(used[1]), shared_bytes=int(shared[1]) if shared else 0)
    return kernel


def read_resource_usage(listing: str, arch: str) -> dict[str, KernelCode]:
    """Return the kernels of `cuobjdump --dump-resource-usage`, by mangled name.

    The listing does not tell a spilled register from an array in local memory: both are stack.
    """
    reserved = RESERVED_SHARED if int(re.sub(r"\D", "", arch) or 0) >= 90 else 0
    kernels: dict[str, KernelCode] = {}
    current = ""
    for line in listing.splitlines():
        if named := _RESOURCE_FUNCTION.match(line):
            current = named[1]
        elif current and (used := _RESOURCES.search(line)):
            registers, stack, shared, local = (int(n) for n in used.groups())
            kernels[current] = KernelCode(
                name=short_name(current),
                registers=registers,
                stack_bytes=max(stack, local),
                shared_bytes=max(shared - reserved, 0),
            )
    return kernels


def read_sass(listing: str) -> dict[str, Counter[str]]:
    """Return how many instructions of each kind every kernel of `cuobjdump --dump-sass` holds, by mangled name."""
    found: dict[str, Counter[str]] = {}
    current: Counter[str] | None = None
    for line in listing.splitlines():
        if named := _SASS_FUNCTION.match(line):
            current = found.setdefault(named[1], Counter())
        elif current is not None and (code := _INSTRUCTION.match(line)):
            current[_kind_of(code[1], code[2])] += 1
    return found


def _kind_of(opcode: str, modifiers: str) -> str:
    if opcode not in _MEMORY:
        return opcode
    width = next((_WIDTHS[m] for m in modifiers.split(".") if m in _WIDTHS), 32)
    return f"{opcode}.{width}"


def merged(described: Mapping[str, KernelCode], instructions: Mapping[str, Counter[str]]) -> tuple[KernelCode, ...]:
    """Return every kernel with its instructions, in the order of `described`."""
    names = [*described, *(name for name in instructions if name not in described)]
    return tuple(
        replace(described.get(name) or KernelCode(name=short_name(name)), instructions=dict(instructions.get(name, {})))
        for name in names
    )


def short_name(mangled: str) -> str:
    """Return a function's own name from its mangled one: "softmax" of "_ZN3abc7softmaxILi64EEvPKfPf"."""
    match = re.match(r"_ZN?(?:K|St)?", mangled)
    if match is None:
        return mangled
    rest, name = mangled[match.end() :], ""
    while length := re.match(r"\d{1,9}", rest):
        end = length.end() + int(length[0])
        part, rest = rest[length.end() : end], rest[end:]
        name = name if part.startswith("_GLOBAL__N_") else part
        if not mangled.startswith("_ZN"):
            break
    return name or mangled


def find_cuobjdump() -> Path | None:
    """Return CUDA's lister of binaries: from PATH, beside nvcc, or the one that Triton's package carries."""
    nvcc = compiler_path(DeviceKind.CUDA)
    beside = [nvcc.resolve().parent / "cuobjdump"] if nvcc else []
    triton = importlib.util.find_spec("triton")  # found, not imported
    folders = list(triton.submodule_search_locations or ()) if triton else []
    packaged = [Path(folder, "backends", "nvidia", "bin", "cuobjdump") for folder in folders]
    on_path = shutil.which("cuobjdump")
    candidates = [*([Path(on_path)] if on_path else []), *beside, Path("/usr/local/cuda/bin/cuobjdump"), *packaged]
    return next((path for path in candidates if path.is_file()), None)
