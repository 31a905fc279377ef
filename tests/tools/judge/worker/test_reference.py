"""The reference's inputs: what a seed decides, and what a draw does not spend its time on."""

from __future__ import annotations

import traceback

import pytest
import torch

from ridgeline.tools.judge.worker.reference import Reference

DRAWS = """import random
import numpy
import torch
from torch import nn
class Model(nn.Module):
    def forward(self, x, y, z):
        return x + y + z
def get_inputs():
    return [torch.randn(4), torch.full((4,), random.random()), torch.from_numpy(numpy.random.rand(4)).float()]
def get_init_inputs():
    return []
"""


def test_a_seed_decides_the_draws_of_every_generator_as_torchs_own_function_does() -> None:
    reference = Reference(DRAWS)
    first, again, other = (reference.draw_inputs(seed) for seed in (3, 3, 4))
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not any(torch.equal(a, b) for a, b in zip(first, other, strict=True))
    torch.manual_seed(3)
    assert torch.equal(first[0], torch.randn(4))


def test_a_draw_formats_no_stack_for_devices_that_nobody_uses(monkeypatch: pytest.MonkeyPatch) -> None:
    reference = Reference(DRAWS)
    formatted: list[int] = []
    monkeypatch.setattr(traceback, "format_stack", lambda *_, **__: formatted.append(1) or [])
    reference.draw_inputs(3)
    assert formatted == []
