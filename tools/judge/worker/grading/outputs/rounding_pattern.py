"""Errors that lie as rounding in less precision spreads them, told from those of a step that was left out."""

from __future__ import annotations

import torch

from ridgeline.tools.judge.worker.grading.outputs.expected import Expected
from ridgeline.tools.records.precision import Errors

_LEAST = 1 / 8
"""Part of what the class itself errs that rounding in it does at least."""
_SPREAD = 1 / 4
"""Part of the errors' root mean square, beside each number's size, that their median is at least: most elements are off."""
_ONE_SIDED = 0.7
"""Part of that which one offset of all, or one factor, may be: half of the squares. Rounding goes to either side."""
_LOOKED_AT = 1 << 22
"""Elements that are looked at, of a larger output in rows at even distances."""


def is_like_rounding(output: torch.Tensor, expected: Expected, errors: Errors, own: Errors) -> bool:
    """Return whether errors are of a class's size, at nearly all elements that are not zero, and to either side.

    Args:
        output: of its own type.
        expected: what it should be.
        errors: how far it is off.
        own: how far the reference is on operands rounded to the class.
    """
    if errors.overall < _LEAST * own.overall or expected.is_exact or not output.numel():
        return False
    width = output.shape[-1] if output.dim() > 1 else output.numel()
    step = max(1, output.numel() // _LOOKED_AT)
    got, want = (t.detach().reshape(-1, width)[::step].double() for t in (output, expected.values))
    rows = torch.nan_to_num(want, 0.0, 0.0, 0.0).square().mean(-1, keepdim=True).sqrt()
    size = want.abs() + rows
    known = torch.isfinite(got) & torch.isfinite(want) & (size > 0) & ((want != 0) | (got != 0))
    off, value = ((got - want) / size)[known], (want / size)[known]
    level = float(off.square().mean().sqrt()) if len(off) else 0.0
    if not level or float(off.abs().median()) < _SPREAD * level:
        return False
    norm = level * len(off) ** 0.5
    by_factor = float((off * value).sum().abs() / (norm * torch.linalg.vector_norm(value)).clamp_min(1e-300))
    return max(float(off.mean().abs()) / level, by_factor) <= _ONE_SIDED
