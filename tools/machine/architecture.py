"""The instructions of NVIDIA's architectures: which has what, and what to write where one is missing.

The places follow the "Target ISA Notes" of the PTX ISA; a test asks ptxas.
"""

from __future__ import annotations

import re

_PRODUCTS = "multiply with mma.sync, which sm_80 and later have"
PLACES = {
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


def place_of(name: str, first: str | None) -> tuple[str, str]:
    """Return where an instruction exists, and what to write where it is missing; `first` is the first GPU that has it."""
    for prefix, place in PLACES.items():
        if name.startswith(prefix):
            return place
    return (f"on {first} and later" if first else ""), "write this part without it"
