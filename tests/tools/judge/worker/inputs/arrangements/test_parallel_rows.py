"""Half of an input's rows become rows of other arguments, times numbers of either sign; structure stays."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest
import torch

from ridgeline.tools.judge.worker.inputs.arrangements.parallel_rows import (
    AMOUNTS,
    ANY_AMOUNT,
    sources_of_rows,
    with_parallel_rows,
)
from ridgeline.tools.judge.worker.inputs.input_form import InputForm

NEXT_TO_IT = 1 + 2.0**-20
SIZES = (1.0, 0.75, 0.7, NEXT_TO_IT)
PLAIN = InputForm.of(torch.randn(4, 4), torch.randn(4, 4))
WHOLE = InputForm.of(torch.randint(0, 9, (16,)), torch.randint(0, 9, (16,)))


def drawn(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed or sum(shape)))


def sources_of(*inputs: torch.Tensor, **parameters: torch.Tensor) -> dict[int, tuple[int | str, ...]]:
    forms = [PLAIN if t.is_floating_point() else WHOLE for t in inputs]
    return sources_of_rows(inputs, parameters, forms, range(len(inputs)))


def arranged(
    *inputs: torch.Tensor, amount: tuple[float, int] = AMOUNTS[0], parameters: Mapping[str, torch.Tensor] | None = None
) -> tuple[torch.Tensor, ...]:
    sources = sources_of(*inputs, **(parameters or {}))
    return with_parallel_rows(
        inputs,
        torch.Generator().manual_seed(3),
        sources=sources,
        chosen=dict.fromkeys(sources, amount),
        parameters=lambda: parameters or {},
    )


def factor_of(row: torch.Tensor, others: torch.Tensor) -> tuple[int, float] | None:
    """Return which of the others a row is, times which number; None where it is none times one of those that come."""
    for place, other in enumerate(others):
        factor = float((row.double() @ other.double()) / (other.double() @ other.double()))
        for size in SIZES:
            by = math.copysign(2.0 ** round(math.log2(abs(factor) / size)), factor) * size
            if abs(factor / by - 1) < 2e-7 and torch.equal(row, other * by):
                return place, by
    return None


def test_half_of_the_rows_are_rows_of_an_earlier_input_by_numbers_of_either_sign() -> None:
    x, y = drawn(24, 16), drawn(40, 16)
    first, second = arranged(x, y)
    assert torch.equal(first, x)
    changed = (second != y).any(-1)
    found = [factor_of(row, x) for row in second[changed]]
    assert int(changed.sum()) == 20 and None not in found
    factors = [factor for _, factor in filter(None, found)]
    assert {1.0} < set(factors) and {factor < 0 for factor in factors} == {True, False}
    own = [
        place % 24 == row % 24 for (place, _), row in zip(filter(None, found), changed.nonzero().flatten(), strict=True)
    ]
    assert 0 < sum(own) < len(own)


def test_rows_are_of_several_sizes_and_half_of_those_that_equal_another_are_so_but_for_last_bits() -> None:
    x, y = drawn(256, 16), drawn(256, 16, seed=7)
    _, second = arranged(x, y, amount=ANY_AMOUNT)
    factors = [factor for _, factor in filter(None, (factor_of(row, x) for row in second[(second != y).any(-1)]))]
    assert len(factors) == 128
    assert {math.frexp(abs(factor))[0] for factor in factors} >= {0.5, 0.75, 0.7}
    assert 8 <= factors.count(1.0) <= 40 and 8 <= factors.count(NEXT_TO_IT) <= 40


@pytest.mark.parametrize("amount", AMOUNTS)
def test_no_more_rows_are_others_or_equal_them_than_the_amount_says(amount: tuple[float, int]) -> None:
    x, y = drawn(256, 8), drawn(256, 8, seed=7)
    _, second = arranged(x, y, amount=amount)
    changed = (second != y).any(-1)
    assert int(changed.sum()) == min(128, amount[0])
    equal = [factor_of(row, x) for row in second[changed]]
    are_equal = [found is not None and found[1] in (1.0, NEXT_TO_IT) for found in equal]
    assert sum(are_equal) == min(amount[1], math.ceil(changed.sum() / 3))


def test_rows_are_those_that_whole_numbers_name_and_what_they_name_comes_first() -> None:
    x, labels, weights = drawn(32, 8), torch.randint(0, 64, (32,)), drawn(64, 8)
    assert sources_of(x, labels, weights) == {0: (2,)}
    changed = arranged(x, labels, weights)[0]
    found = [(row, factor_of(changed[row], weights)) for row in range(32) if not torch.equal(changed[row], x[row])]
    named = [row for row, one in found if one and one[0] == labels[row]]
    assert len(found) == 16 and len(named) >= 5


def test_matrices_among_the_parameters_are_sources_and_vectors_are_none() -> None:
    x, parameters = drawn(2, 9, 8), {"weight": drawn(12, 8), "bias": drawn(8), "other": drawn(12, 9)}
    assert sources_of(x, **parameters) == {0: ("weight",)}
    (changed,) = arranged(x, parameters=parameters)
    rows = changed.view(-1, 8)[(changed != x).any(-1).flatten()]
    assert len(rows) == 9 and all(factor_of(row, parameters["weight"]) for row in rows)


def test_each_of_a_batch_has_its_own() -> None:
    x, y = drawn(3, 8, 16), drawn(3, 12, 16)
    _, second = arranged(x, y)
    for batch in range(3):
        rows = second[batch][(second[batch] != y[batch]).any(-1)]
        assert all(factor_of(row, x[batch]) for row in rows)


def test_what_has_one_sign_keeps_it_and_a_single_row_changes() -> None:
    x, y = drawn(1, 8).abs(), drawn(1, 8, seed=2).abs()
    _, second = arranged(x, y)
    assert not torch.equal(second, y) and float(second.min()) > 0
    assert sources_of(drawn(4, 8), drawn(5, 8).abs()) == {}


def test_structure_stays() -> None:
    x = drawn(8, 8)
    mask = InputForm.of(torch.eye(8), torch.eye(8).flip(0))
    for other, form in ((x + x.mT, PLAIN), (x.tril(), PLAIN), (torch.eye(8), mask), (x.double(), PLAIN), (drawn(8, 9), PLAIN),
                        (drawn(8), PLAIN), (torch.full((8, 8), torch.inf), PLAIN), (torch.ones(0, 8), PLAIN)):  # fmt: skip
        found = sources_of_rows((x, other), {}, (PLAIN, form), (0, 1))
        assert found.get(1, ()) == ((0,) if other.shape == (8,) else ())
