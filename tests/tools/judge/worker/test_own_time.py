"""What this process waits for cores is no part of its own time, and decides on no limit."""

from __future__ import annotations

import threading
import time

import pytest
import torch
from tests.tools.judge.worker.test_patience import ENDLESS, reference

from ridgeline.tools.judge.worker import own_time, patience
from ridgeline.tools.judge.worker.own_time import OwnTime
from ridgeline.tools.judge.worker.patience import TakesTooLongError

BUSY = """import time
            began = time.thread_time()
            while time.thread_time() - began < 0.4: pass
            return x"""


def wait_for_cores(monkeypatch: pytest.MonkeyPatch, share: float, *others: float) -> None:
    """Let this thread seem to wait for a core for a share of the clock's time, and others for theirs."""
    shares = {str(threading.get_native_id()): share, **{f"other {i}": each for i, each in enumerate(others)}}
    monkeypatch.setattr(
        own_time, "waits_ns", lambda _: {task: int(each * time.perf_counter() * 1e9) for task, each in shares.items()}
    )


@pytest.mark.parametrize(
    ("shares", "counted"), [((0.0,), 1.0), ((0.75,), 0.25), ((0.25, 0.5, 0.25, 0.25), 0.25), ((0.0, *[0.25] * 9), 0.75)]
)
def test_waits_for_a_core_are_not_counted(
    monkeypatch: pytest.MonkeyPatch, shares: tuple[float, ...], counted: float
) -> None:
    wait_for_cores(monkeypatch, *shares)
    spent = OwnTime()
    time.sleep(0.2)
    assert spent.is_beyond(0.7 * 0.2 * counted, by_clock_s=9)
    assert not spent.is_beyond(0.2 * counted * 2, by_clock_s=9)


def test_a_limit_ends_after_five_times_its_seconds_whatever_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    wait_for_cores(monkeypatch, 1.0, 1.0)
    spent = OwnTime()
    time.sleep(0.1)
    assert not spent.is_beyond(0.05)
    assert spent.is_beyond(0.01)


def test_load_ends_no_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "_LEAST_S", 0.15)
    monkeypatch.setattr(patience, "_TIMES", 1.0)  # of a first call that other programs may have made long
    busy = reference(BUSY)
    wait_for_cores(monkeypatch, 0.0)
    with busy.patience.trying(), pytest.raises(TakesTooLongError):
        busy.run((ENDLESS,))
    wait_for_cores(monkeypatch, 0.95)
    with busy.patience.trying():
        assert torch.equal(busy.run((ENDLESS,))[0], ENDLESS)


def test_a_call_without_end_ends_on_a_busy_machine_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "_LEAST_S", 0.02)
    monkeypatch.setattr(patience, "_MOST_S", 0.3)
    wait_for_cores(monkeypatch, 1.0, 1.0)
    began_s, endless = time.perf_counter(), reference()
    with endless.patience.trying(), pytest.raises(TakesTooLongError):
        endless.run((ENDLESS,))
    assert 0.3 < time.perf_counter() - began_s < 5
