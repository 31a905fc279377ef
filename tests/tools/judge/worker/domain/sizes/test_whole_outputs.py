"""Arguments are larger and smaller beside outputs of whole numbers too, which a choice makes of what settles."""

from __future__ import annotations

import pytest
import torch
from tests.tools.judge.worker.made import made, made_of

from ridgeline.tools.judge.worker.domain.alike import MERELY, Likeness, difference, likeness
from ridgeline.tools.records.trial_names import (
    BETWEEN,
    LARGE_INPUTS,
    LARGE_VECTORS,
    QUIET,
    RAISED_VECTORS,
    SIZED,
    UNEVEN,
)

STEPS = 160
CHOSEN = f"""
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(16))
        self.codes = nn.Parameter(torch.randn(64, 16) / 2)

    def forward(self, x):
        kept = torch.sigmoid(self.bias)
        state = torch.zeros_like(x[0])
        for step in x:
            state = kept * state + (1 - kept) * step
        return torch.cdist(state, self.codes).argmin(-1)


def get_inputs():
    return [torch.randn({STEPS}, 64, 16)]


def get_init_inputs():
    return []
"""


def test_a_choice_of_what_gates_keep_needs_every_step_and_rounding_changes_few() -> None:
    found = made_of(CHOSEN)
    assert {LARGE_VECTORS, RAISED_VECTORS} <= set(found.domain.names)

    def chosen(last: int, name: str, dtype: torch.dtype = torch.float64) -> torch.Tensor:
        case = found.book.case(name)
        kept, codes = (case.parameters[n].to(dtype) for n in ("bias", "codes"))
        kept, x = torch.sigmoid(kept), case.inputs[0].to(dtype)
        state = torch.zeros_like(x[0])
        for step in x[STEPS - last :]:
            state = kept * state + (1 - kept) * step
        return torch.cdist(state, codes).argmin(-1)

    for name, is_seen in (("nominal_0", False), (RAISED_VECTORS, True)):
        expected = found.book.case(name).expected[0].values
        assert (difference(expected.long(), chosen(56, name)) > 1 / 16) is is_seen
        assert difference(expected.long(), chosen(STEPS, name, torch.float32)) < 1 / 32


@pytest.mark.parametrize("body", ["return x.argmax(-1)", "return torch.bincount((x > 0).sum(-1), minlength=257)"])
def test_inputs_whose_size_changes_no_choice_stay(body: str) -> None:
    names = made("x", "torch.randn(64, 256)", body).domain.names
    assert not [name for name in names if name in SIZED and name not in (*BETWEEN, *QUIET, *UNEVEN)]


def test_places_that_are_counted_are_of_other_sizes() -> None:
    body = "return torch.histc(x, 32, -4.0, 4.0).long()"
    assert LARGE_INPUTS in made("x", "torch.randn(64, 256)", body).domain.names


def test_whole_numbers_differ_by_the_share_of_unequal_ones_or_by_a_part_of_their_size() -> None:
    indices = torch.arange(1, 101)
    others = indices.clone()
    others[:10] = 99
    assert difference(indices, indices.clone()) == 0
    assert difference(indices, others) == pytest.approx(0.1)
    assert difference(indices * 1000, indices * 1000 + 1) < 1e-4
    assert difference(torch.zeros(8, dtype=torch.bool), torch.ones(8, dtype=torch.bool)) == 1
    assert difference(torch.empty(0, dtype=torch.long), torch.empty(0, dtype=torch.long)) == 0
    assert likeness((others,), (indices,)) is None and likeness((indices,), (indices,)) is Likeness.SAME
    assert difference(torch.tensor([1 << 40]), torch.tensor([(1 << 40) + 1])) < MERELY
