"""What is looked at when all blocks that count are over, and how soon a misleading warm-up is seen through."""

from __future__ import annotations

import pytest
from tests.tools.measure.looping import CALL_S, CALLS, Looping, Memory, blocks_of, honest, run_all
from tests.tools.measure.test_coverage import SETTINGS, BusyJudge, run

from ridgeline.tools.measure import alternation, changing_blocks
from ridgeline.tools.measure.block_plan import BlockKind
from ridgeline.tools.measure.changing_blocks import BLOCK_PARTS, CERTAIN_BLOCK_S, ChangingBlocks
from ridgeline.tools.measure.distrust import Distrusted
from ridgeline.tools.measure.singles import SINGLES
from ridgeline.tools.measure.ticket_watch import TicketWatch
from ridgeline.tools.measure.timed_side import Block
from ridgeline.tools.runner.loop_time import LoopTime

SLOW = 40


def counted(call_s: float, calls: int = CALLS) -> Block:
    return Block(calls=calls, took=LoopTime(parent_s=calls * call_s, own_s=calls * call_s), page_faults=0)


def run_before_the_end(blocks: ChangingBlocks) -> None:
    while blocks.is_open(blocks.n_changed + 1):
        blocks.run(blocks.plan())


def test_a_change_of_either_kind_is_kept_back_until_no_block_that_counts_follows() -> None:
    kept_back = set()
    for rng_seed in range(12):
        memory = Memory()
        blocks = blocks_of(memory, honest(memory), rng_seed=rng_seed)
        run_before_the_end(blocks)
        missing = {(part, held) for part in range(BLOCK_PARTS) for held in (False, True)} - blocks.changed
        assert sorted(is_held for _, is_held in missing) == [False, True]
        kept_back |= missing
        run_all(blocks)
        assert blocks.n_changed == 2 * BLOCK_PARTS
    assert len(kept_back) > BLOCK_PARTS


def test_a_kernel_that_keeps_things_once_the_usual_changes_have_come_is_found() -> None:
    for rng_seed in range(6):
        memory, kept, keeps = Memory(), [0.0], [False]

        def begin(_sets: object, memory: Memory = memory, kept: list[float] = kept) -> None:
            kept[0] = memory.parameter

        def call(index: int, memory: Memory = memory, kept: list[float] = kept, keeps: list[bool] = keeps) -> None:
            memory.outputs[index] = 2 * memory.inputs[index] + (kept[0] if keeps[0] else memory.parameter)

        blocks = blocks_of(memory, Looping(memory, call, begin), rng_seed=rng_seed)
        run_before_the_end(blocks)
        keeps[0] = True
        with pytest.raises(Distrusted, match="keeps nothing from call to call"):
            run_all(blocks)


def test_a_block_is_as_long_as_its_calls_are_now(monkeypatch: pytest.MonkeyPatch) -> None:
    """A warm-up that is slow on purpose would have the parent sleep until the block is over, and tries end sooner."""
    looked_for = list[float]()

    def watch(*, block_s: float, **rest: object) -> TicketWatch:
        looked_for.append(block_s)
        return TicketWatch(block_s=block_s, **rest)  # type: ignore[arg-type]

    monkeypatch.setattr(changing_blocks, "TicketWatch", watch)
    memory = Memory()
    blocks = blocks_of(memory, honest(memory))
    blocks.timed.usual_call_s = SLOW * CALL_S
    assert not blocks.has_room or blocks.planner.most_calls * blocks.timed.usual_call_s > CERTAIN_BLOCK_S
    blocks.timed.blocks += [counted(SLOW * CALL_S), *(counted(CALL_S) for _ in range(4))]
    run_all(blocks)
    assert blocks.n_changed == 2 * BLOCK_PARTS
    assert max(looked_for) <= 1.01 * CALLS * CALL_S


@pytest.mark.parametrize(("warm_up_s", "few"), [(40e-3, 2), (0.6, 1)], ids=["a few calls", "one call"])
def test_blocks_have_more_calls_once_these_are_far_shorter_than_in_the_warm_up(warm_up_s: float, few: int) -> None:
    measurement, ours = run(BusyJudge(), call_s=1e-3)
    usual = measurement.planner.most_calls
    ours.usual_call_s, measurement.planner.most_calls, ours.coverage.least = warm_up_s, few, 1
    measurement.alternate()
    assert measurement.planner.most_calls == usual > few and ours.usual_call_s == pytest.approx(1e-3)
    assert ours.coverage.least == SETTINGS.checks


def test_blocks_stay_as_long_while_calls_take_as_long_as_ever() -> None:
    measurement, ours = run(BusyJudge(), call_s=1e-3)
    usual = measurement.planner.most_calls
    ours.usual_call_s = 1.5e-3
    measurement.alternate()
    assert measurement.planner.most_calls == usual and ours.usual_call_s == 1.5e-3


def test_two_blocks_of_one_call_come_when_all_that_count_are_over() -> None:
    for further in (False, True):
        measurement, ours = run(BusyJudge())
        measurement.alternate()
        ours.singles += ours.singles[:1] * SINGLES if further else []
        before = len(ours.singles)
        measurement.expect_even()
        assert len(ours.singles) == max(SINGLES, before + 2)


def test_blocks_go_on_changing_once_the_wanted_changes_have_come_and_are_no_tries() -> None:
    """A kernel that has counted the changes, and knows when the last blocks come, would keep things until then."""
    memory = Memory()
    blocks = blocks_of(memory, honest(memory))
    run_before_the_end(blocks)
    tries = blocks.tries
    for _ in range(40):
        before = len(memory.changed)
        blocks.run(blocks.plan())
        assert len(memory.changed) == before + 1
    assert blocks.tries == tries and blocks.in_vain <= 1 and blocks.is_open(blocks.n_wanted) is False
    blocks.are_last = True
    assert blocks.is_open(blocks.n_wanted)


def test_a_run_goes_on_with_both_kinds_of_looks_until_no_block_that_counts_follows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    order = [each for _ in range(60) for each in in_order(monkeypatch, singles=SINGLES, changes=0)]
    assert "ours single" in order and "change" in order
    assert order.count("change") < order.count("ours counted") / 2


def test_nobody_looks_at_outputs_before_the_graded_call_has_begun() -> None:
    """A kernel feels that another core has read its last outputs: it would make anew what it keeps."""
    for rng_seed in range(8):
        memory, looked_at = Memory(), list[int]()
        side = honest(memory)
        blocks = blocks_of(memory, side, rng_seed=rng_seed)
        blocks.are_last = True

        def glimpse(set_index: int, share: float, side: Looping = side, looked_at: list[int] = looked_at) -> bytes:
            looked_at.append(side.begun)
            return Looping.glimpse(side, set_index, share)

        side.glimpse = glimpse  # type: ignore[method-assign]
        plan = blocks.plan()
        blocks.run(plan)
        graded = min(plan.sets.index(index) for index in memory.graded) if memory.graded else 0
        assert not looked_at or all(begun == 0 or begun > graded for begun in looked_at)


def test_blocks_that_do_not_count_come_before_either_block_of_a_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = set[tuple[str, str]]()
    for _ in range(100):  # the rarest order comes in a quarter of them
        order = in_order(monkeypatch)
        pairs = [i for i, each in enumerate(order) if "counted" in each]
        seen |= {
            (order[i], "between" if j > i + 1 else "at once") for i, j in zip(pairs[::2], pairs[1::2], strict=True)
        }
    assert {name for name, where in seen if where == "between"} == {"ours counted", "theirs counted"}
    assert {where for _, where in seen} == {"between", "at once"}


def in_order(monkeypatch: pytest.MonkeyPatch, *, singles: int = 0, changes: int = 2 * BLOCK_PARTS) -> list[str]:
    """Return whose blocks of which kind a round runs, in their order; so many singles were, so many changes are wanted."""
    measurement, ours = run(BusyJudge())
    ours.singles += [counted(1e-3, 1)] * singles
    ours.blocks += [counted(1e-3)]
    order = list[str]()

    def note(timed: object, _other: object, _calls: int, kind: BlockKind = BlockKind.COUNTED) -> None:
        order.append(f"{'ours' if timed is ours else 'theirs'} {kind}")

    monkeypatch.setattr(measurement, "_block", note)
    monkeypatch.setattr(measurement, "_cover", lambda *_: order.append("extra"))
    monkeypatch.setattr(measurement, "_change", lambda *_: order.append("change"))
    monkeypatch.setattr(measurement, "_look", lambda *_: order.append("wanted change"))
    monkeypatch.setattr(ChangingBlocks, "n_wanted", changes)
    monkeypatch.setattr(measurement, "_rule", Once())
    monkeypatch.setattr(alternation, "ratio_of", lambda *_: None)
    measurement.alternate()
    return order


class Once:
    """A rule that ends a measurement after one round."""

    def is_done(self, _measured: object, _seconds: float) -> bool:
        return True
