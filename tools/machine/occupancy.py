"""The resources of each architecture's multiprocessor, how many warps of a kernel fit, and which resource limits them.

Computed from tables; no GPU is needed.
"""

from __future__ import annotations

from dataclasses import dataclass

WARP = 32
LARGEST_BLOCK = 1024
REGISTERS = 64 << 10  # of one multiprocessor, and the allocation unit of a warp, since compute capability 5.0
_REGISTER_UNIT = 256
REGISTERS_A_THREAD = 255
_RESERVED_SHARED = 1024  # the system's own, in each block, since 8.0
LEAST_SHARED_BYTES = 48 << 10  # every architecture gives a block as much, and no more of it is static


@dataclass(frozen=True, slots=True, kw_only=True)
class Multiprocessor:
    """The resources of one multiprocessor; every architecture here has 64 Ki registers and blocks of at most 1024 threads.

    From "Technical Specifications per Compute Capability" of the CUDA C++ Programming Guide 13.0 and the toolkit's
    cuda_occupancy.h.
    """

    warps: int
    blocks: int
    shared_bytes: int
    reserved_shared: int = _RESERVED_SHARED
    shared_unit: int = 128  # a block's shared memory is a multiple of it


_BY_ARCHITECTURE = {
    "70": Multiprocessor(warps=64, blocks=32, shared_bytes=96 << 10, reserved_shared=0, shared_unit=256),
    "75": Multiprocessor(warps=32, blocks=16, shared_bytes=64 << 10, reserved_shared=0, shared_unit=256),
    "80": Multiprocessor(warps=64, blocks=32, shared_bytes=164 << 10),
    "86": Multiprocessor(warps=48, blocks=16, shared_bytes=100 << 10),
    "87": Multiprocessor(warps=48, blocks=16, shared_bytes=164 << 10),
    "89": Multiprocessor(warps=48, blocks=24, shared_bytes=100 << 10),
    "90": Multiprocessor(warps=64, blocks=32, shared_bytes=228 << 10),
    "100": Multiprocessor(warps=64, blocks=32, shared_bytes=228 << 10),
    "103": Multiprocessor(warps=64, blocks=32, shared_bytes=228 << 10),
    "110": Multiprocessor(warps=48, blocks=24, shared_bytes=228 << 10),
    "120": Multiprocessor(warps=48, blocks=24, shared_bytes=100 << 10),
    "121": Multiprocessor(warps=48, blocks=24, shared_bytes=100 << 10),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupancy:
    """The blocks and warps that are resident on one multiprocessor."""

    blocks: int
    warps: int
    most_warps: int
    limited_by: str  # "registers", "shared memory", "blocks" or "warps"

    @property
    def fraction(self) -> float:
        """Return resident warps / the most that fit."""
        return self.warps / self.most_warps


def multiprocessor(arch: str) -> Multiprocessor | None:
    """Return the resources of an architecture ("sm_90a"), None for an unknown one."""
    return _BY_ARCHITECTURE.get(arch.removeprefix("sm_").rstrip("af"))


def block_shared_bytes(arch: str) -> int:
    """Return the most shared memory that one block may ask for; 48 KiB, the least of all, for an unknown `arch`."""
    limits = multiprocessor(arch)
    return limits.shared_bytes - limits.reserved_shared if limits else LEAST_SHARED_BYTES


def occupancy(limits: Multiprocessor, *, threads: int, registers: int, shared_bytes: int) -> Occupancy:
    """Return how many blocks of this size are resident; `shared_bytes` is static plus dynamic memory of a block.

    When several limits are equal, the multiprocessor's own is named, since nothing is to be gained then; next the one
    that a kernel's author moves most easily.
    """
    warps = -(-threads // WARP)
    per_block = {
        "warps": limits.warps // warps,
        "shared memory": _shared_blocks(limits, shared_bytes),
        "registers": register_warps(limits, registers) // warps,
        "blocks": limits.blocks,
    }
    limited_by = min(per_block, key=lambda name: per_block[name])
    blocks = per_block[limited_by]
    return Occupancy(blocks=blocks, warps=blocks * warps, most_warps=limits.warps, limited_by=limited_by)


def register_warps(limits: Multiprocessor, registers: int) -> int:
    """Return how many warps a multiprocessor's registers allow, whatever the block; a multiple of its 4 schedulers."""
    of_a_warp = -(-max(registers, 1) * WARP // _REGISTER_UNIT) * _REGISTER_UNIT
    return min(REGISTERS // of_a_warp // 4 * 4, limits.warps)


def _shared_blocks(limits: Multiprocessor, shared_bytes: int) -> int:
    of_a_block = -(-(shared_bytes + limits.reserved_shared) // limits.shared_unit) * limits.shared_unit
    return limits.shared_bytes // of_a_block if of_a_block else limits.blocks
