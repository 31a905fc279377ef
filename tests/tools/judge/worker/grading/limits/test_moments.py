"""Moments in float32 as a textbook's kernels make them: two passes, one chain, or about a row's first number."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from ridgeline.tools.judge.worker.grading.limits import plain_sums
from ridgeline.tools.judge.worker.grading.limits.lanes import Lanes, Moments
from ridgeline.tools.judge.worker.grading.limits.moments import moments_of
from ridgeline.tools.judge.worker.grading.limits.plain_sums import PLAIN_WAYS, PlainSums


@pytest.mark.parametrize("moments", Moments)
def test_each_way_gives_the_mean_and_the_squares_about_it(moments: Moments) -> None:
    assert any(way.moments is moments for way in PLAIN_WAYS)
    terms = torch.randn(3, 5, 700, generator=torch.Generator().manual_seed(0)).double() + 2
    mean, squares = moments_of(terms, [0, 2], Lanes(16, moments=moments))
    want = terms.mean((0, 2), keepdim=True)
    assert 0 < float((mean - want).abs().max()) < 2e-6
    torch.testing.assert_close(squares, ((terms - want) ** 2).sum((0, 2), keepdim=True), rtol=2e-5, atol=0)


@pytest.mark.parametrize("moments", [Moments.CHAINED, Moments.SHIFTED])
def test_other_moments_lose_otherwise_in_norms_and_leave_products(moments: Moments) -> None:
    x = torch.randn(4, 4096, generator=torch.Generator().manual_seed(0)).double() + 3
    made = []
    for way in (Lanes(16), Lanes(16, moments=moments)):
        with PlainSums(way):
            made.append(torch.nn.functional.layer_norm(x, x.shape[-1:]))
    exact = torch.nn.functional.layer_norm(x, x.shape[-1:])
    assert not torch.equal(*made)
    assert all(0 < float((each - exact).abs().max()) < 1e-4 for each in made)
    with PlainSums(Lanes(16, moments=moments)):
        assert torch.equal(x @ x.mT, torch.mm(x, x.mT).double())


@pytest.mark.parametrize("moments", Moments)
def test_a_deviation_and_a_mean_are_made_at_once(moments: Moments, monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.randn(4, 256, generator=torch.Generator().manual_seed(0)).double() + 3
    calls: list[Moments] = []

    def counted(*given: Any) -> tuple[torch.Tensor, torch.Tensor]:
        calls.append(moments)
        return moments_of(*given)

    monkeypatch.setattr(plain_sums, "moments_of", counted)
    with PlainSums(Lanes(16, moments=moments)):
        deviation, mean = torch.std_mean(x, dim=-1)
        assert len(calls) == 1
        assert torch.equal(deviation, x.std(dim=-1)) and torch.equal(mean, torch.var_mean(x, dim=-1)[1])
