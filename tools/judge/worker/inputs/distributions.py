"""The distributions of verification's trials, for a secret share of the timed sets.

A kernel must not tell a timed call from a verifying one by its contents, nor leave out in it what only the trials need.
So a few sets of every renewal are shifted, scaled by rows, lifted in blocks, apart, made of whole numbers, given outliers or
other signs, in place and in one pass: the time that a GPU takes to renew all sets must not depend on which it is.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Self

import torch

from ridgeline.tools.judge.set_count import MIN_SETS
from ridgeline.tools.judge.worker.call_form import Tensors
from ridgeline.tools.judge.worker.finite import is_finite
from ridgeline.tools.judge.worker.inputs.arrangements.lifts import lift_blocks, lift_whole, may_be_apart, set_apart
from ridgeline.tools.judge.worker.inputs.arrangements.linked_inputs import LinkedInputs
from ridgeline.tools.judge.worker.inputs.signs import SIGNS
from ridgeline.tools.judge.worker.inputs.timed_sets import Filling
from ridgeline.tools.judge.worker.inputs.values.structure import (
    has_structural_zeros,
    in_order,
    is_binary,
    is_symmetric,
    mirrored,
)
from ridgeline.tools.judge.worker.inputs.values.symmetry import along_a_line
from ridgeline.tools.judge.worker.inputs.values.transforms import (
    holds_lifted,
    lift_rows,
    outlier_values,
    parts,
    rms_of,
    row_scales,
    silent,
    whole_range,
)
from ridgeline.tools.judge.worker.inputs.variation import Way
from ridgeline.tools.records import trial_names
from ridgeline.tools.records.trial_names import CROWDS, SILENT

_SHARE, _MOST = 8, 4
"""One in _SHARE of the sets, _MOST at most: the reference's time is that of nominal contents."""
_APART = 1 / 4
"""Of the sets that are lifted in blocks: floating-point numbers as in the trial `apart`."""
_OUTLIER_ROWS = 4
"""Rows that get an outlier, of sixteen times as many or more: exponentials of the rest of such a row are denormal."""


class Distribution(StrEnum):
    """A distribution of a timed set's inputs, by the name of the trial that has it."""

    SHIFTED = trial_names.SHIFTED
    ROW_SCALED = trial_names.ROW_SCALED
    BLOCKED = trial_names.BLOCKED
    APART = trial_names.APART
    """Only where there are links: other inputs are apart in a share of the sets that are lifted in blocks."""
    INTEGERS = trial_names.INTEGERS
    OUTLIERS = trial_names.OUTLIERS
    MIXED_SIGNS = trial_names.MIXED_SIGNS
    FEW_SIGNS = trial_names.FEW_SIGNS
    OPPOSITE_SIGNS = trial_names.OPPOSITE_SIGNS
    CROWDED = trial_names.CROWDED
    CROWDED_HIGH = trial_names.CROWDED_HIGH
    SILENT_LATE = trial_names.SILENT_LATE
    SILENT_EARLY = trial_names.SILENT_EARLY
    ALONE = trial_names.ALONE
    """One input is of another draw, as in the trials `alone_NAME`: in some rows wholly, in others in part."""


@dataclass(frozen=True, slots=True)
class SetKind:
    """A kind of a timed set's contents: a distribution, of ALONE one for each trial `alone_NAME`.

    Kinds and not chance decide which input is alone: each is then met in every measurement, see measure/coverage.py.
    """

    distribution: Distribution
    inputs: frozenset[int] = frozenset()  # that get other signs, or that are of another draw
    trial: str = ""  # that differs from its base in these inputs
    size: float = 1.0  # of the trials of SILENT
    is_faint: bool = False  # of these: beyond a part inputs are small, not zero

    @property
    def name(self) -> str:
        """Return the name of the trial that has such contents."""
        return self.trial or self.distribution.value


_WEIGHTS = {Distribution.OUTLIERS: 2}
"""How often each is taken; what is left out for want of large values gains most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """The facts about an input that decide how its distribution may change."""

    is_left: bool  # whole numbers, masks, infinities: as they are
    is_symmetric: bool
    has_zeros: bool  # that are structure
    low: float
    high: float
    rms: float
    order: int

    @classmethod
    def of(cls, tensor: torch.Tensor, order: int) -> Self:
        """Return the traits of an input by one draw of it."""
        is_left = not tensor.is_floating_point() or tensor.numel() == 0 or tensor.dim() == 0
        if is_left or not is_finite(tensor) or is_binary(tensor):
            symmetric = is_symmetric(tensor)
            return cls(is_left=True, is_symmetric=symmetric, has_zeros=False, low=0, high=0, rms=0, order=order)
        return cls(
            is_left=False,
            is_symmetric=is_symmetric(tensor),
            has_zeros=has_structural_zeros(tensor),
            low=float(tensor.min()),
            high=float(tensor.max()),
            rms=rms_of(tensor),
            order=order,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Distributed:
    """A filling some of whose sets have another distribution."""

    filling: Filling
    chosen: Mapping[int, SetKind]  # by set
    traits: tuple[Traits, ...]
    generator: Callable[[str], torch.Generator]
    wholly: frozenset[int]  # the inputs of which no part may be of another draw
    links: LinkedInputs
    lifts: Mapping[int, tuple[int, int]] = field(default_factory=dict)  # whole numbers that are lifted, with their ends
    lifted_dims: int = 0  # the last dimensions of a row that is an outlier as a whole; 0: single numbers are
    crowds: Mapping[str, Mapping[int, Way]] = field(default_factory=dict)  # inputs that become mostly one, by trial

    def write(self, index: int, views: Tensors) -> None:
        """Fill the views of one set."""
        self.filling.write(index, views)
        if index not in self.chosen:
            return
        kind = self.chosen[index]
        for i in kind.inputs if kind.distribution is Distribution.ALONE else ():
            other = self.another(index, i, views[i])
            generator = self.generator(f"{index}:{i}:apart")
            views[i].copy_(other if i in self.wholly else torch.where(parts(other, generator), other, views[i]))
        if self.links.are_in(kind.distribution):
            self._link(views, kind, self.generator(f"{index}:links"))
        crowds = self.crowds.get(kind.distribution, {})
        for i, (view, traits) in enumerate(zip(views, self.traits, strict=True)):
            if i in crowds:
                view.copy_(crowds[i](view, self.generator(f"{index}:{i}:crowded")))
            if i in self.lifts and kind.distribution is Distribution.BLOCKED:
                lift_whole(view, self.generator(f"{index}:{i}"), ends=self.lifts[i])
            if _is_changed(i, traits, kind):
                self._change(view, traits, kind, self.generator(f"{index}:{i}"))

    def another(self, index: int, argument: int, view: torch.Tensor) -> torch.Tensor:
        """Return other contents for one input, as the filling has them."""
        return self.filling.another(index, argument, view)

    def _link(self, views: Tensors, kind: SetKind, generator: torch.Generator) -> None:
        linked = self.links.changed(kind.distribution, views, generator)
        for view, values in zip(views, linked, strict=True):
            if values is not view:
                view.copy_(values)

    def _change(self, view: torch.Tensor, traits: Traits, kind: SetKind, generator: torch.Generator) -> None:
        to = kind.distribution
        if to in SIGNS:
            view.copy_(SIGNS[to](view, generator))
        elif to in SILENT:
            view.copy_(silent(view, 1 / kind.size, at_end=to is Distribution.SILENT_EARLY, is_faint=kind.is_faint))
        elif to is Distribution.OUTLIERS and self.lifted_dims:
            _lift_rows(view, traits, generator, dims=self.lifted_dims)
        else:
            _CHANGES[to](view, traits, generator)
        if traits.order:
            view.copy_(in_order(view, traits.order))


def _is_changed(index: int, traits: Traits, to: SetKind) -> bool:
    """Return whether an input gets another distribution, which is neither another draw nor a crowd."""
    if to.distribution is Distribution.ALONE or to.distribution in CROWDS:
        return False
    return index in to.inputs if to.distribution in SIGNS else not traits.is_left


def place_kinds(kinds: Sequence[SetKind], calls: int, rng: random.Random) -> dict[int, SetKind]:
    """Return which of a block's calls get these distributions: one each, as many as there are calls."""
    count = min(len(kinds), calls)
    return dict(zip(rng.sample(range(calls), count), kinds[:count], strict=True))


def choose_sets(kinds: Sequence[SetKind], n_sets: int, rng: random.Random) -> dict[int, SetKind]:
    """Return which sets, by their place in a block, get which kind: always as many, and one of the first ones.

    The kinds of one distribution share its weight.
    """
    if not kinds:
        return {}
    chosen = rng.sample(range(n_sets), max(1, min(_MOST, n_sets // _SHARE)))
    if min(chosen) >= MIN_SETS:
        chosen[0] = rng.randrange(MIN_SETS)
    sharing = Counter(kind.distribution for kind in kinds)
    weights = [_WEIGHTS.get(kind.distribution, 1) / sharing[kind.distribution] for kind in kinds]
    return {index: rng.choices(kinds, weights)[0] for index in chosen}


def _shift(view: torch.Tensor, traits: Traits, _generator: torch.Generator) -> None:
    if traits.has_zeros:
        there = (view != 0).to(view.dtype)
        view.mul_(3).add_(there, alpha=2)
    else:
        view.mul_(3).add_(2)


def _scale_rows(view: torch.Tensor, traits: Traits, generator: torch.Generator) -> None:
    scale = row_scales(view, generator)
    view.mul_(scale * scale.mT if traits.is_symmetric else scale)


def _lift_blocks(view: torch.Tensor, traits: Traits, generator: torch.Generator) -> None:
    if traits.is_symmetric:
        view.copy_(along_a_line(view, generator))
        return
    if may_be_apart(view.shape) and bool(torch.rand((), generator=generator, device=generator.device) < _APART):
        _set_apart(view, traits, generator)
    else:
        lift_blocks(view, generator, rms=traits.rms, has_negative=traits.low < 0, has_zeros=traits.has_zeros)


def _set_apart(view: torch.Tensor, traits: Traits, generator: torch.Generator) -> None:
    if may_be_apart(view.shape) and not traits.is_symmetric:
        set_apart(view, generator, rms=traits.rms, has_negative=traits.low < 0, has_zeros=traits.has_zeros)


def _make_whole(view: torch.Tensor, traits: Traits, generator: torch.Generator) -> None:
    lowest, highest = whole_range(traits.low, traits.high)
    there = (view != 0).to(view.dtype) if traits.has_zeros else None
    view.random_(lowest, highest + 1, generator=generator)
    if traits.is_symmetric:
        view.copy_(mirrored(view))
    if there is not None:
        view.mul_(there)


def _add_outliers(view: torch.Tensor, traits: Traits, generator: torch.Generator) -> None:
    if traits.is_symmetric:
        return  # on a diagonal alone, where it is no outlier of its row
    count = _number_of_outliers(view.shape[:-1].numel())
    values = outlier_values(view.dtype, torch.Size((count,)), traits.rms, generator, has_negative=traits.low < 0)
    places = tuple(torch.randint(n, (count,), generator=generator, device=generator.device) for n in view.shape)
    view[places] = torch.where(view[places] == 0, 0, values) if traits.has_zeros else values


def _number_of_outliers(rows: int) -> int:
    return max(1, min(_OUTLIER_ROWS, rows // (4 * _OUTLIER_ROWS)))


def _lift_rows(view: torch.Tensor, traits: Traits, generator: torch.Generator, *, dims: int) -> None:
    if traits.is_symmetric or not holds_lifted(view.dtype):
        return
    rows = view.shape[:-dims].numel()
    chosen = torch.randint(rows, (_number_of_outliers(rows),), generator=generator, device=generator.device)
    lift_rows(view, chosen, generator, dims=dims, has_zeros=traits.has_zeros)


_CHANGES: Mapping[Distribution, Callable[[torch.Tensor, Traits, torch.Generator], None]] = {
    Distribution.SHIFTED: _shift,
    Distribution.ROW_SCALED: _scale_rows,
    Distribution.BLOCKED: _lift_blocks,
    Distribution.APART: _set_apart,
    Distribution.INTEGERS: _make_whole,
    Distribution.OUTLIERS: _add_outliers,
}
