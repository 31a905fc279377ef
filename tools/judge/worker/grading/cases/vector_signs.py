"""Signs of vectors: that of an eigenvector, of a pair of singular vectors and of a column of Q is nowhere specified.

The reference runs with each vector's sign as an output has it that is such vectors, and what else it makes of them follows:
of a pair (u and v, a column of Q and a row of R) both have it. Where eigenvalues or singular values are equal, any basis of
their space is right: the vectors' own basis is turned to that of the output which is nearest to it (Schönemann, 1966).
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch

from ridgeline.tools.errors import BadReferenceError
from ridgeline.tools.judge.worker.call_form import Tensors
from ridgeline.tools.judge.worker.dispatch_modes import TorchDispatchMode, operation_name
from ridgeline.tools.judge.worker.grading.cases.case import Case, errors_of
from ridgeline.tools.judge.worker.grading.outputs.expected import Expected, expect
from ridgeline.tools.judge.worker.reference import Reference
from ridgeline.tools.records.precision import LAST_BITS
from ridgeline.tools.records.vocabulary import PrecisionClass

_NAMED = re.compile(r"(?<![a-z])eigh|svd|lowrank|\b(linalg_)?qr\b")
"""An operation that gives vectors, as a source names it; `weight` and `neighbour` name none."""
_AGREEING = 0.5
"""An output is taken for an operation's vectors where the mean cosine between the two is above this."""
_NOTHING = 1e-12  # a vector of zeros has the sign that the operation gives


def gives_vectors(source: str) -> bool:
    """Return whether a reference's source names an operation that gives vectors: a run of any other need not be watched."""
    return bool(_NAMED.search(source))


def signed_as(
    reference: Reference, outputs: Sequence[Expected | torch.Tensor]
) -> contextlib.AbstractContextManager[object]:
    """Let a reference give vectors with the signs that outputs have: others would count as what a run differs by from these.

    Yields None where the reference names no operation that gives vectors.
    """
    if not gives_vectors(reference.source):
        return contextlib.nullcontext()
    return VectorSigns(tuple(o if isinstance(o, torch.Tensor) else o.values for o in outputs))


def as_expected(
    reference: Reference, native: Tensors, expected: Sequence[Expected], run: Callable[[], Tensors]
) -> Tensors:
    """Return the reference's own outputs, those in floating numbers by a run with the signs of the expected ones."""
    with signed_as(reference, expected) as signs:
        outputs = native if signs is None else run()
    return tuple(n if e.is_exact else o for o, n, e in zip(outputs, native, expected, strict=True))


def signed_case(reference: Reference, case: Case, outputs: Tensors) -> Case | None:
    """Return a case as it is with the signs of the vectors among these outputs; integers and bools stay as they are.

    None where the reference gives no vectors, or refuses that.
    """
    if not gives_vectors(reference.source):
        return None
    signs = VectorSigns(outputs)
    try:
        with torch.no_grad(), signs:
            doubles = reference.run_double(case.inputs, case.parameters)
        if not signs.is_found:
            return None
        triples = zip(doubles, outputs, case.expected, strict=True)
        expected = tuple(
            was if was.is_exact else replace(expect(d, o.dtype), least_spread=was.least_spread) for d, o, was in triples
        )
        exact = tuple(e.values for e in expected)  # what is not looked at of floating ones
        with torch.no_grad():
            native = as_expected(
                reference, exact, expected, lambda: reference.in_own_type(case.inputs, case.parameters)
            )
    except BadReferenceError:
        return None
    own = {PrecisionClass.FP32: errors_of(native, expected)}
    return Case(case.name, case.inputs, case.parameters, expected, own, made=case.made, fits=case.fits)


class VectorSigns(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch has no types there
    """Lets a reference's operations give vectors with the signs of outputs, and notes whether there are such operations."""

    def __init__(self, guides: Tensors) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch has no types there
        self.is_found = False
        self._guides = tuple(g for g in guides if g.is_floating_point() and g.dim() > 1 and g.numel())

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        turned = _TURNED.get(operation_name(func))
        if turned is None or func._schema.is_mutable or any(each.is_complex() for each in result):
            return result
        wide = tuple(each.double() for each in result)
        if not all(bool(each.isfinite().all()) for each in wide):
            return result
        self.is_found = True
        return tuple(each.to(own.dtype) for each, own in zip(turned(wide, self._guides), result, strict=True))


# ------------------------------------------------------------------------------------------------------------ operations


def _eigh(result: Tensors, guides: Tensors) -> Tensors:
    values, vectors = result
    turn = _turn(vectors, _groups(values, values.shape[-1]), guides)
    return result if turn is None else (values, vectors @ turn)


def _svd(result: Tensors, guides: Tensors) -> Tensors:
    left, values, right = result
    if not left.numel() or not right.numel():
        return result
    sizes = left.shape[-1], right.shape[-2]
    turns = [_turn(v, _groups(values, size), guides) for v, size in zip((left, right.mT), sizes, strict=True)]
    shared = turns[1] if turns[0] is None else turns[0]
    if shared is None:
        return result
    both = [_joined(shared, turn, values, size) for turn, size in zip(turns, sizes, strict=True)]
    return left @ both[0], values, both[1].mT @ right


def _qr(result: Tensors, guides: Tensors) -> Tensors:
    q, r = result
    places = torch.arange(r.shape[-2], device=r.device).clamp(max=min(r.shape[-1], r.shape[-2] - 1))
    turn = _turn(q, places, guides) if q.numel() else None  # beyond R's columns any basis is right
    turn = _turn(r.mT, torch.arange(r.shape[-2], device=r.device), guides) if turn is None else turn
    if turn is None:
        return result
    return q @ turn if q.numel() else q, turn.mT @ r


_TURNED: dict[str, Callable[[Tensors, Tensors], Tensors]] = {
    "_linalg_eigh": _eigh,
    "_linalg_svd": _svd,
    "linalg_qr": _qr,
}


def _groups(values: torch.Tensor, size: int) -> torch.Tensor:
    """Return which of ordered values are equal but for last bits: a number for each; those beyond the last value are 0."""
    values = _padded(values, size)
    limit = LAST_BITS * values.abs().amax(-1, keepdim=True)
    return torch.nn.functional.pad(values.diff(dim=-1).abs() > limit, (1, 0)).long().cumsum(-1)


def _joined(shared: torch.Tensor, own: torch.Tensor | None, values: torch.Tensor, size: int) -> torch.Tensor:
    """Return how one side's vectors are turned: with the other side, but for those of singular values of 0."""
    least, kept = _padded(values, size), min(shared.shape[-1], size)
    is_nothing = least <= LAST_BITS * values.amax(-1, keepdim=True)
    eye = torch.eye(size, dtype=shared.dtype, device=shared.device).expand(*shared.shape[:-2], size, size)
    turn = eye.clone()
    turn[..., :kept, :kept] = shared[..., :kept, :kept]
    return torch.where(is_nothing[..., :, None] | is_nothing[..., None, :], eye if own is None else own, turn)


def _padded(values: torch.Tensor, size: int) -> torch.Tensor:
    return torch.nn.functional.pad(values, (0, size - values.shape[-1]))


# ---------------------------------------------------------------------------------------------------------------- guides


def _turn(columns: torch.Tensor, groups: torch.Tensor, guides: Tensors) -> torch.Tensor | None:
    """Return what turns columns to those of the output that they are: signs, and within groups a basis; None for no output."""
    if not columns.numel():
        return None
    is_one_group = groups[..., :, None] == groups[..., None, :]
    unit, best, found = _unit(columns), _AGREEING, None
    for guide, is_given in _arranged(columns, guides):
        overlap = (unit.mT @ torch.where(is_given, _unit(guide), unit)).where(is_one_group, 0.0)
        share = float(torch.linalg.vector_norm(overlap, dim=-2)[..., is_given].mean())
        if share > best:
            best, found = share, overlap
    if found is None:
        return None
    if bool((is_one_group.sum(-1) == 1).all()):
        return torch.diag_embed(torch.where(found.diagonal(dim1=-2, dim2=-1) < 0, -1.0, 1.0).to(columns.dtype))
    u, _, vh = torch.linalg.svd(found + _NOTHING * torch.eye(found.shape[-1], dtype=found.dtype, device=found.device))
    turn: torch.Tensor = u @ vh
    return turn


def _arranged(columns: torch.Tensor, guides: Tensors) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Yield outputs in the columns' shape, and which columns they have: all, the first or the last, in either order."""
    size = columns.shape[-1]
    for guide in guides:
        for given in (guide.double(), guide.double().mT):
            if given.shape[:-1] != columns.shape[:-1] or given.shape[-1] > size:
                continue
            for start in {0, size - given.shape[-1]}:
                places = torch.arange(size, device=given.device)
                is_given = (places >= start) & (places < start + given.shape[-1])
                padding = (start, size - start - given.shape[-1])
                for each in (given, given.flip(-1)):
                    yield torch.nn.functional.pad(each.nan_to_num(0.0, 0.0, 0.0), padding), is_given


def _unit(columns: torch.Tensor) -> torch.Tensor:
    """Return columns of length one; those of nothing stay so."""
    lengths = torch.linalg.vector_norm(columns, dim=-2, keepdim=True)
    return torch.where(lengths > 0, columns / lengths, 0.0)
