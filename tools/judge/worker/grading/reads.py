"""Finds out whether a reference reads a tensor that keeps its values in every trial."""

from __future__ import annotations

import torch

from ridgeline.tools.errors import ProblemError
from ridgeline.tools.judge.worker.call_form import Tensors
from ridgeline.tools.judge.worker.reference import Reference
from ridgeline.tools.modelnew.tensor_bits import equal_bits


def is_read(view: torch.Tensor, reference: Reference, inputs: Tensors) -> bool:
    """Return whether other values in a parameter's place, left there, show in any bit of the output, or are refused."""
    before = tuple(o.clone() for o in reference.run(inputs))
    view.copy_((view == 0).to(view.dtype))
    try:
        after = reference.run(inputs)
    except ProblemError:
        return True
    return not all(equal_bits(a, b) for a, b in zip(before, after, strict=True))
