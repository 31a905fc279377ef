"""An exponential of matrices by a Taylor sum and squaring is right beside large numbers, and one of fewer terms is not."""

from __future__ import annotations

import pytest
import torch
from tests.tools.judge.worker.grading.judged import Judged, Kernel

from ridgeline.tools.judge.worker.grading.cases.class_errors import rounded
from ridgeline.tools.records.vocabulary import PrecisionClass


def judged(secret: bytes) -> Judged:
    return Judged("a", "torch.randn(8, 16, 16) * 0.2", "return torch.matrix_exp(a)", secret=secret)


def exponential(x: torch.Tensor, degree: int = 12) -> torch.Tensor:
    """Return the exponentials of matrices, each product in float32."""
    squarings = (x.abs().sum(1).amax(-1) / 0.5).clamp(min=1).log2().ceil()
    scaled, identity = x * (-squarings).exp2()[:, None, None], torch.eye(x.shape[-1])
    made = identity.expand_as(x)
    for each in range(degree, 0, -1):
        made = product(scaled, made) / each + identity
    return squared(made, squarings)


def squared(made: torch.Tensor, squarings: torch.Tensor) -> torch.Tensor:
    """Return each matrix multiplied by itself as often as is asked for."""
    for count in range(int(squarings.max())):
        made = product(made, made).where((squarings > count)[:, None, None], made)
    return made


def product(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """Return products whose sums add one term after the other."""
    made = torch.zeros_like(first)
    for inner in range(first.shape[-1]):
        made += first[:, :, inner, None] * second[:, None, inner]
    return made


def quotient(x: torch.Tensor) -> torch.Tensor:
    """Return the exponentials of matrices by a Pade approximation of degree 7."""
    squarings = (x.abs().sum(1).amax(-1) / 3.925).clamp(min=1).log2().ceil()
    scaled, identity = x * (-squarings).exp2()[:, None, None], torch.eye(x.shape[-1])
    x2 = product(scaled, scaled)
    x4 = product(x2, x2)
    x6 = product(x4, x2)
    odd = product(scaled, x6 + 1512.0 * x4 + 277200.0 * x2 + 8648640.0 * identity)
    even = 56.0 * x6 + 25200.0 * x4 + 1995840.0 * x2 + 17297280.0 * identity
    return squared(torch.linalg.solve(even - odd, even + odd), squarings)


@pytest.mark.parametrize("kernel", [exponential, quotient])
@pytest.mark.parametrize("secret", [b"1", b"10", b"11"])
def test_an_exponential_by_squaring_is_right_where_pytorch_happens_to_lose_less(kernel: Kernel, secret: bytes) -> None:
    trials = ("nominal_0", "few_outliers", "shifted", "row_scaled")
    assert judged(secret).refused_in(kernel, trials) == []


def test_an_exponential_of_fewer_terms_or_of_tf32_is_wrong() -> None:
    trials = ("nominal_0", "nominal_1", "shifted", "row_scaled", "mixture")
    for kernel in (lambda a: exponential(a, degree=3), lambda a: exponential(rounded(a, PrecisionClass.TF32))):
        assert judged(b"1").refused_in(kernel, trials) == list(trials)
