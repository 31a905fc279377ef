"""Trivial outputs, graded as a candidate's: one that passes without work shows a gate too loose or a task too easy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from ridgeline.tools.judge.worker.call_form import Tensors
from ridgeline.tools.judge.worker.grading.cases.case import Case
from ridgeline.tools.judge.worker.grading.outputs.expected import Expected
from ridgeline.tools.records.precision import CONSTANT_SPREAD


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """Outputs of which some are trivial. `is_work`: the probe uses the inputs, so it may be the very work that is asked."""

    name: str
    outputs: Tensors
    trivial: tuple[bool, ...]  # which ones; the others are right
    is_work: bool = False
    is_alone: bool = True  # it tells of each output; else only of all together: one may not depend on the inputs


def probes(case: Case, other: Case, dtypes: tuple[torch.dtype, ...]) -> Iterator[Probe]:
    """Yield zeros, ones, the mean, another seed's output, and each argument itself and its best affine map.

    Each probe is made when it is asked for: all together may be more than the device holds.
    """
    everywhere = (True,) * len(dtypes)
    yield Probe(name="zeros", outputs=_each(case, dtypes, lambda e: torch.zeros_like(e.values)), trivial=everywhere)
    yield Probe(name="ones", outputs=_each(case, dtypes, lambda e: torch.ones_like(e.values)), trivial=everywhere)
    if all(e.values.numel() > 1 for e in case.expected):
        means = _each(case, dtypes, lambda e: torch.full_like(e.values, e.mean))
        yield Probe(name="the mean", outputs=means, trivial=everywhere)
    others = _each(other, dtypes, lambda e: e.values)
    yield Probe(name="another input's output", outputs=others, trivial=everywhere, is_alone=False)
    for name, given in _arguments(case):
        alike = tuple(given.shape == e.values.shape and not e.is_exact for e in case.expected)
        if any(alike) and given.numel() > 1:
            itself = _some(case, dtypes, alike, lambda _, x=given: x)  # type: ignore[misc]
            yield Probe(name=f"{name} itself", outputs=itself, trivial=alike)
            if given.is_floating_point():
                affine = _some(case, dtypes, alike, lambda e, x=given: _affine(x, e.values))  # type: ignore[misc]
                yield Probe(name=f"an affine map of {name}", outputs=affine, trivial=alike, is_work=True)


def _arguments(case: Case) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield the inputs, the parameters and the buffers: an output may be a parameter after a small step."""
    yield from ((f"input {index}", given) for index, given in enumerate(case.inputs))
    yield from case.parameters.items()


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """A probe that passes for right."""

    name: str
    is_work: bool
    outputs: frozenset[int]  # which trivial outputs pass
    is_everything: bool  # no output but trivial ones


def passed(probe: Probe, case: Case, passed_by: tuple[bool, ...]) -> Passed | None:
    """Return what passes of a probe, by each output's grade; None where no trivial output does."""
    is_everything = all(probe.trivial) and all(passed_by)
    found = frozenset(
        index
        for index, (is_trivial, is_right, want) in enumerate(zip(probe.trivial, passed_by, case.expected, strict=True))
        if is_trivial and is_right and (is_everything or (probe.is_alone and _is_varied(want)))
    )
    return Passed(name=probe.name, is_work=probe.is_work, outputs=found, is_everything=is_everything) if found else None


def is_constant(case: Case) -> bool:
    """Return whether every expected output has several elements, and all of them are one number.

    A single element tells nothing: beside such an output a case is not constant.
    """
    return all(_is_constant(e) for e in case.expected)


def _is_varied(expected: Expected) -> bool:
    return expected.values.numel() > 1 and not _is_constant(expected)


def _is_constant(expected: Expected) -> bool:
    if expected.values.numel() <= 1:
        return False
    if expected.is_exact:
        return bool((expected.values == expected.values.flatten()[0]).all())
    return expected.spread <= CONSTANT_SPREAD * expected.norm


def _each(case: Case, dtypes: tuple[torch.dtype, ...], make: Callable[[Expected], torch.Tensor]) -> Tensors:
    return tuple(make(e).to(d) for e, d in zip(case.expected, dtypes, strict=True))


def _some(
    case: Case, dtypes: tuple[torch.dtype, ...], chosen: tuple[bool, ...], make: Callable[[Expected], torch.Tensor]
) -> Tensors:
    """Return the expected outputs, and what `make` makes in place of the chosen ones."""
    triples = zip(case.expected, dtypes, chosen, strict=True)
    return tuple((make(e) if is_chosen else e.values).to(d) for e, d, is_chosen in triples)


def _affine(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    centered = x.double()
    centered = centered - centered.mean()
    variance = float(torch.linalg.vector_norm(centered)) ** 2 or 1.0
    slope = float((y - y.mean()).mul_(centered).sum()) / variance
    return centered.mul_(slope).add_(y.mean())
