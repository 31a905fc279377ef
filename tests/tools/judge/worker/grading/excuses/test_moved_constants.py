"""Constants that a reference makes have a kernel's own roundings; those that decide on a jump, or that float32 holds, stay."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from tests.tools.judge.worker.drawn_secrets import SECRETS
from tests.tools.judge.worker.grading.judged import Judged

from ridgeline.tools.judge.worker.grading.cases.class_errors import floating_errors
from ridgeline.tools.judge.worker.grading.excuses.moved_constants import with_other_constants
from ridgeline.tools.judge.worker.grading.excuses.neighbours import neighbour_outputs

HALF = 32
ROTATED = (
    "x, p",
    f"torch.randn(4, 64, {2 * HALF}), torch.randint(0, 8192, (64,))",
    f"a = p[:, None].to(x.dtype) / 10000.0 ** (torch.arange({HALF}, dtype=x.dtype) / {HALF})",
    f"c, s, u, v = a.cos(), a.sin(), x[..., :{HALF}], x[..., {HALF}:]",
    "return torch.cat((u * c - v * s, v * c + u * s), -1)",
)
EMBEDDED = (
    "t",
    "torch.randint(0, 1000, (256,))",
    f"f = torch.exp(-9.210340371976184 * torch.arange({HALF}, dtype=torch.float32) / {HALF})",
    "return (t[:, None].float() * f).sin()",
)


def in_double() -> torch.Tensor:
    return (10000.0 ** -(torch.arange(HALF).double() / HALF)).float()


def by_exponentials() -> torch.Tensor:
    return torch.exp(torch.arange(HALF).float() * torch.tensor(-math.log(10000.0) / HALF))


def by_powers_of_two() -> torch.Tensor:
    return torch.exp2(torch.arange(HALF).float() * torch.tensor(-math.log2(10000.0) / HALF))


def in_bf16() -> torch.Tensor:
    return in_double().bfloat16().float()


def with_fewer_bits() -> torch.Tensor:
    return (in_double().view(torch.int32) & -64).view(torch.float32)


def rotated(frequencies: Callable[[], torch.Tensor], x: torch.Tensor, p: torch.Tensor) -> torch.Tensor:
    a = p[:, None].float() * frequencies()
    c, s, u, v = a.cos(), a.sin(), x[..., :HALF], x[..., HALF:]
    return torch.cat((u * c - v * s, v * c + u * s), -1)


@pytest.mark.parametrize("frequencies", [in_double, by_exponentials, by_powers_of_two])
@pytest.mark.parametrize("secret", SECRETS)
def test_frequencies_made_otherwise_in_float32_are_right(
    frequencies: Callable[[], torch.Tensor], secret: bytes
) -> None:
    judged = Judged(*ROTATED, secret=secret)
    assert judged.refused_in(lambda x, p: rotated(frequencies, x, p)) == []


@pytest.mark.parametrize("frequencies", [in_bf16, with_fewer_bits])
def test_frequencies_in_less_are_wrong(frequencies: Callable[[], torch.Tensor]) -> None:
    judged = Judged(*ROTATED)
    assert not judged.passes("nominal_0", lambda x, p: rotated(frequencies, x, p))
    assert not judged.passes("nominal_0", lambda x, p: rotated(in_double, x, p - 1))


def test_constants_of_float32_in_every_run_are_not_a_kernels_own() -> None:
    judged = Judged(*EMBEDDED)
    case = judged.book.case("nominal_0")
    outputs = neighbour_outputs(judged.reference, case, 0)
    assert outputs
    assert 1e-6 < floating_errors(outputs, case)[0].overall < 1e-4
    steady = case.expected[0].values
    assert judged.passes("nominal_0", lambda t: (t[:, None].float() * in_double()).sin())
    assert not judged.passes("nominal_0", lambda t: (t[:, None].float() * in_bf16()).sin())
    assert judged.passes("nominal_0", lambda t: steady.float())


@pytest.mark.parametrize(
    "body",
    [
        "return x * torch.arange(64, dtype=x.dtype).sub(32).div(64)",  # float32 holds them
        "return x[:, (torch.arange(64) * 0.1).long()]",  # another boundary
        "return x * (torch.linspace(0, 1, 64, dtype=x.dtype) < 0.3)",
        "return x * torch.ones_like(x).div(3).mul(3).round()",
        "return x * (x / 3).mean()",  # made of operands
        "s = torch.zeros(64, 64, dtype=x.dtype)\n        s[:, ::2] = x[:, ::2]\n        return s / 3",
    ],
)
def test_what_is_exact_jumps_or_is_made_of_operands_stays(body: str) -> None:
    judged = Judged("x", "torch.randn(64, 64)", body)
    case = judged.book.case("nominal_0")
    assert with_other_constants(judged.reference, case.inputs, case.parameters, 0) is None


@pytest.mark.parametrize(
    "body",
    [
        "return x * torch.linspace(0, 1, 64, dtype=x.dtype)",
        "return x * torch.ones_like(x).div_(3)",
        "w = torch.zeros(64, dtype=x.dtype)\n        w[1:] = torch.arange(1, 64, dtype=x.dtype).log()\n        return x * w",
        "return x * torch.tensor([1.0, 3.0], dtype=x.dtype).rsqrt().repeat(32)",
    ],
)
def test_what_is_rounded_moves_by_last_bits_alone(body: str) -> None:
    judged = Judged("x", "torch.randn(64, 64)", body)
    case = judged.book.case("nominal_0")
    outputs = with_other_constants(judged.reference, case.inputs, case.parameters, 0)
    assert outputs
    assert 1e-8 < floating_errors(outputs, case)[0].overall < 4e-7
