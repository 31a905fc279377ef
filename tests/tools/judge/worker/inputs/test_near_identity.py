"""Square matrices near a multiple of the identity."""

from __future__ import annotations

import pytest
import torch

from ridgeline.tools.judge.worker.inputs.near_identity import is_square, may_be_near_identity, near_identity


@pytest.mark.parametrize(
    ("shape", "is_one"),
    [((8, 8), True), ((3, 8, 8), True), ((4, 4), True), ((32, 8), False), ((8, 32), False)],
)
def test_one_square_matrix_or_up_to_four_beside_each_other(shape: tuple[int, ...], is_one: bool) -> None:
    assert may_be_near_identity(torch.Size(shape))
    assert is_square(torch.Size(shape)) is is_one


@pytest.mark.parametrize("shape", [(8,), (3, 3), (12, 8), (40, 8), (2, 2, 8, 8), ()])
def test_no_filter_and_no_other_shape(shape: tuple[int, ...]) -> None:
    assert not may_be_near_identity(torch.Size(shape))


def test_a_state_stays_as_large_under_a_matrix_of_either_sign() -> None:
    matrix = torch.randn(16, 16, generator=torch.Generator().manual_seed(1))
    near = near_identity(matrix, 64.0)
    assert torch.equal(near.diagonal(), torch.full((16,), 1 - 1 / 64))
    others = ~torch.eye(16, dtype=torch.bool)
    assert torch.equal(near[others], matrix[others] / 64)


@pytest.mark.parametrize("sign", [1, -1])
def test_most_of_a_row_s_sum_is_its_diagonal_where_numbers_have_one_sign(sign: int) -> None:
    matrix = sign * (0.5 + torch.rand(16, 16, generator=torch.Generator().manual_seed(1)))
    near = near_identity(matrix, 64.0)
    assert torch.equal(near.diagonal(), torch.full((16,), sign * 16.0)), "a power of two near the sum of a row"
    assert float((near.diagonal() / near.sum(1)).min()) > 0.97


def test_matrices_beside_each_other_have_a_diagonal_each() -> None:
    matrix = torch.randn(3, 32, 8, generator=torch.Generator().manual_seed(1))
    for block in near_identity(matrix, 4.0).unflatten(1, (4, 8)).flatten(0, 1):
        assert torch.equal(block.diagonal(), torch.full((8,), 0.75))
    for block in near_identity(matrix.mT.contiguous(), 4.0).unflatten(2, (4, 8)).movedim(2, 0).flatten(0, 1):
        assert torch.equal(block.diagonal(), torch.full((8,), 0.75))


def test_zeros_stay_beside_the_diagonal() -> None:
    near = near_identity(torch.zeros(8, 8), 4.0)
    assert torch.equal(near, 0.75 * torch.eye(8))
