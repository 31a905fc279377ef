"""The result of a live module, refused where the judge would refuse it of a reference, in the judge's words."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils import _pytree

from ridgeline.problems.files import as_words
from ridgeline.problems.live.program import DTYPES, dtype_name
from ridgeline.problems.result_parts import is_constant, refused_part
from ridgeline.tools.errors import ProblemError


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
