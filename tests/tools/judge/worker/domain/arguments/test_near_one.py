"""Inputs are brought near one in size where much of an output vanishes otherwise, and there alone."""

from __future__ import annotations

import pytest
import torch
from tests.tools.judge.worker.made import made

from ridgeline.tools.judge.worker.grading.outputs.compare import compare
from ridgeline.tools.judge.worker.grading.outputs.vanishing import vanishes
from ridgeline.tools.records.trial_names import NEAR_ONE

LENGTH = 2000
PRODUCTS = made("x", f"torch.randn(16, {LENGTH})", "return x.cumprod(1)")


def test_running_products_of_a_whole_row_are_numbers_in_one_trial() -> None:
    assert NEAR_ONE in PRODUCTS.domain.names
    case, nominal = PRODUCTS.book.case(NEAR_ONE), PRODUCTS.book.case("nominal_0")
    assert vanishes(nominal.expected[0]) and not vanishes(case.expected[0])
    assert torch.equal(case.inputs[0].sign(), PRODUCTS.book.contents.of(NEAR_ONE)[0][0].sign())


@pytest.mark.parametrize("made_of", [60, 400])
def test_who_leaves_out_what_vanishes_is_wrong_there(made_of: int) -> None:
    def first_columns(x: torch.Tensor) -> torch.Tensor:
        return torch.cat((x[:, :made_of].cumprod(1), torch.zeros_like(x[:, made_of:])), 1)

    for trial, is_seen in (("nominal_0", False), (NEAR_ONE, True)):
        case = PRODUCTS.book.case(trial)
        error = compare(first_columns(case.inputs[0]), case.expected[0]).errors.overall
        assert (error > 1e-2) is is_seen
        assert compare(case.inputs[0].cumprod(1), case.expected[0]).errors.overall < 1e-5


@pytest.mark.parametrize(
    "body", ["return torch.softmax(x, -1)", "return torch.relu(x)", "return x * (x > 3)", "return x.amax(-1) > 3"]
)
def test_other_outputs_need_no_such_trial(body: str) -> None:
    assert NEAR_ONE not in made("x", "torch.randn(16, 256)", body).domain.names


def test_what_vanishes_whatever_the_size_has_none() -> None:
    found = made("x", "torch.randn(16, 256)", "return x * torch.logspace(0, -200, 256, dtype=x.dtype)")
    assert NEAR_ONE not in found.domain.names and NEAR_ONE not in found.domain.skipped
