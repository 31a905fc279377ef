"""The arguments of a call, and how a usual trial moves, beside which those of other sizes stay as well conditioned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from ridgeline.tools.judge.worker.call_form import Scalar, Tensors
from ridgeline.tools.judge.worker.domain.conditioning import BothErrors

_OF_WHOLE = 1 / 32
"""What whole numbers of an output are taken to move by at least: choices flip at tf32's last bits, hardly at fp32's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments:
    """Inputs, parameters and scalars of one call."""

    inputs: Tensors
    parameters: dict[str, torch.Tensor]
    scalars: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Usual:
    """By how much a trial's output moves that the reference takes as it is, and what is made of it in other types."""

    errors: BothErrors
    moves: tuple[float, ...]
    spreads: tuple[float, ...]  # each output's, as a part of its norm


def as_usual(moves: Sequence[float], dtypes: Sequence[torch.dtype]) -> tuple[float, ...]:
    """Return what a usual trial's outputs of these types move by, whole numbers by a share that none need move by."""
    pairs = zip(moves, dtypes, strict=True)
    return tuple(move if dtype.is_floating_point else max(move, _OF_WHOLE) for move, dtype in pairs)
