"""How tickets are taken, with a side whose calls a test makes."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ridgeline.tools.measure.ticket_watch import TicketWatch

SETS = (5, 2, 7, 0)


class Stepping:
    """A side that takes tickets and makes outputs when it is told to."""

    def __init__(self) -> None:
        self.begun = 0
        self.outputs = dict.fromkeys(SETS, b"poison")

    def calls_begun(self) -> int:
        return self.begun

    def glimpse(self, set_index: int, _share: float) -> bytes:
        return self.outputs[set_index]

    def make(self, *calls: int) -> None:
        self.outputs |= {SETS[call]: b"made" for call in calls}


def watched(sets: Sequence[int] = SETS) -> tuple[Stepping, TicketWatch]:
    side = Stepping()
    return side, TicketWatch(side=side, sets=sets, block_s=0.032)  # type: ignore[arg-type]


def test_a_loop_that_takes_each_ticket_when_its_call_is_made_changes_no_output_later() -> None:
    side, watch = watched()
    for call in range(len(SETS)):
        side.begun = call + 1
        watch.look()
        side.make(call)
        watch.look()
    assert watch.set_changed_late() is None


@pytest.mark.parametrize("looks", [1, 8])
def test_a_look_that_comes_only_at_the_end_tells_nothing_of_a_loop_that_was_honest(looks: int) -> None:
    side, watch = watched()
    side.make(0, 1, 2)
    side.begun = len(SETS)
    for _ in range(looks):
        watch.look()
    side.make(3)  # the last call was under way
    assert watch.set_changed_late() is None


@pytest.mark.parametrize("taken", [2, 3, 4])
def test_tickets_taken_ahead_are_found_by_one_look(taken: int) -> None:
    side, watch = watched()
    side.begun = taken
    watch.look()
    side.begun = len(SETS)
    side.make(*range(len(SETS)))
    assert watch.set_changed_late() in SETS[: taken - 1]


def test_before_the_second_call_nothing_has_returned() -> None:
    side, watch = watched()
    for side.begun in (0, 1):
        watch.look()
    side.make(0)
    assert watch.set_changed_late() is None


def test_pauses_end_with_the_block() -> None:
    _, watch = watched()
    assert watch.pause()
    watch.ended.set()
    assert not watch.pause()
