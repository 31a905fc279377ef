"""A call of the reference that takes far longer than usual ends, where contents are tried, and no other one does."""

from __future__ import annotations

import signal
import time

import pytest
import torch

from ridgeline.tools.judge.worker import patience
from ridgeline.tools.judge.worker.patience import TakesTooLongError
from ridgeline.tools.judge.worker.reference import Reference

SOURCE = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        while float(x.flatten()[0]) > {least}:
            {body}
        return x * 2


def get_inputs():
    return [torch.zeros(4, 4)]
"""
ENDLESS = torch.full((4, 4), 2.0)


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "_LEAST_S", 0.05)


def reference(body: str = "pass", least: float = 1) -> Reference:
    return Reference(SOURCE.format(body=body, least=least))


@pytest.mark.parametrize(
    "body", ["pass", "try:\n                x = x + 0\n            except Exception:\n                pass"]
)
def test_an_endless_call_ends_where_contents_are_tried(body: str) -> None:
    found, before = reference(body), signal.getsignal(signal.SIGALRM)
    with found.patience.trying(), pytest.raises(TakesTooLongError, match=r"reference.py: forward\(\) took longer than"):
        found.run((ENDLESS,))
    assert signal.getsignal(signal.SIGALRM) is before
    assert torch.equal(found.run((torch.ones(4, 4),))[0], 2 * torch.ones(4, 4))


def test_an_endless_call_in_float64_ends_too() -> None:
    found = reference()
    assert found.in_double((torch.zeros(4, 4),), {}) is not None
    with found.patience.trying(), pytest.raises(TakesTooLongError):
        found.in_double((ENDLESS,), {})


def test_a_call_that_sleeps_or_that_nothing_is_tried_with_goes_on() -> None:
    asleep = reference("import time; time.sleep(0.2); return x")
    with asleep.patience.trying():
        assert torch.equal(asleep.run((ENDLESS,))[0], ENDLESS), "the thread was not at work"
    busy = reference("import time\n            began = time.perf_counter()\n"
                     "            while time.perf_counter() - began < 0.2: pass\n            return x")  # fmt: skip
    assert torch.equal(busy.run((ENDLESS,))[0], ENDLESS)


def test_a_timer_that_ran_before_goes_on() -> None:
    rung: list[float] = []
    before = signal.signal(signal.SIGALRM, lambda *_: rung.append(time.monotonic()))
    timer = signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        found, began_s = reference(), time.monotonic()
        with found.patience.trying():
            found.run((torch.ones(4, 4),))
        while not rung and time.monotonic() - began_s < 2:
            time.sleep(0.01)
        assert len(rung) == 1 and 0.2 < rung[0] - began_s < 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, *timer)
        signal.signal(signal.SIGALRM, before)
