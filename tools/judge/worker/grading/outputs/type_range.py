"""Values beyond the range of an output's type, near its end, and below what arithmetic keeps."""

from __future__ import annotations

import math

import torch

from ridgeline.tools.records.vocabulary import PrecisionClass

_END_SHARE = 2.0**-6
"""A value so near to the largest number of the output's type is infinity or finite by the last bits: either is right."""


def within(values: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return float64 values with infinity in place of what is beyond a type; the tensor itself where nothing is."""
    most = _beyond(dtype)
    is_beyond = (values.abs() > most) & torch.isfinite(values)
    return (
        torch.where(is_beyond, torch.copysign(values.new_tensor(math.inf), values), values)
        if bool(is_beyond.any())
        else values
    )


def _beyond(dtype: torch.dtype) -> float:
    """Return the size above which a value is infinity in a type, whatever its last bits are."""
    return torch.finfo(dtype).max * (1.0 if dtype is torch.float64 else 1 + _END_SHARE)


def non_finite_mismatch(got: torch.Tensor, want: torch.Tensor, dtype: torch.dtype) -> int | None:
    """Return the first element whose NaN or infinity is not the expected one, as an output of this type holds it."""
    if bool(torch.isfinite(got).all()) and bool(torch.isfinite(want).all()):
        return None
    want = within(want, dtype)
    same = (torch.isnan(got) & torch.isnan(want)) | (torch.isinf(got) & (got == want))
    either = (
        (want.abs() >= (1 - _END_SHARE) * torch.finfo(dtype).max) & (got.sign() == want.sign()) & torch.isfinite(want)
    )
    wrong = ~(same | either | (torch.isfinite(got) & torch.isfinite(want))).flatten()
    return int(wrong.to(torch.uint8).argmax()) if bool(wrong.any()) else None


def flushed(precision: PrecisionClass) -> float:
    """Return the size below which a result of a class may be zero in a kernel: all but fp64 compute in float32."""
    return float(torch.finfo(torch.float64 if precision is PrecisionClass.FP64 else torch.float32).tiny)
