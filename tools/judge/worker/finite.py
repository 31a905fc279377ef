"""The finiteness of a whole tensor, found without masks of its size."""

from __future__ import annotations

import torch


def is_finite(tensor: torch.Tensor) -> bool:
    """Return whether every element of a floating-point tensor is finite.

    A finite sum shows it in one pass over the tensor. Only where the sum is not finite, which finite elements may have too,
    does `torch.isfinite` decide: four passes, a copy and masks.
    """
    return has_finite_sum(tensor) or bool(torch.isfinite(tensor).all())


def has_finite_sum(tensor: torch.Tensor) -> bool:
    """Return True only when every element is finite: one pass, and no mask as large as the tensor."""
    return bool(torch.isfinite(tensor.sum(dtype=torch.float64 if tensor.dtype == torch.float64 else torch.float32)))
