"""New contents of all timed sets, and whether a set still holds them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

import torch

from ridgeline.tools.judge.worker.call_form import Tensors
from ridgeline.tools.judge.worker.finite import has_finite_sum
from ridgeline.tools.judge.worker.inputs.values.structure import in_order, is_binary, is_symmetric, mirrored
from ridgeline.tools.modelnew.tensor_bits import equal_bits

WEIGHTS = (0.15, 0.85)
"""Range of the second draw's weight in a mixture: never one draw alone, so every set has contents of its own."""
OFFSETS = 1 << 16
"""Number of places in the table of weights at which a set's weights may begin."""


class Blend(Enum):
    """Ways to make a third draw of one input from two."""

    MIXED = "a weight for each element"
    CHOSEN = "one or the other for each element: integers, masks"
    CHOSEN_IN_PAIRS = "one or the other for each pair of elements: symmetric ones, which stay symmetric"
    SYMMETRIC = "rows and columns of both times their own factors: as symmetric and as definite as the draws"


class Filling(Protocol):
    """New contents of all sets."""

    def write(self, index: int, views: Tensors) -> None:
        """Fill the views of one set."""

    def another(self, index: int, argument: int, view: torch.Tensor) -> torch.Tensor:
        """Return other contents for one input of a set than `write` gives it: of another draw, or mixed otherwise."""


def is_intact(filling: Filling, index: int, views: Tensors) -> bool:
    """Return whether the views of a set still hold what `write` put there, bit by bit."""
    expected = tuple(torch.empty_like(view) for view in views)
    filling.write(index, expected)
    return all(equal_bits(view, fresh) for view, fresh in zip(views, expected, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Draws:
    """A draw of its own for every set, made when it is written and never kept."""

    draw: Callable[[int], Tensors]

    def write(self, index: int, views: Tensors) -> None:
        """Fill the views of one set."""
        for view, value in zip(views, self.draw(index), strict=True):
            view.copy_(value)

    def another(self, index: int, argument: int, view: torch.Tensor) -> torch.Tensor:
        """Return one input of a draw that no set has."""
        return self.draw(-1 - index)[argument].to(view.dtype)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mixtures:
    """A mixture of the same two draws for every set, with weights of its own.

    With one weight for a whole set all contents would lie on a line, and so would all outputs of a linear reference: two
    outputs would give every other.
    """

    first: Tensors
    second: Tensors
    blends: tuple[Blend, ...]
    orders: tuple[int, ...]
    finite: tuple[torch.Tensor | None, ...]  # where an input may be mixed: not at a mask's infinities; None: everywhere
    weights: torch.Tensor  # a table that every set reads from another offset on
    offsets: Sequence[int]
    own: Mapping[int, Callable[[int], torch.Tensor]]  # inputs that no mixture keeps as they are, by a draw for each set

    def write(self, index: int, views: Tensors) -> None:
        """Fill the views of one set."""
        for i, view in enumerate(views):
            if i in self.own:
                view.copy_(self.own[i](index))
            else:
                self._write_one(i, view, self.offsets[index])

    def another(self, index: int, argument: int, view: torch.Tensor) -> torch.Tensor:
        """Return one input with other weights: with the same ones, copies of each other stay copies."""
        if argument in self.own:
            return self.own[argument](-1 - index)
        other = torch.empty_like(view)
        self._write_one(argument, other, (self.offsets[index] + OFFSETS // 2) % OFFSETS)
        return other

    def _write_one(self, i: int, view: torch.Tensor, start: int) -> None:
        first, finite = self.first[i], self.finite[i]
        self._blend(self.blends[i], view, (first, self.second[i]), start)
        if finite is not None:
            torch.where(finite, view, first, out=view)
        if self.orders[i]:
            view.copy_(in_order(view, self.orders[i]))

    def _blend(self, blend: Blend, view: torch.Tensor, draws: tuple[torch.Tensor, torch.Tensor], start: int) -> None:
        if blend is Blend.SYMMETRIC:
            self._blend_symmetric(view, draws, start)
            return
        weights = self.weights[start : start + view.numel()].view(view.shape)
        if blend in (Blend.CHOSEN, Blend.CHOSEN_IN_PAIRS):
            weights = mirrored(weights) if blend is Blend.CHOSEN_IN_PAIRS else weights
            torch.where(weights < sum(WEIGHTS) / 2, *draws, out=view)
        else:
            torch.lerp(*draws, weights.to(view.dtype), out=view)

    def _blend_symmetric(self, view: torch.Tensor, draws: tuple[torch.Tensor, torch.Tensor], start: int) -> None:
        """Write D A D + E B E of draws A and B: each pair is mixed otherwise, and what is definite stays so."""
        size = view.shape[-1]
        weights = self.weights[start + 1 : start + 1 + size]
        factors = 0.4 + 0.7 * self.weights[start + 1 + size : start + 1 + 2 * size]
        first, second = factors * torch.sqrt(1 - weights), factors * torch.sqrt(weights)  # within the draws' range
        torch.mul(draws[0], torch.outer(first, first).to(view.dtype), out=view)
        view.add_(draws[1] * torch.outer(second, second).to(view.dtype))


@dataclass(frozen=True, slots=True, kw_only=True)
class WithTrial:
    """A filling one of whose sets has the inputs of a trial."""

    filling: Filling
    index: int
    inputs: Tensors

    def write(self, index: int, views: Tensors) -> None:
        """Fill the views of one set."""
        if index != self.index:
            self.filling.write(index, views)
            return
        for view, value in zip(views, self.inputs, strict=True):
            view.copy_(value)

    def another(self, index: int, argument: int, view: torch.Tensor) -> torch.Tensor:
        """Return other contents for one input, as the filling has them."""
        return self.filling.another(index, argument, view)


def blend_of(first: torch.Tensor, second: torch.Tensor) -> Blend:
    """Return how these two draws of one input may be mixed."""
    are_symmetric = is_symmetric(first) and is_symmetric(second)
    if not first.is_floating_point() or (is_binary(first) and is_binary(second)):
        return Blend.CHOSEN_IN_PAIRS if are_symmetric else Blend.CHOSEN
    return Blend.SYMMETRIC if are_symmetric else Blend.MIXED


def finite_in_both(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor | None:
    """Return where two draws are finite, None when they are everywhere: a mixture with an infinity is NaN."""
    if not first.is_floating_point() or (has_finite_sum(first) and has_finite_sum(second)):
        return None
    finite = torch.isfinite(first) & torch.isfinite(second)
    return None if bool(finite.all()) else finite
