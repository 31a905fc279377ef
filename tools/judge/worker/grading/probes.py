"""Trivial outputs, graded as a candidate's: one that passes without work shows a gate too loose or a task too easy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from ridgeline.tools.judge.worker.call_form import Tensors
from ridgeline.tools.judge.worker.grading.case import Case
from ridgeline.tools.judge.worker.grading.compare import Expected
from ridgeline.tools.records.precision import CONSTANT_SPREAD


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One trivial set of outputs. `is_work`: the probe uses the inputs, so it may be the very work that is asked."""

    name: str
    outputs: Tensors
    is_work: bool = False


def probes(case: Case, other: Case, dtypes: tuple[torch.dtype, ...]) -> Iterator[Probe]:
    """Yield zeros, ones, the mean, another seed's output, and each input itself and its best affine map.

    Each probe is made when it is asked for: all together may be more than the device holds.
    """
    yield Probe(name="zeros", outputs=_each(case, dtypes, lambda e: torch.zeros_like(e.values)))
    yield Probe(name="ones", outputs=_each(case, dtypes, lambda e: torch.ones_like(e.values)))
    if all(e.values.numel() > 1 for e in case.expected):
        yield Probe(name="the mean", outputs=_each(case, dtypes, lambda e: torch.full_like(e.values, e.mean)))
    yield Probe(name="another input's output", outputs=_each(other, dtypes, lambda e: e.values))
    for index, given in enumerate(case.inputs):
        if all(given.shape == e.values.shape and not e.is_exact for e in case.expected) and given.numel() > 1:
            yield Probe(name=f"input {index} itself", outputs=tuple(given.to(d) for d in dtypes))
            if given.is_floating_point():
                affine = _each(case, dtypes, lambda e, x=given: _affine(x, e.values))  # type: ignore[misc]
                yield Probe(name=f"an affine map of input {index}", outputs=affine, is_work=True)


def is_constant(case: Case) -> bool:
    """Return whether every expected output of more than one element is one number."""
    return all(_is_constant(e) for e in case.expected)


def _is_constant(expected: Expected) -> bool:
    if expected.values.numel() <= 1:
        return False
    if expected.is_exact:
        return bool((expected.values == expected.values.flatten()[0]).all())
    return expected.spread <= CONSTANT_SPREAD * expected.norm


def _each(case: Case, dtypes: tuple[torch.dtype, ...], make: Callable[[Expected], torch.Tensor]) -> Tensors:
    return tuple(make(e).to(d) for e, d in zip(case.expected, dtypes, strict=True))


def _affine(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    centered = x.double()
    centered = centered - centered.mean()
    variance = float(torch.linalg.vector_norm(centered)) ** 2 or 1.0
    slope = float((y - y.mean()).mul_(centered).sum()) / variance
    return centered.mul_(slope).add_(y.mean())
