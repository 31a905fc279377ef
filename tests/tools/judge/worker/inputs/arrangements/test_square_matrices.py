"""Square matrices near a multiple of the identity."""

from __future__ import annotations

import pytest
import torch

from ridgeline.tools.judge.worker.inputs.arrangements.square_matrices import (
    is_square,
    matrix_axes,
    near_identity,
    with_band,
    with_diagonals_of,
    with_large_diagonals,
)


@pytest.mark.parametrize(
    ("shape", "axes", "is_one"),
    [
        ((8, 8), (0, 1), True),
        ((3, 3), (0, 1), True),
        ((3, 8, 8), (1, 2), True),
        ((8, 8, 8), (1, 2), True),
        ((16, 8, 16), (0, 2), True),
        ((32, 8), (0, 1), False),
        ((2, 8, 32), (1, 2), False),
        ((2, 4, 8, 8), (2, 3), False),
        ((64, 64, 3, 3), (0, 1), False),
    ],
)
def test_one_square_matrix_or_up_to_four_beside_each_other(
    shape: tuple[int, ...], axes: tuple[int, int], is_one: bool
) -> None:
    assert matrix_axes(torch.Size(shape)) == axes
    assert is_square(torch.Size(shape)) is is_one, "of an input"


@pytest.mark.parametrize("shape", [(8,), (12, 8), (40, 8), (3, 6), (64, 32, 3, 3), (2, 2, 2, 8, 8), ()])
def test_no_filter_and_no_other_shape(shape: tuple[int, ...]) -> None:
    assert matrix_axes(torch.Size(shape)) is None


def test_states_and_next_states_may_lie_on_either_side_of_actions() -> None:
    near = near_identity(0.5 + torch.rand(16, 8, 16, generator=torch.Generator().manual_seed(1)), 64.0)
    for action in near.unbind(1):
        assert torch.equal(action.diagonal(), torch.full((16,), 16.0))


def test_a_state_goes_on_to_another_one_where_the_diagonal_is_shifted() -> None:
    matrix = torch.randn(8, 8, generator=torch.Generator().manual_seed(1))
    near = near_identity(matrix, 4.0, shift=8 * 5 + 3)
    assert torch.equal(near[torch.arange(8), (torch.arange(8) + 3) % 8], torch.full((8,), 0.75))
    symmetric, triangular = matrix + matrix.mT, matrix.tril()
    assert torch.equal(near_identity(symmetric, 4.0, shift=3), near_identity(symmetric, 4.0))
    assert torch.equal(near_identity(triangular, 4.0, shift=3), near_identity(triangular, 4.0))


def test_zeros_that_are_structure_stay_on_a_diagonal_too() -> None:
    near = near_identity(torch.ones(8, 8).tril(-1), 4.0)
    assert not bool(near.diagonal().any())


def test_large_diagonals_stand_among_usual_numbers() -> None:
    matrix = torch.randn(8, 8, generator=torch.Generator().manual_seed(1))
    large = with_large_diagonals(matrix, 24.0)
    assert torch.equal(large.diagonal(), torch.full((8,), 12.0))
    others = ~torch.eye(8, dtype=torch.bool)
    assert torch.equal(large[others], matrix[others])
    positive = matrix.abs() + 0.5
    usual = near_identity(positive, 2.0).diagonal()
    assert torch.equal(with_large_diagonals(positive, 20.0).diagonal(), 1024 * usual)


def test_diagonals_stay_where_other_numbers_move() -> None:
    near = near_identity(torch.randn(8, 8, generator=torch.Generator().manual_seed(1)), 256.0)
    kept = with_diagonals_of(near, near * (1 - 2.0**-10))
    assert torch.equal(kept.diagonal(), near.diagonal())
    assert int((kept == near).sum()) == 8


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_numbers_of_few_bits_move_off_the_diagonals(dtype: torch.dtype) -> None:
    matrix = torch.randn(16, 16, generator=torch.Generator().manual_seed(1)).to(dtype)
    near = near_identity(matrix, 4.0, shift=3)
    other = torch.full_like(near, 7.0)
    kept = with_diagonals_of(near, other, shift=3)
    places = near == 1 - 1 / 4
    assert torch.equal(kept[places], near[places]) and int((kept != 7).sum()) == 16


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


def test_a_mask_of_infinities_stays_as_it_is() -> None:
    mask = torch.full((8, 8), -torch.inf).triu(1)
    assert near_identity(mask, 4.0) is mask and with_large_diagonals(mask, 24.0) is mask


def test_nothing_is_made_of_an_empty_tensor() -> None:
    assert near_identity(torch.empty(8, 8, 0), 4.0).shape == (8, 8, 0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_no_diagonal_is_beyond_its_type(dtype: torch.dtype) -> None:
    largest = torch.finfo(dtype).max
    matrix = torch.full((64, 64), largest / 4096, dtype=dtype)
    large = with_large_diagonals(matrix, 24.0)
    assert bool(torch.isfinite(large).all()) and float(large.max()) >= float(matrix.max())
    assert dtype is torch.float64 or float(large.max()) == largest


def _beyond(rows: int) -> torch.Tensor:
    return torch.ones(rows, rows).triu(2).bool() | torch.ones(rows, rows).tril(-2).bool()


@pytest.mark.parametrize("is_high", [False, True])
def test_numbers_beyond_neighbours_of_a_diagonal_are_moved_to_one_side(is_high: bool) -> None:
    generator = torch.Generator().manual_seed(1)
    for matrix in (torch.randn(16, 16, generator=generator), 0.5 + torch.rand(16, 16, generator=generator)):
        banded, far = with_band(matrix, 64.0, is_high=is_high), _beyond(16)
        assert torch.equal(banded[~far], matrix[~far])
        above, below = (banded, matrix) if is_high else (matrix, banded)
        assert float((above - below)[far].min()) > 0
        assert torch.equal(
            with_band(matrix + matrix.mT, 64.0, is_high=is_high).mT,
            with_band(matrix + matrix.mT, 64.0, is_high=is_high),
        )


def test_matrices_beside_each_other_have_a_band_each() -> None:
    banded = with_band(torch.ones(8, 24), 4.0, is_high=False)
    for matrix in banded.split(8, dim=1):
        assert torch.equal(matrix == 1, ~_beyond(8))


def test_zeros_that_are_structure_stay_beyond_a_band_and_no_number_leaves_its_type() -> None:
    assert torch.equal(with_band(torch.ones(8, 8).tril(), 4.0, is_high=True).triu(1), torch.zeros(8, 8))
    assert bool(with_band(torch.full((8, 8), 3e38), 256.0, is_high=True).isfinite().all())


@pytest.mark.parametrize(("low", "high", "nearest", "furthest"), [(1, 50, 1, 50), (-9, 5, 0, -9), (-50, -1, -1, -50)])
def test_whole_numbers_are_near_a_multiple_of_the_identity_within_their_range(
    low: int, high: int, nearest: int, furthest: int
) -> None:
    matrix = torch.randint(low, high + 1, (64, 64), generator=torch.Generator().manual_seed(1))
    near, others = near_identity(matrix, 256.0, shift=3), ~torch.eye(64, dtype=torch.bool).roll(3, 1)
    assert near.dtype is matrix.dtype and set(near[others].tolist()) == {nearest}
    assert set(near[~others].tolist()) == {furthest}
    halved = near_identity(matrix, 2.0)[~torch.eye(64, dtype=torch.bool)]
    assert low <= int(halved.min()) and int(halved.max()) <= high and halved.unique().numel() > 4


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int32, torch.int64])
@pytest.mark.parametrize("is_high", [False, True])
def test_whole_numbers_beyond_neighbours_are_at_one_end_of_their_range(dtype: torch.dtype, is_high: bool) -> None:
    matrix = torch.randint(1, 200, (3, 64, 64), generator=torch.Generator().manual_seed(1)).to(dtype)
    banded, far = with_band(matrix, 256.0, is_high=is_high), _beyond(64)
    assert set(banded[:, far].flatten().tolist()) == {199 if is_high else 1}
    assert set(banded[:, ~far].flatten().tolist()) == {1 if is_high else 199}


def test_zeros_and_the_symmetry_of_whole_numbers_stay() -> None:
    matrix = torch.randint(1, 50, (16, 16), generator=torch.Generator().manual_seed(1))
    triangular, symmetric = matrix.tril(), matrix + matrix.mT
    for change in (lambda t: near_identity(t, 16.0, shift=3), lambda t: with_band(t, 16.0, is_high=True)):
        assert torch.equal(change(triangular).triu(1), torch.zeros_like(matrix))
        assert torch.equal(change(symmetric), change(symmetric).mT)


def test_whole_numbers_further_apart_than_int64_holds_stay() -> None:
    matrix = torch.full((8, 8), torch.iinfo(torch.int64).min)
    matrix[0] = torch.iinfo(torch.int64).max
    assert near_identity(matrix, 4.0) is matrix and with_band(matrix, 4.0, is_high=True) is matrix
