"""The loss of plain sums in float32: a few lanes, each adding one term after the other, as a kernel in C++ does.

PyTorch adds in blocks, and its own error says nothing of them: where terms are few different whole numbers, all roundings of
a lane are alike, and beside a sum of a few large terms most of the others are lost.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from ridgeline.tools.errors import BadReferenceError
from ridgeline.tools.judge.worker.call_form import Tensors
from ridgeline.tools.judge.worker.dispatch_modes import TorchDispatchMode, named_arguments, operation_name
from ridgeline.tools.judge.worker.grading.cases.case import Case, EachErrors, made_once
from ridgeline.tools.judge.worker.grading.cases.class_errors import floating_errors, worst_of
from ridgeline.tools.judge.worker.grading.cases.vector_signs import signed_as
from ridgeline.tools.judge.worker.grading.limits.lanes import Lanes, Moments
from ridgeline.tools.judge.worker.grading.limits.moments import moments_of
from ridgeline.tools.judge.worker.grading.limits.plain_exponential import plain_exponential
from ridgeline.tools.judge.worker.grading.limits.plain_transforms import transformed
from ridgeline.tools.judge.worker.reference import Reference
from ridgeline.tools.records.precision import FEW_LANES, PLAIN_LANES, PLAIN_SCALES

PLAIN_WAYS = (
    *(Lanes(count, scale) for scale in PLAIN_SCALES for count in PLAIN_LANES),
    *(Lanes(FEW_LANES, scale) for scale in PLAIN_SCALES),
    *(Lanes(max(PLAIN_LANES), moments=moments) for moments in (Moments.SHIFTED, Moments.CHAINED)),
)
"""The ways in which a reference's sums are made plain, one after the other while an error is near a limit."""


def plain_errors(reference: Reference, case: Case, ways: Sequence[Lanes] = PLAIN_WAYS) -> EachErrors | None:
    """Return the most that plain sums do to each output of a case that is float64's otherwise; None where nothing can be told.

    Sums, products of matrices, running sums, means, variances, norms, softmax, reduced losses and the statistics of layer,
    group, batch and instance norms are so, attention by its products, Fourier transforms by their definition, and exponentials
    of matrices by squaring. That is of a CPU: a GPU's kernels add in trees, as PyTorch does.
    """
    found: list[EachErrors] = []
    for lanes in ways:
        outputs = plain_outputs(reference, case, lanes)
        errors = None if outputs is None else floating_errors(outputs, case)
        if errors is None:
            return None
        found.append(errors)
    return worst_of(*found)


@made_once
def plain_outputs(reference: Reference, case: Case, lanes: Lanes) -> Tensors | None:
    """Return a case's outputs in float64 but for sums, which are plain; None on a GPU and where the reference refuses that."""
    if any(not each.is_cpu for each in case.inputs):
        return None
    try:
        signs = signed_as(reference, case.expected)
        with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), signs, PlainSums(lanes):
            return reference.run_double(case.inputs, case.parameters)
    except BadReferenceError:
        return None


class PlainSums(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch has no types there
    """Lets reductions and products on a CPU add in float32 by lanes, and their results be off by `reach` x what that loses."""

    def __init__(self, lanes: Lanes, reach: float = 1.0) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch has no types there
        self.has_summed = False
        self._lanes, self._reach = lanes, reach

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = self._made(func, args, kwargs)
        if made is not None:
            self.has_summed = True
            if self._reach == 1.0:
                return made
        exact = func(*args, **(kwargs or {}))
        if made is None:
            return exact
        if isinstance(made, torch.Tensor):
            return _further(made, exact, self._reach)
        return tuple(_further(one, other, self._reach) for one, other in zip(made, exact, strict=True))

    def _made(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Return what an operation gives by plain sums; None for one that has none."""
        given = named_arguments(func, args, kwargs)
        name = operation_name(func)
        operand = given.get("self", given.get("input"))
        by_definition = transformed(name, given, self._lanes)
        if by_definition is None:
            by_definition = plain_exponential(name, given, self._lanes)
        if by_definition is not None:
            return by_definition
        if name in _NORMALISED and isinstance(operand, torch.Tensor) and _is_summed(operand):
            given = {argument.name: given.get(argument.name) for argument in func._schema.arguments}
            return (_NORMALISED[name](given, self._lanes), *func(*args, **(kwargs or {}))[1:])
        if name in PRODUCTS and "out" not in given and isinstance(operand, torch.Tensor) and _is_summed(operand):
            return _product_of(name, given, self._lanes)
        made = _REDUCTIONS.get(name)
        if made is None or "out" in given or not (isinstance(operand, torch.Tensor) and _is_summed(operand)):
            return None
        return made(_Reduction(func, operand, given, self._lanes))


def _further(made: torch.Tensor, exact: torch.Tensor, reach: float) -> torch.Tensor:
    """Return a result that is `reach` x as far from the exact one; what is no number stays."""
    if not (made.is_floating_point() or made.is_complex()):
        return made
    apart = made - exact
    return torch.where(torch.isfinite(apart), exact + reach * apart, made)


def _is_summed(operand: torch.Tensor) -> bool:
    return operand.is_floating_point() and operand.is_cpu and operand.dim() > 0 and operand.numel() > 0


class _Reduction:
    """One call of a reduction."""

    def __init__(self, func: Any, operand: torch.Tensor, given: dict[str, Any], lanes: Lanes) -> None:
        self.func, self.operand, self.given = func, operand, given
        dims = given.get("dim")
        chosen = range(operand.dim()) if dims is None or dims == [] else [dims] if isinstance(dims, int) else dims
        self.dims = sorted(d % operand.dim() for d in chosen)
        self.lanes = lanes
        self.count = math.prod(operand.shape[d] for d in self.dims)

    def again(self) -> Any:
        """Return what the operation itself gives."""
        given = dict(self.given)
        return self.func(given.pop("self"), **given)

    def sum(self, terms: torch.Tensor, *, is_kept: bool | None = None) -> torch.Tensor:
        """Return the sum of terms of the operand's shape, in its type."""
        kept = self.given.get("keepdim", False) if is_kept is None else is_kept
        total = self.lanes.sum(terms, self.dims).to(self.operand.dtype)
        if kept:
            return total.reshape([1 if d in self.dims else size for d, size in enumerate(terms.shape)])
        return total

    def variance(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the variance and the mean."""
        mean, squares = moments_of(self.operand, self.dims, self.lanes)
        correction = self.given.get("correction")
        freedom = max(self.count - (1 if correction is None else correction), 0)
        if not self.given.get("keepdim", False):
            mean, squares = mean.reshape(self.kept_shape()), squares.reshape(self.kept_shape())
        return squares / freedom, mean

    def kept_shape(self) -> list[int]:
        """Return the sizes of the dimensions that stay."""
        return [size for d, size in enumerate(self.operand.shape) if d not in self.dims]


def _cumsum(call: _Reduction) -> torch.Tensor:
    made = call.given.get("dtype")
    return call.lanes.running_sum(call.operand, call.given["dim"]).to(call.operand.dtype if made is None else made)


def _std_mean(call: _Reduction) -> tuple[torch.Tensor, torch.Tensor]:
    variance, mean = call.variance()
    return variance.sqrt(), mean


def _norm(call: _Reduction) -> torch.Tensor:
    order = call.given.get("ord", 2)
    if order == 1:
        return call.sum(call.operand.abs())
    if order == 2:
        return call.sum(call.operand**2).sqrt()
    return call.again()  # type: ignore[no-any-return]  # torch has no types there


def _loss(call: _Reduction) -> torch.Tensor:
    given = call.given | {"reduction": 0}
    reduction = call.given.get("reduction", 1)
    if reduction == 0:
        return call.again()  # type: ignore[no-any-return]  # torch has no types there
    terms = call.func(given.pop("self"), **given)
    return _whole_sum(terms, call.lanes) / (terms.numel() if reduction == 1 else 1)


def _nll_loss(call: _Reduction) -> tuple[torch.Tensor, torch.Tensor]:
    given = call.given | {"reduction": 0}
    reduction = call.given.get("reduction", 1)
    total, weight = call.again()
    if reduction == 0:
        return total, weight
    terms, _ = call.func(given.pop("self"), **given)
    return _whole_sum(terms, call.lanes) / (weight if reduction == 1 else 1), weight


def _whole_sum(terms: torch.Tensor, lanes: Lanes) -> torch.Tensor:
    return lanes.sum(terms.reshape(-1), [0]).to(terms.dtype)


def _exponentials(call: _Reduction) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the maximum, each exponential of what is below it, and the plain sum of these; dimensions stay."""
    largest = call.operand.amax(call.dims, keepdim=True)
    largest = largest.where(largest.isfinite(), torch.zeros_like(largest))
    powers = (call.operand - largest).exp()
    return largest, powers, call.sum(powers, is_kept=True)


def _log_sum_exp(call: _Reduction) -> torch.Tensor:
    largest, _, total = _exponentials(call)
    made = total.log() + largest
    return made if call.given.get("keepdim", False) else made.reshape(call.kept_shape())


def _softmax(call: _Reduction) -> torch.Tensor:
    _, powers, total = _exponentials(call)
    return powers / total


def _log_softmax(call: _Reduction) -> torch.Tensor:
    largest, _, total = _exponentials(call)
    return call.operand - largest - total.log()


def _product_of(name: str, given: dict[str, Any], lanes: Lanes) -> torch.Tensor | None:
    """Return what one of the products gives; None where it is left as it is."""
    first, second = (_tensor(given[key]) for key in PRODUCTS[name])
    batched_first = first if first.dim() == 3 else first[None] if first.dim() == 2 else first[None, None]
    batched_second = second if second.dim() == 3 else second[None] if second.dim() == 2 else second[None, :, None]
    made = lanes.product(batched_first, batched_second)
    if made is None:
        return None
    shape = (*first.shape[:-1], *(second.shape[-1:] if second.dim() > 1 else ()))
    alpha, beta = float(given.get("alpha", 1)), float(given.get("beta", 1))
    product = made.to(first.dtype).reshape(shape) * alpha
    if "self" in PRODUCTS[name] or beta == 0:
        return product
    return _tensor(given["self"]) * beta + product


def _tensor(value: Any) -> torch.Tensor:
    assert isinstance(value, torch.Tensor)
    return value


def _normalised(terms: torch.Tensor, dims: Sequence[int], eps: float, lanes: Lanes) -> torch.Tensor:
    """Return (terms - mean) / sqrt(variance + eps) over these dimensions, the statistics of plain sums."""
    mean, squares = moments_of(terms, dims, lanes)
    return (terms - mean) / (squares / math.prod(terms.shape[d] for d in dims) + eps).sqrt()


def _scaled(normalised: torch.Tensor, given: dict[str, Any], shape: Sequence[int]) -> torch.Tensor:
    weight, bias = (given[name] for name in ("weight", "bias"))
    scaled = normalised if weight is None else normalised * weight.reshape(shape)
    return scaled if bias is None else scaled + bias.reshape(shape)


def _layer_norm(given: dict[str, Any], lanes: Lanes) -> torch.Tensor:
    terms, shape = given["input"], given["normalized_shape"]
    dims = range(terms.dim() - len(shape), terms.dim())
    return _scaled(_normalised(terms, list(dims), given["eps"], lanes), given, shape)


def _group_norm(given: dict[str, Any], lanes: Lanes) -> torch.Tensor:
    terms, channels = given["input"], given["C"]
    groups = terms.reshape(given["N"] * given["group"], -1)
    normalised = _normalised(groups, [1], given["eps"], lanes).reshape(terms.shape)
    return _scaled(normalised, given, [1, channels, *(1 for _ in terms.shape[2:])])


def _batch_norm(given: dict[str, Any], lanes: Lanes) -> torch.Tensor:
    terms = given["input"]
    shape = [1, -1, *(1 for _ in terms.shape[2:])]
    if given["training"]:
        normalised = _normalised(terms, [d for d in range(terms.dim()) if d != 1], given["eps"], lanes)
    else:
        means, variances = (given[name].reshape(shape) for name in ("running_mean", "running_var"))
        normalised = (terms - means) / (variances + given["eps"]).sqrt()
    return _scaled(normalised, given, shape)


_NORMALISED: dict[str, Callable[[dict[str, Any], Lanes], torch.Tensor]] = {
    "native_layer_norm": _layer_norm,
    "native_group_norm": _group_norm,
    "native_batch_norm": _batch_norm,
}
PRODUCTS = {
    "mm": ("self", "mat2"),
    "bmm": ("self", "mat2"),
    "addmm": ("mat1", "mat2"),
    "baddbmm": ("batch1", "batch2"),
    "mv": ("self", "vec"),
    "addmv": ("mat", "vec"),
    "dot": ("self", "tensor"),
}
"""Products of matrices and vectors, and the names of what is multiplied; what else is `self` is added."""
_REDUCTIONS: dict[str, Callable[[_Reduction], Any]] = {
    "sum": lambda call: call.sum(call.operand),
    "mean": lambda call: call.sum(call.operand) / call.count,
    "var": lambda call: call.variance()[0],
    "std": lambda call: call.variance()[0].sqrt(),
    "var_mean": lambda call: call.variance(),
    "std_mean": _std_mean,
    "nansum": lambda call: call.sum(call.operand.nan_to_num(nan=0.0)),
    "cumsum": _cumsum,
    "logsumexp": _log_sum_exp,
    "_softmax": _softmax,
    "_log_softmax": _log_softmax,
    "linalg_vector_norm": _norm,
    "mse_loss": _loss,
    "smooth_l1_loss": _loss,
    "huber_loss": _loss,
    "binary_cross_entropy": _loss,
    "binary_cross_entropy_with_logits": _loss,
    "soft_margin_loss": _loss,
    "multi_margin_loss": _loss,
    "nll_loss_forward": _nll_loss,
    "nll_loss2d_forward": _nll_loss,
}
