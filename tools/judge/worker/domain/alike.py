"""Outputs that are alike: by what part of itself one differs from another, and whether a power of two is all that does."""

from __future__ import annotations

import math
from enum import StrEnum

import torch

from ridgeline.tools.judge.worker.call_form import Tensors
from ridgeline.tools.judge.worker.grading.cases.case import are_finite
from ridgeline.tools.records.precision import NOMINAL_GATE
from ridgeline.tools.records.vocabulary import PrecisionClass

MERELY = NOMINAL_GATE[PrecisionClass.FP32]
"""An output that differs by no more from one that was scaled shows nothing else: a norm's epsilon, say."""


class Likeness(StrEnum):
    """A way in which outputs of larger arguments are alike, in words of the arguments."""

    SAME = "a larger one gives the same output"
    SCALED = "a larger one scales the output"


def likeness(outputs: Tensors, usual: Tensors) -> Likeness | None:
    """Return how outputs are like the usual ones, None where they are not: the same, or times a power of two."""
    pairs = list(zip(outputs, usual, strict=True))
    if all(difference(was, output) <= MERELY for output, was in pairs):
        return Likeness.SAME
    return Likeness.SCALED if all(is_power_of_two_times(*pair) for pair in pairs) else None


def is_power_of_two_times(output: torch.Tensor, usual: torch.Tensor) -> bool:
    """Return whether an output is the usual one times a power of two, but for what no limit sees."""
    if not output.is_floating_point() or not output.numel():
        return torch.equal(output, usual)
    place = int(usual.abs().argmax())
    size, usual_size = float(output.flatten()[place]), float(usual.flatten()[place])
    if not usual_size or not size or not math.isfinite(ratio := size / usual_size) or ratio < 0:
        return torch.equal(output, usual)
    return difference(usual * 2.0 ** round(math.log2(ratio)), output) <= MERELY


def difference(output: torch.Tensor, other: torch.Tensor) -> float:
    """Return by what part of itself an output differs from another one; infinity where either is not finite.

    Of whole numbers and bools it is the share of unequal ones where that is less: an index that is another one is not near it.
    """
    if not output.is_floating_point():
        return _difference_of_whole(output, other)
    if not are_finite((output, other)):
        return math.inf
    size = float(torch.linalg.vector_norm(output, dtype=torch.float64))
    return float(torch.linalg.vector_norm(output - other, dtype=torch.float64)) / size if size else 0.0


def _difference_of_whole(output: torch.Tensor, other: torch.Tensor) -> float:
    if torch.equal(output, other):
        return 0.0
    share = float((output != other).double().mean())
    values = output.double()
    size = float(torch.linalg.vector_norm(values))
    return min(share, float(torch.linalg.vector_norm(values - other.double())) / size) if size else share
