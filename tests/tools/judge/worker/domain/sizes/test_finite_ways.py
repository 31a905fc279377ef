"""Sizes at which a result on the way is not finite are refused, though the output does not show it."""

from __future__ import annotations

import torch
from tests.tools.judge.worker.made import made_of

from ridgeline.tools.judge.worker.domain.sizes.finite_ways import leaves_range

DECAYS = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.log_rate = nn.Parameter(torch.rand(4) * 2 + 1)
        self.gain = nn.Parameter(torch.randn(4))

    def forward(self, x):
        decay, state, states = torch.exp(-torch.exp(self.log_rate)), torch.zeros(4), []
        for row in x:
            state = decay * state + row
            states.append(state)
        return torch.stack(states) * self.gain


def get_inputs():
    return [torch.randn(32, 4)]


def get_init_inputs():
    return []
"""


def test_a_rate_beyond_the_range_is_refused_though_the_decay_is_zero() -> None:
    found = made_of(DECAYS)
    sized = [trial for trial in found.domain.names if trial.startswith(("uneven", "large", "raised"))]
    assert "uneven_0" in sized
    for trial in sized:
        rate = found.book.case(trial).parameters["log_rate"].float()
        assert bool(torch.isfinite(torch.exp(rate)).all()), trial


def test_infinities_that_are_given_or_written_are_not_lost_on_the_way() -> None:
    numbers = torch.randn(4, 4)
    assert leaves_range(lambda: torch.exp(-torch.exp(numbers + 100)))
    assert not leaves_range(lambda: torch.softmax(numbers.masked_fill(numbers < 0, float("-inf")), -1))
