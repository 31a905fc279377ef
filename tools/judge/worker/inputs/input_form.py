"""The form of an input: what all its draws have in common, as far as two of them show it, and some more where chance may."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

import torch

from ridgeline.tools.judge.worker.inputs.padding import are_padded
from ridgeline.tools.judge.worker.inputs.values.structure import (
    are_distinct,
    are_permuted_rows,
    common_order,
    have_same_values,
    is_mask,
    range_of_whole,
)
from ridgeline.tools.modelnew.tensor_bits import equal_bits

_NO_ACCIDENT = 8.0
"""Pairs of equal numbers that draws of this range would hold by chance, where none occurs twice by rule."""

FurtherDraws = Sequence[Callable[[], torch.Tensor]]
"""What gives further draws of an input, each when it is asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputForm:
    """The facts that all draws of one input have in common."""

    is_alike: bool  # `get_inputs` always gives these values
    is_mask: bool
    order: int  # of every row, see `order_of`; 0: none, or it is a mask
    is_whole: bool  # integers and bools
    is_distinct: bool  # whole numbers none of which occurs twice, or a permutation in each row
    is_permuted: bool  # such numbers, the same ones in every draw, in no order
    is_padded: bool  # floating-point numbers and zeros at places that differ between draws

    @classmethod
    def of(
        cls,
        first: torch.Tensor,
        second: torch.Tensor,
        is_written: Callable[[], bool] = lambda: False,
        further: FurtherDraws = (),
    ) -> Self:
        """Return the form of an input by two draws of it, and by further ones where two may be distinct by accident.

        `is_written` tells whether the reference writes to places by index.
        """
        is_both_mask = is_mask(first) and is_mask(second)
        order = 0 if is_both_mask else common_order(first, second)
        is_whole = not first.is_floating_point()
        is_distinct = is_whole and _are_distinct(first, second, is_written, further)
        return cls(
            is_alike=equal_bits(first, second),
            is_mask=is_both_mask,
            order=order,
            is_whole=is_whole,
            is_distinct=is_distinct,
            is_permuted=is_distinct and not order and have_same_values(first, second),
            is_padded=not is_both_mask and not order and are_padded(first, second),
        )

    @property
    def is_ordered_whole(self) -> bool:
        """Return whether it is whole numbers in order: offsets, segments."""
        return self.is_whole and self.order != 0

    @property
    def is_map(self) -> bool:
        """Return whether it is a permutation or whole numbers in order, and the same everywhere."""
        return self.is_alike and (self.is_permuted or self.is_ordered_whole)

    @property
    def needs_ways(self) -> bool:
        """Return whether it has to be changed beyond what `get_inputs` does."""
        return self.is_alike or self.is_whole or self.is_mask or self.is_padded

    @property
    def may_be_lifted(self) -> bool:
        """Return whether it is whole numbers of which a larger one may take any other's place: scores, pixels, labels."""
        return self.is_whole and not (self.is_alike or self.is_mask or self.order or self.is_distinct)


def _are_distinct(
    first: torch.Tensor, second: torch.Tensor, is_written: Callable[[], bool], further: FurtherDraws
) -> bool:
    """Return whether no number occurs twice in any draw, or in a row of it, and not by accident.

    A few numbers of a wide range are distinct by accident: lengths, tokens. They count as distinct where they may be places
    to write to, of which one that is written twice has no certain value.
    """
    if first.dim() > 1 and first.shape[-1] < first.numel() and are_permuted_rows(first) and are_permuted_rows(second):
        return True
    if not (are_distinct(first) and are_distinct(second)):
        return False
    if have_same_values(first, second):
        return True
    wanted = math.ceil(_NO_ACCIDENT / _equal_by_chance(first, second)) - 2
    if wanted <= len(further):
        return all(are_distinct(draw()) for draw in further[: max(0, wanted)])
    return is_written()


def _equal_by_chance(first: torch.Tensor, second: torch.Tensor) -> float:
    """Return how many pairs of equal numbers a draw would hold, were its numbers any of the range of two draws."""
    ends = [end for each in (first, second) for end in range_of_whole(each) or ()]
    pairs = first.numel() * (first.numel() - 1) / 2
    return pairs / (max(ends) - min(ends) + 1) if ends else math.inf
