"""Occupancy against NVIDIA's own calculator's figures for compute capability 9.0 and 8.6."""

import pytest

from ridgeline.tools.machine.occupancy import block_shared_bytes, multiprocessor, occupancy, register_warps


@pytest.mark.parametrize(
    ("threads", "registers", "shared_kib", "warps", "limited_by"),
    [
        (256, 32, 0, 64, "warps"),
        (256, 64, 0, 32, "registers"),
        (256, 65, 0, 24, "registers"),  # rounded up to 72 registers a thread
        (128, 255, 0, 8, "registers"),
        (1024, 33, 0, 32, "registers"),  # the second block does not fit
        (32, 16, 0, 32, "blocks"),
        (256, 32, 100, 16, "shared memory"),
        (128, 168, 81, 8, "shared memory"),
    ],
)
def test_hopper(threads: int, registers: int, shared_kib: int, warps: int, limited_by: str) -> None:
    limits = multiprocessor("sm_90a")
    assert limits is not None
    found = occupancy(limits, threads=threads, registers=registers, shared_bytes=shared_kib << 10)
    assert (found.warps, found.limited_by) == (warps, limited_by)
    assert found.fraction == warps / 64


def test_smaller_multiprocessors_hold_fewer_warps() -> None:
    limits = multiprocessor("sm_86")
    assert limits is not None
    assert occupancy(limits, threads=512, registers=32, shared_bytes=0).fraction == 1.0
    assert register_warps(limits, 255) == 8


def test_unknown_architecture_has_no_limits() -> None:
    assert multiprocessor("sm_999") is None


@pytest.mark.parametrize(
    ("arch", "kib"),
    [
        ("sm_70", 96),
        ("sm_75", 64),
        ("sm_80", 163),
        ("sm_86", 99),
        ("sm_89", 99),
        ("sm_90a", 227),
        ("sm_100a", 227),
        ("sm_110a", 227),
        ("sm_120a", 99),
    ],
)
def test_a_block_may_have_the_shared_memory_that_nvidia_gives(arch: str, kib: int) -> None:
    assert block_shared_bytes(arch) == kib << 10


def test_a_block_of_an_unknown_architecture_has_what_all_have() -> None:
    assert block_shared_bytes("sm_999") == 48 << 10


@pytest.mark.parametrize(
    ("arch", "warps", "blocks"),
    [("sm_75", 32, 16), ("sm_80", 64, 32), ("sm_86", 48, 16), ("sm_89", 48, 24), ("sm_90a", 64, 32), ("sm_100a", 64, 32),
     ("sm_120a", 48, 24)],
)  # fmt: skip
def test_a_multiprocessor_holds_what_the_programming_guide_says(arch: str, warps: int, blocks: int) -> None:
    limits = multiprocessor(arch)
    assert limits is not None
    assert (limits.warps, limits.blocks) == (warps, blocks)
