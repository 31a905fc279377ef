"""The result of a live module: refused where the judge would refuse it of a reference, in its words; compared with another."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils import _pytree

from ridgeline.problems.files import as_words
from ridgeline.problems.live.program import DTYPES, dtype_name
from ridgeline.problems.result_parts import is_constant, refused_part
from ridgeline.tools.errors import ProblemError

_RTOL = {torch.float16: 1e-2, torch.bfloat16: 5e-2}
"""Of the largest element; the same operations give the same bits nearly always."""
_LEAST_RTOL = 1e-4


def result_tensors(result: Any) -> list[torch.Tensor]:
    """Return the tensors of a result, in order.

    Raises:
        ProblemError: there is none or no element in them, or a part is nothing that a kernel can give or leave out.
    """
    placed = _pytree.tree_flatten_with_path(result)[0]
    tensors = [part for _, part in placed if isinstance(part, torch.Tensor)]
    if not tensors:
        got = " ".join(as_words(result).split())
        raise ProblemError(f"forward returns no tensor, but {got}: a kernel needs one to write")
    for path, part in placed:
        if isinstance(part, torch.Tensor):
            if strange := _strangeness(part):
                raise ProblemError(f"forward() returns {strange}, which kernels cannot write")
        elif not is_constant(part):
            raise ProblemError(f"forward() returns {refused_part(part, _pytree.keystr(path))}")
    if not any(tensor.numel() for tensor in tensors):
        raise ProblemError("forward() gives only empty tensors: a kernel would have nothing to do")
    return tensors


def _strangeness(tensor: torch.Tensor) -> str:
    """Return what keeps a tensor from being plain memory of a type that C has; "" for nothing."""
    if tensor.is_nested or tensor.layout is not torch.strided:
        return "a nested tensor" if tensor.is_nested else str(tensor.layout).removeprefix("torch.").removeprefix("_")
    return "" if tensor.dtype in DTYPES else dtype_name(tensor.dtype)


def is_close(got: torch.Tensor, wanted: torch.Tensor) -> bool:
    """Say whether two results are of the same operations on the same values."""
    if got.shape != wanted.shape or got.dtype is not wanted.dtype:
        return False
    if not got.is_floating_point() or not got.numel():
        return torch.equal(got, wanted)
    one, two = got.double(), wanted.double()
    finite = two[torch.isfinite(two)].abs()
    size = float(finite.max()) if finite.numel() else 0.0
    return torch.allclose(one, two, rtol=0, atol=_RTOL.get(got.dtype, _LEAST_RTOL) * size, equal_nan=True)
