"""Whole rows are outliers where the reference gives no number beside single ones, and there alone."""

from __future__ import annotations

import pytest
import torch
from tests.tools.judge.worker.made import Made, made

from ridgeline.tools.judge.worker.grading.outputs.compare import compare
from ridgeline.tools.records.trial_names import FEW_OUTLIERS, OUTLIERS

TRIALS = (OUTLIERS, FEW_OUTLIERS)


def logarithms(dim: int, shape: str = "32, 8, 64") -> Made:
    return made("x", f"torch.randn({shape})", f"return torch.log(torch.softmax(x, {dim}))")


@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("trial", TRIALS)
def test_exponentials_without_the_maximum_are_beyond_float32_and_those_with_it_are_right(trial: str, dim: int) -> None:
    found = logarithms(dim)
    assert trial in found.domain.names
    case = found.book.case(trial)
    (x,) = case.inputs
    assert not bool(torch.isfinite(x - x.exp().sum(dim, keepdim=True).log()).all())
    most = x.amax(dim, keepdim=True)
    added = (x - most).exp().sum(dim, keepdim=True).log()
    for output in (x - most - added, x - (most + added)):
        assert compare(output, case.expected[0]).errors.overall < 5e-6


def test_rows_are_lifted_as_a_whole_and_few_of_them() -> None:
    found = logarithms(-1, "64, 64")
    for trial, most in ((OUTLIERS, 32), (FEW_OUTLIERS, 4)):
        lowest = found.book.contents.of(trial)[0][0].amin(-1)
        assert 1 <= int((lowest > 80).sum()) <= most and float(lowest.max()) < 125


@pytest.mark.parametrize(
    ("inputs", "body"),
    [
        ("torch.randn(32, 64)", "torch.exp(x)"),
        ("torch.randn(32, 64).bfloat16()", "torch.log(torch.softmax(x.float(), -1))"),
        ("(lambda t: t + t.mT)(torch.randn(32, 32))", "torch.log(torch.softmax(x, -1))"),
    ],
)  # fmt: skip
def test_what_takes_no_such_rows_has_no_outliers(inputs: str, body: str) -> None:
    found = made("x", inputs, f"return {body}")
    assert OUTLIERS in found.domain.skipped and not found.source.lifted_dims


def test_what_takes_single_outliers_has_these() -> None:
    found = made("x", "torch.randn(32, 64)", "return torch.softmax(x, -1)")
    assert not found.source.lifted_dims
    assert float(found.book.contents.of(OUTLIERS)[0][0].abs().amax()) > 180


def test_what_loses_its_digits_where_rows_are_lifted_has_none() -> None:
    body = "torch.log(torch.softmax(x, -1)) + (x.square().mean(-1, keepdim=True) - x.mean(-1, keepdim=True) ** 2)"
    assert OUTLIERS in made("x", "torch.randn(32, 64)", f"return {body}").domain.skipped
