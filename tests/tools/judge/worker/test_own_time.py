"""What this process waits for cores is no part of its own time, and decides on no limit."""

from __future__ import annotations

import time

import pytest
import torch
from tests.tools.judge.worker.test_patience import ENDLESS, reference

from ridgeline.tools.judge.worker import own_time, patience
from ridgeline.tools.judge.worker.own_time import OwnTime
from ridgeline.tools.judge.worker.patience import TakesTooLongError


def wait_for_cores(monkeypatch: pytest.MonkeyPatch, share: float) -> None:
    """Let this process seem to wait for a core for a share of the clock's time; beyond 1 several threads do."""
    monkeypatch.setattr(own_time, "waited_s", lambda _: share * time.perf_counter())


@pytest.mark.parametrize(("share", "counted"), [(0.0, 1.0), (0.75, 0.25), (4.0, 0.05)])
def test_time_is_counted_but_for_waits_for_a_core(
    monkeypatch: pytest.MonkeyPatch, share: float, counted: float
) -> None:
    wait_for_cores(monkeypatch, share)
    spent, began_s = OwnTime(), time.perf_counter()
    time.sleep(0.1)
    assert spent.seconds() == pytest.approx(counted * (time.perf_counter() - began_s), rel=0.1)


def test_load_ends_no_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "_LEAST_S", 0.05)
    busy = reference("import time\n            began = time.perf_counter()\n"
                     "            while time.perf_counter() - began < 0.2: pass\n            return x")  # fmt: skip
    with busy.patience.trying(), pytest.raises(TakesTooLongError):
        busy.run((ENDLESS,))
    wait_for_cores(monkeypatch, 0.9)
    with busy.patience.trying():
        assert torch.equal(busy.run((ENDLESS,))[0], ENDLESS)


def test_a_call_without_end_ends_on_a_busy_machine_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "_LEAST_S", 0.02)
    wait_for_cores(monkeypatch, 2.0)
    began_s, endless = time.perf_counter(), reference()
    with endless.patience.trying(), pytest.raises(TakesTooLongError):
        endless.run((ENDLESS,))
    assert time.perf_counter() - began_s > 0.3
