"""Which pairs of blocks count, by the clock of a GPU."""

from ridgeline.tools.machine.gpu_state import GpuState
from ridgeline.tools.measure.paired_blocks import steady_pairs
from ridgeline.tools.measure.timed_side import Block
from ridgeline.tools.runner.loop_time import LoopTime


def blocks_at(*clocks: float | None) -> list[Block]:
    """Return blocks of equal length at these clocks of the multiprocessors; None: the driver did not say."""
    took = LoopTime(parent_s=1e-3, own_s=1e-3)
    return [Block(calls=1, took=took, page_faults=0, gpu=GpuState(sm_mhz=mhz)) for mhz in clocks]


def test_pairs_without_clocks_all_count() -> None:
    assert steady_pairs(blocks_at(*[None] * 4), blocks_at(*[None] * 4)) == [0, 1, 2, 3]


def test_a_pair_with_either_block_at_another_clock_does_not_count() -> None:
    first = blocks_at(1980, 1980, 1500, 1980, 1980, 1980, 1980, 1980, 1980)
    second = blocks_at(1980, 1980, 1980, 1980, 2100, 1980, None, 1980, 1930)
    assert steady_pairs(first, second) == [0, 1, 3, 5, 6, 7, 8]


def test_where_too_few_pairs_would_be_left_all_count() -> None:
    wandering = blocks_at(1000, 1200, 1400, 1600, 1800, 1980, 1980)
    assert steady_pairs(wandering, wandering) == list(range(7))
