"""Whether what collecting outputs took is that of copies, for honest runners and for each way to put work off."""

from __future__ import annotations

import random
from types import SimpleNamespace

import pytest

from ridgeline.tools.measure.late_outputs import (
    RANDOM_ONES,
    Collector,
    Reader,
    collector_for,
    late_work,
    per_call_s,
    sets_to_collect,
)
from ridgeline.tools.records.vocabulary import Interface

CALL_S, COPY_S, CALLS, BLOCKS = 2e-2, 3e-4, 12, 100
SETS = range(CALLS)


def gain_of(*, in_time: float, late_blocks: float = 1.0, at_once: bool = False, last_only: bool = False) -> str:
    """Return what is said of a runner that works this share of its calls in time, in this share of its blocks.

    `at_once`: all that was put off is done at a block's first collection. `last_only`: only last calls are put off.
    """
    rng = random.Random(7)
    blocks = []
    for block in range(BLOCKS):
        is_late = block < late_blocks * BLOCKS
        late = {i for i in range(CALLS - 1) if is_late and rng.random() >= in_time and not last_only}
        late |= {CALLS - 1} if last_only else set()
        took = {}
        for each in sets_to_collect((rng.randrange(CALLS),), SETS, rng):
            work_s = len(late) * CALL_S if at_once and not took else CALL_S * (each in late and not at_once)
            took[each] = COPY_S + work_s
        blocks.append(per_call_s(took, SETS))
    timed_s = CALL_S * (1 - 1 / CALLS if last_only else in_time)
    return late_work(blocks, [COPY_S] * BLOCKS * 4, call_s=timed_s)


@pytest.mark.parametrize("in_time", [0.0, 1 / 3, 0.6])
def test_calls_that_are_put_off_are_late_work(in_time: float) -> None:
    assert gain_of(in_time=in_time).startswith("collecting an output took")


def test_work_of_some_blocks_or_all_at_once_is_late_work_too() -> None:
    assert gain_of(in_time=0.4, late_blocks=0.75)
    assert gain_of(in_time=0.6, at_once=True)


def test_what_is_put_off_for_a_part_of_each_call_is_bounded_by_a_part_of_the_call() -> None:
    assert late_work([COPY_S + 0.4 * CALL_S] * BLOCKS, [COPY_S], call_s=0.6 * CALL_S)


def test_a_runner_that_only_copies_is_not() -> None:
    assert gain_of(in_time=1.0) == ""
    assert late_work([4.1e-4, 2.9e-4, 1.6e-3, 3.8e-4], [3.2e-4, 3.4e-4, 1.0e-3], call_s=1e-4) == ""


def test_on_a_gpu_the_slowest_blocks_are_other_programs_work() -> None:
    copies = [2e-4] * 8
    assert late_work([3e-4] * 14 + [5e-2] * 2, copies, call_s=1e-3) == ""
    assert late_work([3e-4] * 12 + [5e-2] * 4, copies, call_s=1e-3)


def test_without_collections_nothing_is_said() -> None:
    assert late_work([], [], call_s=CALL_S) == ""


def test_every_call_of_a_block_is_collected_as_often_as_another_and_the_last_one_always() -> None:
    rng = random.Random(1)
    drawn = [sets_to_collect((rng.randrange(CALLS),), SETS, rng) for _ in range(3000)]
    assert all(CALLS - 1 in sets and len(sets) == RANDOM_ONES + 1 for sets in drawn)
    counts = [sum(each in sets for sets in drawn) for each in range(CALLS - 1)]
    assert max(counts) / min(counts) < 1.2
    places = [sets.index(CALLS - 1) for sets in drawn]
    assert max(map(places.count, range(4))) / min(map(places.count, range(4))) < 1.2


def test_a_block_of_three_calls_is_collected_whole() -> None:
    assert sorted(sets_to_collect((8,), (8, 5, 2), random.Random(1))) == [2, 5, 8]
    assert sorted(sets_to_collect((2,), (8, 5, 2), random.Random(1))) == [2, 5, 8]
    assert per_call_s({8: 3.0, 5: 5.0, 2: 1.0}, (8, 5, 2)) == 3.0
    assert sets_to_collect((4,), (4,), random.Random(1)) == [4]
    assert per_call_s({4: 3.0}, (4,)) == 3.0


@pytest.mark.parametrize(("leaves_outputs", "kind"), [(True, Reader), (False, Collector)])
def test_outputs_are_read_where_they_lie_or_asked_for(leaves_outputs: bool, kind: type) -> None:
    runner = SimpleNamespace(leaves_outputs=leaves_outputs)
    assert type(collector_for(runner, None, Interface.MODULE)) is kind  # type: ignore[arg-type]
    assert collector_for(runner, None, Interface.C) is None  # type: ignore[arg-type]
