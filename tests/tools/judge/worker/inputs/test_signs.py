"""Other signs: sizes, zeros and symmetry stay; some rows are negative throughout, and few signs are few."""

from __future__ import annotations

import pytest
import torch

from ridgeline.tools.judge.worker.inputs.signs import (
    SIGNS,
    have_one_sign,
    is_of_one_sign,
    with_few_signs,
    with_mixed_signs,
    with_opposite_signs,
)


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(1)


@pytest.mark.parametrize("trial", SIGNS)
@pytest.mark.parametrize("shape", [(), (1,), (2,), (64,), (8, 64), (1, 64), (4, 1), (3, 4, 16)])
def test_sizes_stay_and_some_value_is_negated(trial: str, shape: tuple[int, ...]) -> None:
    positive = torch.rand(shape, generator=generator()) + 0.5
    signed = SIGNS[trial](positive, generator())
    assert torch.equal(signed.abs(), positive) and bool((signed < 0).any())


def test_mixed_signs_are_both_in_every_vector_and_some_rows_are_negative_throughout() -> None:
    assert all(
        {-1.0, 1.0} == set(with_mixed_signs(torch.ones(2), torch.Generator().manual_seed(i)).tolist())
        for i in range(20)
    )
    rows = (with_mixed_signs(torch.ones(64, 32), generator()) < 0).double().mean(dim=1)
    assert bool((rows == 1).any()) and bool((rows == 0).any()) and bool(((rows > 0.2) & (rows < 0.8)).any())


def test_few_signs_are_one_row_and_one_value() -> None:
    negated = with_few_signs(torch.ones(64, 32), generator()) < 0
    assert 32 <= int(negated.sum()) <= 33 and int(negated.all(dim=1).sum()) == 1
    assert int((with_few_signs(torch.ones(64), generator()) < 0).sum()) == 1


@pytest.mark.parametrize("trial", SIGNS)
def test_symmetric_and_definite_stays_so(trial: str) -> None:
    half = torch.rand(16, 16, generator=generator())
    matrix = half @ half.mT + torch.eye(16)
    signed = SIGNS[trial](matrix, generator())
    assert torch.equal(signed, signed.mT) and float(torch.linalg.eigvalsh(signed)[0]) > 0
    assert trial == "opposite_signs" or not torch.equal(signed, matrix)


def test_opposite_signs_are_all_negative() -> None:
    assert bool((with_opposite_signs(torch.rand(9, 9) + 0.1, generator()) < 0).all())


@pytest.mark.parametrize(
    ("tensor", "expected"),
    [
        (torch.rand(9), True),
        (-torch.rand(9), True),
        (torch.relu(torch.linspace(-1, 1, 9)), True),
        (torch.ones(9), True),
        (torch.linspace(-1, 1, 9), False),
        (torch.zeros(9), False),
        (torch.tensor([0.0, 1.0, 1.0]), False),  # a mask
        (torch.tensor([0.0, -torch.inf]), False),  # a mask of infinities
        (torch.arange(9), False),
        (torch.empty(0), False),
    ],
)
def test_one_sign_is_that_of_floating_values_which_are_no_mask(tensor: torch.Tensor, expected: bool) -> None:
    assert is_of_one_sign(tensor) is expected


def test_draws_of_changing_sign_are_not_of_one() -> None:
    assert not have_one_sign((torch.tensor([0.5]), torch.tensor([-0.5])))
    assert have_one_sign((torch.tensor([0.5]), torch.tensor([0.7])))
