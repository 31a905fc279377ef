"""The ways in which inputs are changed that `get_inputs` does not change, or not enough; what is refused varies less."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator

import torch

from ridgeline.tools.judge.worker.call_form import Tensors
from ridgeline.tools.judge.worker.inputs.input_form import InputForm
from ridgeline.tools.judge.worker.inputs.padding import ways_of_zeros
from ridgeline.tools.judge.worker.inputs.permutations import with_two_exchanged
from ridgeline.tools.judge.worker.inputs.variation import Way, ways_beyond, ways_to_vary, with_part_changed
from ridgeline.tools.modelnew.tensor_bits import equal_bits

Change = Callable[..., torch.Tensor]
"""Returns an input of which a secret part is that of another one."""


class InputWays:
    """The way in which each input may vary, by its position."""

    def __init__(self, first: Tensors, second: Tensors) -> None:
        """Find the forms and the widest ways by two draws."""
        pairs = list(zip(first, second, strict=True))
        self.forms = tuple(InputForm.of(*pair) for pair in pairs)
        self._ways = {
            i: _ways_of(form, pair)
            for i, (form, pair) in enumerate(zip(self.forms, pairs, strict=True))
            if form.needs_ways
        }
        self._refused: set[int] = set()
        self._only: int | None = None

    @property
    def varied(self) -> tuple[int, ...]:
        """Return the inputs that are changed beyond what `get_inputs` does: tables, masks, lengths, indices."""
        return tuple(i for i, ways in self._ways.items() if ways)

    @property
    def kept(self) -> tuple[int, ...]:
        """Return the inputs that hold the same values in every trial and every set."""
        return tuple(i for i, ways in self._ways.items() if not ways and self.forms[i].is_alike)

    @property
    def refused(self) -> frozenset[int]:
        """Return the inputs whose other values the reference refuses; a transform leaves them too."""
        return frozenset(self._refused)

    def give_up_way(self, index: int) -> None:
        """Change an input in its next way, or no longer where there is none: the reference refuses this one."""
        self._ways[index] = self._ways[index][1:]
        if not self._ways[index] and self.forms[index].is_alike:
            self._refused.add(index)

    @contextlib.contextmanager
    def varying_only(self, index: int) -> Iterator[None]:
        """Change no other input meanwhile, to find the one that the reference refuses."""
        self._only = index
        try:
            yield
        finally:
            self._only = None

    def changes(self, index: int) -> bool:
        """Return whether an input is changed now beyond what `get_inputs` does."""
        return bool(self._ways.get(index)) and self._only in (None, index)

    def may_change(self, index: int) -> bool:
        """Return whether an input may be another one now: it is changed, or `get_inputs` changes it enough."""
        return self.changes(index) if index in self._ways else self._only in (None, index)

    def varied_in_way(self, index: int, tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """Return an input changed in the way that it has now."""
        return self._ways[index][0](tensor, generator)

    def tweaked(
        self, index: int, tensor: torch.Tensor, other: torch.Tensor, change: Change, generator: torch.Generator
    ) -> torch.Tensor:
        """Return an input changed in one secret place towards another draw, or that draw where no less may change."""
        if index in self._ways and not self.changes(index):
            return tensor
        form = self.forms[index]
        tweak = functools.partial(self._tweak_of(index, change), generator=generator)
        if form.is_ordered_whole:
            changed = tweak(tensor, other)
            return other if equal_bits(changed, tensor) else changed
        is_unlike = form.order != 0 and not form.is_alike
        if tensor.dim() == 1 and not form.is_permuted and (form.is_distinct or is_unlike):
            return other  # a part of another draw would break the order
        changed = tweak(tensor, other)
        return other if form.is_alike and equal_bits(changed, tensor) else changed

    def _tweak_of(self, index: int, change: Change) -> Change:
        """Return how little of an input changes: what a permutation or an order allows."""
        if self.forms[index].is_permuted:
            return with_two_exchanged
        if self.forms[index].is_ordered_whole and self.changes(index):
            return functools.partial(with_part_changed, way=self._ways[index][0])
        return change


def _ways_of(form: InputForm, draws: tuple[torch.Tensor, torch.Tensor]) -> tuple[Way, ...]:
    if form.is_alike:
        return ways_to_vary(draws[0], form.order)
    if form.is_padded:
        return (*ways_of_zeros(), _as_drawn)
    return (*ways_beyond(draws), _as_drawn)


def _as_drawn(tensor: torch.Tensor, _generator: torch.Generator) -> torch.Tensor:
    """Return what `get_inputs` gave: it changes by itself."""
    return tensor
