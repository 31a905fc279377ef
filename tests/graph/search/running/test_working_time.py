import time

import pytest

from ridgeline.graph.search.running.working_time import WorkingTime


class Clock:
    """A clock that a test moves on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = 1000.0
        monkeypatch.setattr(time, "monotonic", lambda: self.now_s)


def test_a_search_goes_on_from_the_time_of_its_earlier_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    working = WorkingTime(before_s=60.0, started_s=clock.now_s)
    clock.now_s += 5.0
    assert working.all_s == pytest.approx(65.0)


def test_the_rest_after_an_interrupt_is_no_time_of_the_search_and_one_without_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock(monkeypatch)
    working = WorkingTime(started_s=clock.now_s)
    for seconds, is_interrupted in ((1.0, True), (2.0, False)):
        with working.node(finds=True):
            clock.now_s += seconds
            if is_interrupted:
                working.interrupted()
        clock.now_s += 100.0  # until the host goes on
    assert working.all_s == pytest.approx(1.0 + 2.0 + 100.0)
    working.interrupted()
    with working.node(finds=True):
        clock.now_s += 3.0
    clock.now_s += 1e6
    assert working.all_s == pytest.approx(106.0)


def test_a_budget_counts_the_time_from_a_node_that_finds_kernels_to_one_that_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock(monkeypatch)
    working = WorkingTime(before_s=900.0, finding_before_s=40.0, started_s=clock.now_s)
    clock.now_s += 80.0  # the reference is described before the first node
    for seconds, finds, told_s in ((8.0, False, 40.0), (3.0, True, 43.0), (2.0, True, 46.0), (500.0, False, 47.0)):
        with working.node(finds=finds):
            clock.now_s += seconds
            assert working.finding_s == pytest.approx(told_s)
        clock.now_s += 1.0
    assert working.all_s == pytest.approx(900.0 + 80.0 + 513.0 + 4.0)


def test_a_rest_is_no_time_in_which_kernels_are_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    working = WorkingTime(started_s=clock.now_s)
    with working.node(finds=True):
        clock.now_s += 2.0
        working.interrupted()
    clock.now_s += 1e5
    assert working.finding_s == pytest.approx(2.0)
    with working.node(finds=True):
        clock.now_s += 3.0
    assert working.finding_s == pytest.approx(5.0)
