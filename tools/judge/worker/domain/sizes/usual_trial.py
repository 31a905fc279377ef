"""The arguments of a call, and how a usual trial moves, beside which those of other sizes stay as well conditioned."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ridgeline.tools.judge.worker.call_form import Scalar, Tensors
from ridgeline.tools.judge.worker.grading.case import EachErrors

BothErrors = tuple[EachErrors | None, EachErrors | None]
"""What operands rounded to tf32 do to a case, and what its own type errs."""


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
