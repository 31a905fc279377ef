"""Errors that rounding makes are told from those of a step that was left out, a factor, or one part of an output."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from ridgeline.tools.judge.worker.grading.outputs.compare import compare
from ridgeline.tools.judge.worker.grading.outputs.expected import expect
from ridgeline.tools.judge.worker.grading.outputs.rounding_pattern import is_like_rounding
from ridgeline.tools.records.precision import Errors

GENERATOR = torch.Generator().manual_seed(0)
A, B, NOISE = (torch.randn(128, 128, generator=GENERATOR) for _ in range(3))
SCALES = torch.exp2(torch.linspace(-5, 5, 128)).unsqueeze(1)


def in_bf16(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.bfloat16().float()


ROUNDED = {
    "an output": (A, in_bf16(A)),
    "operands": (A @ B, in_bf16(A) @ in_bf16(B)),
    "rows of many sizes": (A * SCALES @ B, in_bf16(A * SCALES) @ in_bf16(B)),
    "half of it zeros": (A.relu(), in_bf16(A).relu()),
    "one row": (A.flatten(), in_bf16(A).flatten()),
}
OTHERWISE: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "a factor": lambda out: out * 1.001,
    "an offset": lambda out: out + 0.001,
    "a row": lambda out: torch.cat((out[:1] * 1.02, out[1:])),
    "few elements": lambda out: torch.where(NOISE > 2.5, out + 0.01, out),
    "a quarter of the columns": lambda out: torch.cat((out[:, :32] + NOISE[:, :32] * 0.002, out[:, 32:]), 1),
}


def is_like(expected: torch.Tensor, output: torch.Tensor, own: float = 0.0) -> bool:
    want = expect(expected.double())
    return is_like_rounding(output, want, compare(output, want).errors, Errors(overall=own))


@pytest.mark.parametrize("which", ROUNDED)
def test_rounding_is_nearly_everywhere_and_to_either_side(which: str) -> None:
    assert is_like(*ROUNDED[which], own=2e-3)


@pytest.mark.parametrize("which", OTHERWISE)
def test_what_lies_otherwise_is_no_rounding(which: str) -> None:
    assert not is_like(A, OTHERWISE[which](A))


def test_an_error_far_below_the_class_s_own_is_not_of_its_size() -> None:
    output = A + 1e-5 * NOISE
    assert is_like(A, output, own=6e-5) and not is_like(A, output, own=1e-4)


def test_outputs_without_any_error_or_number_are_not_off() -> None:
    assert not is_like(A, A.clone()) and not is_like(torch.zeros(4, 4), torch.zeros(4, 4))
    assert not is_like(torch.empty(0, 4), torch.empty(0, 4))
    whole = expect(torch.arange(4))
    assert not is_like_rounding(torch.arange(4) + 1, whole, Errors(overall=1.0), Errors(overall=0.0))
    infinite = torch.full((4, 4), float("inf"))
    assert not is_like(infinite, infinite)
