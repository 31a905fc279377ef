"""The loss of plain sums in float32: a few lanes, each adding one term after the other, as a kernel in C++ does.

PyTorch adds in blocks, and its own error says nothing of them: where terms are few different whole numbers, all roundings of
a lane are alike, and beside a sum of a few large terms most of the others are lost.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from ridgeline.tools.errors import BadReferenceError
from ridgeline.tools.judge.worker.grading.case import Case, EachErrors
from ridgeline.tools.judge.worker.grading.class_errors import floating_errors, worst_of
from ridgeline.tools.judge.worker.reference import Reference
from ridgeline.tools.records.precision import LONGEST_LANE, PLAIN_LANES


def plain_errors(reference: Reference, case: Case) -> EachErrors | None:
    """Return what plain sums do to each output of a case that is float64's otherwise; None where nothing can be told.

    Sums, running sums, means, variances, norms, reduced losses and the statistics of layer, group, batch and instance norms
    are so, on a CPU: a GPU's kernels add in trees, as PyTorch does. The worst counts of some numbers of lanes.
    """
    found: list[EachErrors] = []
    for lanes in PLAIN_LANES:
        try:
            with torch.no_grad(), PlainSums(lanes):
                outputs = reference.run_double(case.inputs, case.parameters)
        except BadReferenceError:
            return None
        errors = floating_errors(outputs, case)
        if errors is None:
            return None
        found.append(errors)
    return worst_of(*found)


class PlainSums(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch has no types there
    """Lets reductions on a CPU add in float32 by this many lanes; where the last dimension stays, by that alone for 1."""

    def __init__(self, lanes: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch has no types there
        self._lanes = lanes

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        names = [argument.name for argument in func._schema.arguments]
        given = dict(zip(names, args, strict=False)) | (kwargs or {})
        name = str(func.overloadpacket).removeprefix("aten.")
        operand = given.get("self", given.get("input"))
        if name in _NORMALISED and isinstance(operand, torch.Tensor) and _is_summed(operand):
            given = {n: given.get(n) for n in names}
            return (_NORMALISED[name](given, self._lanes), *func(*args, **(kwargs or {}))[1:])
        made = _REDUCTIONS.get(name)
        if made is None or "out" in given or not (isinstance(operand, torch.Tensor) and _is_summed(operand)):
            return func(*args, **(kwargs or {}))
        return made(_Reduction(func, operand, given, self._lanes))


def _is_summed(operand: torch.Tensor) -> bool:
    return operand.is_floating_point() and operand.is_cpu and operand.dim() > 0 and operand.numel() > 0


class _Reduction:
    """One call of a reduction."""

    def __init__(self, func: Any, operand: torch.Tensor, given: dict[str, Any], lanes: int) -> None:
        self.func, self.operand, self.given = func, operand, given
        dims = given.get("dim")
        chosen = range(operand.dim()) if dims is None or dims == [] else [dims] if isinstance(dims, int) else dims
        self._dims = sorted(d % operand.dim() for d in chosen)
        self._lanes = lanes
        self.count = math.prod(operand.shape[d] for d in self._dims)

    def sum(self, terms: torch.Tensor, *, is_kept: bool | None = None) -> torch.Tensor:
        """Return the sum of terms of the operand's shape, in its type."""
        kept = self.given.get("keepdim", False) if is_kept is None else is_kept
        total = plain_sum(terms, self._dims, self._lanes).to(self.operand.dtype)
        if kept:
            return total.reshape([1 if d in self._dims else size for d, size in enumerate(terms.shape)])
        return total

    def variance(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the variance and the mean, in two passes."""
        means = self.sum(self.operand, is_kept=True) / self.count
        correction = self.given.get("correction")
        freedom = max(self.count - (1 if correction is None else correction), 0)
        mean = means if self.given.get("keepdim", False) else means.reshape(self._kept_shape())
        return self.sum((self.operand - means) ** 2) / freedom, mean

    def _kept_shape(self) -> list[int]:
        return [size for d, size in enumerate(self.operand.shape) if d not in self._dims]


def plain_sum(terms: torch.Tensor, dims: Sequence[int], lanes: int) -> torch.Tensor:
    """Return a sum over dimensions in float32, by lanes of which each adds one term after the other.

    A lane has `LONGEST_LANE` terms at most: who adds more than that has threads. Where the last dimension stays, a kernel's
    lanes lie along it, and each sum has only one for the smallest number of them.
    """
    kept = [d for d in range(terms.dim()) if d not in dims]
    is_along = bool(kept) and kept[-1] == terms.dim() - 1 and terms.shape[-1] > 1
    rows = terms.float().permute(*dims, *kept).reshape(math.prod(terms.shape[d] for d in dims), -1)
    lanes = max(1 if is_along and lanes == min(PLAIN_LANES) else lanes, math.ceil(len(rows) / LONGEST_LANE))
    missing = -len(rows) % lanes
    if missing:
        rows = torch.cat([rows, rows.new_zeros(missing, rows.shape[1])])
    steps = rows.reshape(-1, lanes, rows.shape[1])
    sums = steps[0].clone()
    for step in itertools.islice(steps, 1, None):
        sums += step
    while len(sums) > 1:
        half = len(sums) // 2
        sums = torch.cat([sums[:half] + sums[half : 2 * half], sums[2 * half :]])
    return sums[0].reshape([terms.shape[d] for d in kept])


def running_sum(terms: torch.Tensor, dim: int) -> torch.Tensor:
    """Return running sums in float32, each the one before it and one term more.

    PyTorch's own are in float64 on a CPU, numpy's are plain. A running sum has one lane, so that is four times as long as
    `LONGEST_LANE` at most: longer rows are pieces, to each of which the sum of those before it is added.
    """
    rows = terms.float().movedim(dim, -1)
    total = torch.zeros_like(rows[..., :1])
    pieces = []
    for piece in torch.split(rows, 4 * LONGEST_LANE, dim=-1):
        sums = torch.from_numpy(np.add.accumulate(piece.contiguous().numpy(), axis=-1)) + total
        total = sums[..., -1:]
        pieces.append(sums)
    return torch.cat(pieces, dim=-1).movedim(-1, dim)


def _cumsum(call: _Reduction) -> torch.Tensor:
    made = call.given.get("dtype")
    return running_sum(call.operand, call.given["dim"]).to(call.operand.dtype if made is None else made)


def _norm(call: _Reduction) -> torch.Tensor:
    order = call.given.get("ord", 2)
    if order == 1:
        return call.sum(call.operand.abs())
    if order == 2:
        return call.sum(call.operand**2).sqrt()
    given = dict(call.given)
    return call.func(given.pop("self"), **given)  # type: ignore[no-any-return]  # torch has no types there


def _loss(call: _Reduction) -> torch.Tensor:
    given = call.given | {"reduction": 0}
    terms = call.func(given.pop("self"), **given)
    reduction = call.given.get("reduction", 1)
    if reduction == 0 or terms.shape != call.operand.shape:
        return call.func(call.operand, **{n: v for n, v in call.given.items() if n != "self"})  # type: ignore[no-any-return]
    return call.sum(terms, is_kept=False) / (call.count if reduction == 1 else 1)


def _normalised(terms: torch.Tensor, dims: Sequence[int], eps: float, lanes: int) -> torch.Tensor:
    """Return (terms - mean) / sqrt(variance + eps) over these dimensions, the statistics in two passes of plain sums."""
    count = math.prod(terms.shape[d] for d in dims)
    kept = [1 if d in dims else size for d, size in enumerate(terms.shape)]
    centred = terms - plain_sum(terms, dims, lanes).to(terms.dtype).reshape(kept) / count
    variance = plain_sum(centred**2, dims, lanes).to(terms.dtype).reshape(kept) / count
    return centred / (variance + eps).sqrt()


def _scaled(normalised: torch.Tensor, given: dict[str, Any], shape: Sequence[int]) -> torch.Tensor:
    weight, bias = (given[name] for name in ("weight", "bias"))
    scaled = normalised if weight is None else normalised * weight.reshape(shape)
    return scaled if bias is None else scaled + bias.reshape(shape)


def _layer_norm(given: dict[str, Any], lanes: int) -> torch.Tensor:
    terms, shape = given["input"], given["normalized_shape"]
    dims = range(terms.dim() - len(shape), terms.dim())
    return _scaled(_normalised(terms, list(dims), given["eps"], lanes), given, shape)


def _group_norm(given: dict[str, Any], lanes: int) -> torch.Tensor:
    terms, channels = given["input"], given["C"]
    groups = terms.reshape(given["N"] * given["group"], -1)
    normalised = _normalised(groups, [1], given["eps"], lanes).reshape(terms.shape)
    return _scaled(normalised, given, [1, channels, *(1 for _ in terms.shape[2:])])


def _batch_norm(given: dict[str, Any], lanes: int) -> torch.Tensor:
    terms = given["input"]
    shape = [1, -1, *(1 for _ in terms.shape[2:])]
    if given["training"]:
        normalised = _normalised(terms, [d for d in range(terms.dim()) if d != 1], given["eps"], lanes)
    else:
        means, variances = (given[name].reshape(shape) for name in ("running_mean", "running_var"))
        normalised = (terms - means) / (variances + given["eps"]).sqrt()
    return _scaled(normalised, given, shape)


_NORMALISED: dict[str, Callable[[dict[str, Any], int], torch.Tensor]] = {
    "native_layer_norm": _layer_norm,
    "native_group_norm": _group_norm,
    "native_batch_norm": _batch_norm,
}
_REDUCTIONS: dict[str, Callable[[_Reduction], Any]] = {
    "sum": lambda call: call.sum(call.operand),
    "mean": lambda call: call.sum(call.operand) / call.count,
    "var": lambda call: call.variance()[0],
    "std": lambda call: call.variance()[0].sqrt(),
    "var_mean": lambda call: call.variance(),
    "std_mean": lambda call: (call.variance()[0].sqrt(), call.variance()[1]),
    "cumsum": _cumsum,
    "linalg_vector_norm": _norm,
    "mse_loss": _loss,
    "smooth_l1_loss": _loss,
    "huber_loss": _loss,
    "binary_cross_entropy": _loss,
    "binary_cross_entropy_with_logits": _loss,
}
