"""A running sum in float32 before a choice may choose what plain sums do, on either side; sums of less are wrong."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from tests.tools.judge.worker.drawn_secrets import SECRETS
from tests.tools.judge.worker.grading.judged import Judged, Kernel

from ridgeline.tools.judge.worker.grading.limits.lanes import Lanes
from ridgeline.tools.judge.worker.grading.limits.plain_sums import PlainSums
from ridgeline.tools.records.trial_names import NOMINAL

ROWS, VOCABULARY = 64, 2048
SAMPLED = (
    "x, u",
    f"torch.randn({ROWS}, {VOCABULARY}), torch.rand({ROWS}, 1)",
    "return (x.softmax(-1).cumsum(-1) < u).sum(-1).clamp(max=x.shape[-1] - 1)",
)
NUCLEUS = (
    "x",
    f"2 * torch.randn({ROWS // 2}, {VOCABULARY}).round()",
    "s, places = x.softmax(-1).sort(-1, descending=True)",
    "kept = torch.where(s.cumsum(-1) - s < 0.9, s, 0.0)",
    "return torch.zeros_like(x).scatter(-1, places, kept / kept.sum(-1, keepdim=True))",
)
Terms = Callable[[torch.Tensor], torch.Tensor]


def chain(terms: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(np.add.accumulate(terms.numpy(), axis=-1))


def exponentials(x: torch.Tensor) -> torch.Tensor:
    return (x - x.amax(-1, keepdim=True)).exp()


def without_a_thousandth(x: torch.Tensor) -> torch.Tensor:
    terms = exponentials(x)
    terms[:, 7::1024] = 0
    return terms


def without_the_maximum_in_bf16(x: torch.Tensor) -> torch.Tensor:
    return x.bfloat16().exp().float()


def sampled(terms: Terms, *, of: int = 1) -> Kernel:
    def kernel(x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
        p = terms(x)
        total = chain(p[:, : VOCABULARY // of])[:, -1:] * of
        return (chain(p * (1 / total)) < u).sum(-1).clamp(max=VOCABULARY - 1)

    return kernel


def nucleus(terms: Terms, *, of: int = 1) -> Kernel:
    def kernel(x: torch.Tensor) -> torch.Tensor:
        p = terms(x)
        total = chain(p[:, : VOCABULARY // of])[:, -1:] * of
        s, places = (p / total).sort(dim=-1, descending=True, stable=True)
        kept = torch.where(chain(s) - s < 0.9, s, torch.zeros(()))
        return torch.zeros_like(x).scatter(-1, places, kept / chain(kept)[:, -1:])

    return kernel


PROBLEMS = {"sampled": (SAMPLED, sampled), "nucleus": (NUCLEUS, nucleus)}
TRIALS = (*NOMINAL, "integers", "crowded", "crowded_high")


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("name", PROBLEMS)
def test_what_one_running_sum_in_float32_chooses_is_right(name: str, secret: bytes) -> None:
    problem, kernel = PROBLEMS[name]
    assert Judged(*problem, secret=secret).refused_in(kernel(exponentials), TRIALS) == []


@pytest.mark.parametrize("name", PROBLEMS)
def test_what_sums_of_less_choose_is_wrong(name: str) -> None:
    problem, kernel = PROBLEMS[name]
    judged = Judged(*problem)
    for cheat in (kernel(without_a_thousandth), kernel(without_the_maximum_in_bf16), kernel(exponentials, of=2)):
        assert not judged.passes("nominal_0", cheat)


def test_a_running_sum_adds_in_float32_at_its_scale() -> None:
    terms = torch.full((2, 1 << 12), 0.1, dtype=torch.float64)
    found = [Lanes(1, scale).running_sum(terms, 1) for scale in (1.0, 1.37)]
    assert torch.equal(found[0], chain(terms.float()))
    assert torch.equal(found[1], chain((terms * 1.37).float()) / 1.37)
    assert not torch.equal(*found)


def test_a_sum_is_further_off_by_its_reach_on_either_side() -> None:
    terms = torch.rand(8, 1 << 12, dtype=torch.float64)
    exact = terms.sum(-1)
    lost = {}
    for reach in (1.0, 2.0, -2.0):
        with PlainSums(Lanes(8), reach) as sums:
            lost[reach] = terms.sum(-1) - exact
        assert sums.has_summed
    torch.testing.assert_close(lost[2.0], 2 * lost[1.0], rtol=1e-6, atol=0.0)
    torch.testing.assert_close(lost[-2.0], -lost[2.0], rtol=1e-6, atol=0.0)


def test_products_may_be_left_as_they_are() -> None:
    first, second = torch.rand(1, 4, 64), torch.rand(1, 64, 1)
    assert Lanes(8).product(first, second) is not None
    assert Lanes(8, makes_products=False).product(first, second) is None
