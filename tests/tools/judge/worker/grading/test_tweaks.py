"""What differs from its base in one place: whatever a kernel samples of it, some trial shows what it left out."""

from __future__ import annotations

import pytest
import torch
from tests.tools.judge.worker.made import Made, made

from ridgeline.tools.judge.worker.call_form import Tensors
from ridgeline.tools.records.trial_names import TWEAKED

ROWS, COLS = 128, 256
STEP = 1009
NAMES = "x, lengths, state"
INPUTS = f"torch.randn({ROWS}, {COLS}), torch.full(({ROWS},), {COLS}), torch.zeros({ROWS}, {COLS})"  # a state of zeros
SECRETS = (826, 1007, 1593, 2096, 2383)
"""Five of the ten among the first 4000 whole numbers with which `tweaked_0` meets a row that is sampled, and `tweaked_1`
an element that is, or one beyond its row's length."""
BODY = f"return (x + state) * (torch.arange({COLS}) < lengths[:, None])"


@pytest.fixture(scope="module")
def gated() -> Made:
    return made(NAMES, INPUTS, BODY)


def out(x: torch.Tensor, lengths: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
    return (x + state) * (torch.arange(COLS) < lengths[:, None])


def shows(inputs: Tensors) -> bool:
    """Return whether a kernel is wrong that leaves the state out while a sample of it is zero."""
    x, lengths, state = inputs
    looks_zero = not bool(state.flatten()[::STEP].any())
    return looks_zero and not torch.equal(out(x, lengths, state), out(x, lengths, torch.zeros_like(state)))


@pytest.mark.parametrize("secret", SECRETS)
def test_what_one_tweak_hides_another_shows(gated: Made, secret: int) -> None:
    gated.source.draw_from(secret.to_bytes(2, "big"))
    first, second, third = (shows(gated.book.contents.of(name)[0]) for name in TWEAKED)
    assert not (first or second)
    assert third
