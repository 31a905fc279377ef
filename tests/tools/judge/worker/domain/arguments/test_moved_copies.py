"""Which inputs are moved copies of others: those that the reference takes as such, without leaving its output to rounding."""

from __future__ import annotations

import pytest
import torch
from tests.tools.judge.worker.inputs.arrangements.test_moved_copies import copied
from tests.tools.judge.worker.made import Made, made

from ridgeline.tools.records.trial_names import MOVED_COPY

PAIR = "torch.randn(16, 64), torch.randn(16, 64)"
IS_COPY = "max(float(torch.cosine_similarity({}.roll(lag, 1), {}, 1).max()) for lag in range(64)) > 0.9"


def refused(found: Made) -> list[str]:
    """Return what is named as no copy."""
    return [name for name in found.domain.skipped if name.startswith(MOVED_COPY)]


def test_what_the_reference_refuses_as_a_copy_is_named_and_the_others_are_copies() -> None:
    refuses = f"assert not ({IS_COPY.format('a', 'c')})"
    found = made("a, b, c", f"{PAIR}, torch.randn(16, 64)", refuses, "return a * b + c")
    assert copied(found) == {1: 0} and MOVED_COPY in found.domain.names
    assert refused(found) == [f"{MOVED_COPY} c"]


def test_a_reference_that_takes_no_copy_has_no_such_trial() -> None:
    found = made("a, b", PAIR, f"assert not ({IS_COPY.format('a', 'b')})", "return a * b")
    assert not copied(found) and MOVED_COPY not in found.domain.names
    assert refused(found) == [f"{MOVED_COPY} b"]


def test_outputs_that_copies_leave_to_rounding_are_refused() -> None:
    lags = "torch.stack([(a - b.roll(lag, 1)).abs().sum(1) for lag in range(64)]).amin(0)"
    found = made("a, b", PAIR, f"return 1 / ({lags} - 20).clamp(min=0)")
    assert MOVED_COPY not in found.domain.names and refused(found) == [f"{MOVED_COPY} b"]


@pytest.mark.parametrize("body", ["(a - b).square().mean()", "torch.cosine_similarity(a, b)", "a @ b.mT"])
def test_what_is_usually_made_of_a_pair_is_made_of_copies(body: str) -> None:
    found = made("a, b", PAIR, f"return {body}")
    assert MOVED_COPY in found.domain.names and not refused(found)


def test_distances_of_points_that_have_copies_are_as_well_conditioned_as_others() -> None:
    """By the squares of either: a kernel may have them so, and would be wrong beside exact copies."""
    found = made("a, b", "torch.randn(2, 128, 8), torch.randn(2, 128, 8)", "return torch.cdist(a, b).amin(-1).mean(-1)")
    a, b = found.book.case(MOVED_COPY).inputs
    squares = a.square().sum(-1, keepdim=True) + b.square().sum(-1).unsqueeze(1) - 2 * a @ b.mT
    error = squares.clamp(min=0).sqrt().amin(-1).mean(-1) - found.book.case(MOVED_COPY).expected[0].values
    assert float(error.abs().max()) < 1e-5 and not refused(found)
    assert torch.cdist(a, b).amin(-1).mean() < 0.8 * torch.cdist(a, torch.randn_like(b)).amin(-1).mean()


def test_only_what_lies_far_from_the_diagonal_aligns_copies() -> None:
    body = (
        "best = torch.zeros(16, 65, dtype=torch.long)",
        "for row in range(64):",
        "    here = best[:, :-1] + (y == x[:, row : row + 1])",
        "    best = torch.cat((best[:, :1], torch.maximum(here, best[:, 1:])), 1).cummax(1).values",
        "return best[:, -1]",
    )
    found = made("x, y", "torch.randint(9, (16, 64)), torch.randint(9, (16, 64))", *body)
    usual, copies = (found.book.case(name).expected[0].values.double() for name in ("nominal_0", MOVED_COPY))
    assert MOVED_COPY in found.domain.names and float(copies.median()) > float(usual.median())
    assert int((copies > usual.max()).sum()) >= 4


def test_rows_of_which_the_reference_takes_no_copy_stay_and_are_named() -> None:
    is_copy = (
        "any(float(torch.cosine_similarity(a[:, None].roll(lag, 2), a[None], 2).max()) > 0.9 for lag in range(16, 49))"
    )
    found = made("a", "torch.randn(12, 64)", f"assert not {is_copy}", "return a @ a.mT")
    assert not copied(found) and MOVED_COPY not in found.domain.names and refused(found) == [f"{MOVED_COPY} a"]


@pytest.mark.parametrize("body", ["torch.cdist(a, a)", "torch.corrcoef(a)", "(a - a.mean(0)) / a.std(0)", "a @ a.mT"])
def test_what_is_usually_made_of_rows_is_made_of_copies(body: str) -> None:
    found = made("a", "torch.randn(12, 64)", f"return {body}")
    assert copied(found) == {0: 0} and MOVED_COPY in found.domain.names


def test_rows_that_copies_would_leave_to_rounding_stay() -> None:
    lags = "torch.stack([(a[:, None] - a.roll(lag, 1)).abs().sum(-1) for lag in range(64)]).amin(0)"
    found = made("a", "torch.randn(12, 64)", f"return 1 / ({lags} + 99 * torch.eye(12) - 20).clamp(min=0)")
    assert MOVED_COPY not in found.domain.names and refused(found) == [f"{MOVED_COPY} a"]
