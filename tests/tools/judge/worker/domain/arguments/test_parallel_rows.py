"""Rows equal other arguments' where an output is more than a product of them, as many as leave it to no rounding."""

from __future__ import annotations

import pytest
import torch
from tests.tools.judge.worker.grading.judged import Judged
from tests.tools.judge.worker.made import Made, made

from ridgeline.tools.judge.worker.domain.sign_trials import NEARLY_INFINITE, objection_to_signs
from ridgeline.tools.judge.worker.grading.cases.case import non_finite_of
from ridgeline.tools.judge.worker.grading.outputs.compare import compare
from ridgeline.tools.judge.worker.inputs.arrangements.parallel_rows import AMOUNTS, Amount
from ridgeline.tools.records.trial_names import MORE_PARALLEL_ROWS, PARALLEL_ROWS

PAIRS = "torch.randn(96, 32), torch.randn(128, 32)"
UNITS = "u, v = (t / t.norm(dim=-1, keepdim=True) for t in (x, y))"
CHORDS = "(2 - 2 * u @ v.mT).clamp(min=0).sqrt()"
DISTANCES = "return (x.square().sum(-1)[:, None] + y.square().sum(-1) - 2 * x @ y.mT).clamp(min=0).sqrt()"


def amount_of(found: Made) -> Amount | None:
    arrangement = found.source.arrangements.get(PARALLEL_ROWS)
    return None if arrangement is None else next(iter(arrangement.keywords["chosen"].values()))  # type: ignore[attr-defined]


def test_a_difference_below_zero_shows() -> None:
    found = made("x, y", PAIRS, DISTANCES)
    for name, is_seen in (("nominal_0", False), (PARALLEL_ROWS, True)):
        x, y = found.book.case(name).inputs
        squares = x.double().square().sum(-1).float()[:, None] + y.double().square().sum(-1).float()
        assert bool((squares - 2 * x @ y.mT < 0).any()) is is_seen


def test_an_honest_kernel_of_distances_is_right_beside_equal_rows() -> None:
    case = made("x, y", PAIRS, DISTANCES).book.case(PARALLEL_ROWS)
    x, y = case.inputs
    assert compare((x[:, None] - y).norm(dim=-1), case.expected[0]).errors.overall < 1e-5


def test_an_angle_to_a_weight_is_none_or_a_half_turn() -> None:
    body = ("w = weights / weights.norm(dim=-1, keepdim=True)", "cosine = (x / x.norm(dim=-1, keepdim=True) * w[own]).sum(-1)",
            "return torch.where(cosine > -0.9, cosine, 2 * cosine + 0.9)")  # fmt: skip
    inputs = "torch.randn(64, 32), torch.randint(0, 96, (64,)), torch.randn(96, 32)"
    x, own, weights = made("x, own, weights", inputs, *body).book.case(PARALLEL_ROWS).inputs
    cosine = torch.cosine_similarity(x, weights[own])
    assert int((cosine > 0.99).sum()) >= 5 and int((cosine < -0.99).sum()) >= 2


@pytest.mark.parametrize(
    ("body", "amount"),
    [
        (DISTANCES, AMOUNTS[0]),
        ("return (x @ y.mT).tanh()", AMOUNTS[0]),
        ("return 1 / (x[:, None] - y).square().sum(-1)", AMOUNTS[-1]),
        ("return x @ y.mT + 1", None),
        ("return torch.cat((x, 2 * y))", None),
    ],
)
def test_as_many_rows_are_others_as_the_output_takes_and_none_where_it_moves_as_far_as_they_do(
    body: str, amount: Amount | None
) -> None:
    found = made("x, y", PAIRS, body)
    assert amount_of(found) == amount
    assert (PARALLEL_ROWS in found.domain.names) is (amount is not None)


def test_an_input_that_the_reference_refuses_so_is_named() -> None:
    body = ("cosine = torch.cosine_similarity(x[:96], y[:96])", "return (1 - cosine.abs() - 1e-3).log()")
    found = made("x, y", PAIRS, *body)
    assert PARALLEL_ROWS not in found.domain.names and f"{PARALLEL_ROWS} y" in found.domain.skipped


@pytest.mark.parametrize(
    ("body", "has_more"),
    [
        (f"return {CHORDS}", True),
        ("return (1 - (u @ v.mT).square()).clamp(min=0).sqrt(), x.sum()", True),
        ("return (u @ v.mT).clamp(-0.9, 0.9).acos()", False),
        (f"return 1 / ({CHORDS} + 1e-6)", False),
        ("return (2 - 2 * u @ v.mT).sqrt()", False),
        ("return u @ v.mT", False),
    ],
    ids=["chords", "several outputs", "left to no rounding", "next to infinite", "not finite", "a product"],
)
def test_so_many_rows_that_rounding_decides_on_values_are_others_where_the_output_is_finite(
    body: str, *, has_more: bool
) -> None:
    found = made("x, y", PAIRS, UNITS, body)
    assert (MORE_PARALLEL_ROWS in found.domain.names) is has_more
    if has_more:
        x, y = found.book.case(MORE_PARALLEL_ROWS).inputs
        cosine = torch.cosine_similarity(x.double()[:, None], y.double(), dim=-1).abs()
        assert int((cosine > 1 - 1e-9).any(0).sum()) == 64
        u, v = (t / t.norm(dim=-1, keepdim=True) for t in (x, y))
        assert int((1 - (u @ v.mT).square() < 0).sum()) > 8


def test_a_reference_that_is_finite_in_some_draws_alone_has_no_such_trial() -> None:
    found = made("x, y", PAIRS, UNITS, f"return {CHORDS} / ((u @ v.mT)[:, 4].abs().amax() < 0.999)")
    assert MORE_PARALLEL_ROWS not in found.domain.names
    assert PARALLEL_ROWS in found.domain.names


@pytest.mark.parametrize(("margin", "objection"), [(1e-4, ""), (8e-7, NEARLY_INFINITE)])
def test_a_reference_whose_margin_sums_of_plain_kernels_use_up_has_no_such_trial(margin: float, objection: str) -> None:
    body = f"return (1 + {margin} - u @ v.mT).sqrt()"
    found = Judged("x, y", "torch.randn(48, 4096), torch.randn(64, 4096)", UNITS, body)
    sizes = torch.tensor([1, 1.5, 0.7, 2]).repeat(12)[:, None]
    found.source.arrangements[MORE_PARALLEL_ROWS] = lambda inputs, _: (
        inputs[0],
        torch.cat((inputs[0] * sizes, inputs[1][48:])),
    )
    case = found.book.case(MORE_PARALLEL_ROWS)
    assert bool(found.reference.run(case.inputs)[0].isfinite().all())
    assert objection_to_signs(found.reference, found.book, case, non_finite_of(case)) == objection
