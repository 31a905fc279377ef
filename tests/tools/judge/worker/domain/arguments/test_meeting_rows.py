"""In which references the rows of an input meet: what is made of each row alone, or of their sum, is none of them."""

from __future__ import annotations

import pytest
from tests.tools.judge.worker.made import made

from ridgeline.tools.judge.worker.domain.arguments.meeting_rows import do_rows_meet

X = "torch.randn(12, 64)"
TOKENS = "torch.randint(9, (12, 64))"


def is_met(inputs: str, *body: str) -> bool:
    """Return whether rows of x, the first input, meet."""
    found = made("x, y" if "), " in inputs else "x", inputs, *body)
    return do_rows_meet(0, found.source, found.book, found.domain._reference)


@pytest.mark.parametrize(
    ("inputs", "body"),
    [
        (X, "torch.cdist(x, x)"),
        (X, "x @ x.mT"),
        (X, "(x - x.mean(0)) / x.std(0)"),
        (X, "x.sort(0).values"),
        (X, "x.cummax(0).values[-1]"),
        (f"{X}.bfloat16()", "x @ x.mT"),
        (TOKENS, "(x[:, None] == x).sum(-1)"),
        (TOKENS, "(x[:, None] == x).sum(-1) > 7"),
        (TOKENS, "(x[:, None] == x).double().mean()"),
    ],
)
def test_rows_that_are_compared_meet(inputs: str, body: str) -> None:
    assert is_met(inputs, f"return {body}")


@pytest.mark.parametrize(
    ("inputs", "body"),
    [
        (X, "x.softmax(-1)"),
        (X, "x.square().mean()"),
        (X, "torch.logsumexp(x, -1).sum()"),
        (f"{X}.bfloat16()", "x.exp().sum(0)"),
        (f"{X}, torch.randn(5, 12)", "y @ x"),
        (f"{X}, torch.randn(64, 5)", "(x @ y).relu()"),
        (TOKENS, "(x[:, 1:] == x[:, :-1]).sum(-1)"),
        (TOKENS, "x.flatten().bincount(minlength=9)"),
        (f"{TOKENS}, torch.randn(9, 5)", "y[x].cumsum(1).relu()"),
        (X, "x.log()"),
    ],
)
def test_rows_of_which_each_is_alone_or_a_term_do_not(inputs: str, body: str) -> None:
    assert not is_met(inputs, f"return {body}")


def test_a_mixture_of_draws_that_the_reference_refuses_tells_nothing() -> None:
    same = "torch.randn(1) + torch.rand(12, 64) / 64"
    assert not is_met(same, "assert float(x.max() - x.min()) < 1 / 32", "return x @ x.mT")
