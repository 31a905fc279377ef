"""The instructions of NVIDIA's architectures, and advice for a source that asks for missing ones.

The places follow the "Target ISA Notes" of the PTX ISA; a test asks ptxas.
"""

from __future__ import annotations

import re

from ridgeline.tools.machine.occupancy import LEAST_SHARED_BYTES, block_shared_bytes

_MOST_NAMES = 3
_MISSING = re.compile(
    r"error\s*: (?:Instruction|Feature|Modifier) '(?P<name>[^']+)' (?:requires \.target (?P<first>sm_\w+) or higher"
    r"|not supported on \.target|cannot be compiled for architecture)"
    r"|error: (?P<attribute>__\w+__) is not supported for this GPU architecture"
)
_STATIC_SHARED = re.compile(r"uses too much shared data \((0x[0-9a-f]+) bytes, 0x[0-9a-f]+ max\)")
_PRODUCTS = "multiply with mma.sync, which sm_80 and later have"
_PLACES = {
    "wgmma.": ("on sm_90a only", _PRODUCTS),
    "tcgen05.": ("on sm_100a, sm_103a and sm_110a only", _PRODUCTS),
    "setmaxnreg": ('on sm_90a and later "a" architectures only', "leave registers as the compiler shares them out"),
    "__cluster_dims__": ("on sm_90 and later", "launch blocks without clusters"),
}
"""By prefix: where the instruction exists, and what to write elsewhere, for those that not every later GPU has."""


def capability(arch: str) -> int:
    """Return the compute capability of "sm_90a" as a number, 90; 0 where `arch` is no GPU's architecture."""
    match = re.fullmatch(r"sm_(\d+)[af]?", arch)
    return int(match[1]) if match else 0


def has_async_copies(arch: str) -> bool:
    """Return whether a thread can copy into shared memory without waiting (`cp.async`): 8.0 and later."""
    return capability(arch) >= 80


def has_reduced_products(arch: str) -> bool:
    """Return whether `mma.sync` multiplies tf32, bfloat16 and 16 half elements at once: 8.0 and later."""
    return capability(arch) >= 80


def has_clusters(arch: str) -> bool:
    """Return whether blocks form clusters and a copy engine moves rows and tiles (TMA): 9.0 and later."""
    return capability(arch) >= 90


def has_wgmma(arch: str) -> bool:
    """Return whether a GPU has the warpgroup-wide tensor core instructions: compute capability 9.0 alone, as "sm_90a"."""
    return arch == "sm_90a"


def explain_missing(log: str, arch: str) -> str:
    """Return one line on the instructions in a compiler's messages that `arch` lacks, "" when it lacks none."""
    places: dict[str, list[str]] = {}
    steps: dict[str, str] = {}
    for found in _MISSING.finditer(log):
        name = found["name"] or found["attribute"]
        where, step = _place(name, found["first"])
        names = places.setdefault(where, [])
        steps[where] = step
        short = name.partition(" ")[0] if name.startswith(tuple(_PLACES)) else name
        names += [] if short in names else [short]
    if not places:
        return ""
    where = min(
        places, key=lambda place: place == ""
    )  # a name without a place is a part of an instruction that has one
    names = places[where]
    listed = ", ".join(names[:_MOST_NAMES]) + (", …" if len(names) > _MOST_NAMES else "")
    exist = "these instructions exist" if len(names) > 1 else "this exists"
    return f"{listed}: {exist} {where or 'on other architectures'}; this GPU is {arch}: {steps[where]}"


def explain_shared(log: str, arch: str) -> str:
    """Return one line on static shared memory beyond its limit, "" without such a complaint of the compiler."""
    found = _STATIC_SHARED.search(log)
    if found is None:
        return ""
    asked, most = int(found[1], 16), block_shared_bytes(arch)
    if asked > most:
        return f"{asked} bytes of shared memory: a block has at most {most} on {arch}: make its tiles smaller"
    return (
        f"{asked} bytes of static shared memory: at most {LEAST_SHARED_BYTES} are static: declare it extern __shared__ "
        f"and allow up to {most} on {arch} by cudaFuncAttributeMaxDynamicSharedMemorySize"
    )


def _place(name: str, first: str | None) -> tuple[str, str]:
    """Return where an instruction exists, and what to write where it is missing."""
    for prefix, place in _PLACES.items():
        if name.startswith(prefix):
            return place
    return (f"on {first} and later" if first else ""), "write this part without it"
