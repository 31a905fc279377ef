"""The ways in which inputs are changed that `get_inputs` does not change, or not enough; what is refused varies less."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence

import torch

from ridgeline.tools.judge.worker.call_form import Tensors
from ridgeline.tools.judge.worker.inputs.arrangements.lifts import may_be_apart
from ridgeline.tools.judge.worker.inputs.arrangements.links import Ends
from ridgeline.tools.judge.worker.inputs.input_form import InputForm
from ridgeline.tools.judge.worker.inputs.padding import ways_of_zeros
from ridgeline.tools.judge.worker.inputs.values.orders import has_full_row, ways_of_drawn_order, with_part_changed
from ridgeline.tools.judge.worker.inputs.values.permutations import (
    exchanged,
    exchanged_in_rows,
    uniform,
    with_one_replaced,
    with_two_exchanged,
)
from ridgeline.tools.judge.worker.inputs.values.structure import (
    LEAST_ORDERED,
    are_permuted_rows,
    in_order,
    order_of,
    range_of_whole,
    range_without_sentinels,
)
from ridgeline.tools.judge.worker.inputs.variation import Way, some_lowered, ways_of_masks, ways_to_vary
from ridgeline.tools.modelnew.tensor_bits import equal_bits

_AS_DRAWN_WHEN_TIMED = 3 / 4
"""Share of the timed sets in which slots and positions come as `get_inputs` draws them: a caller's are mostly so."""

_LEAD_UP_BY_RULE = 3
"""Numbers that chance would put before their places in two draws: none of them is one then in e**-3 of all cases."""

Change = Callable[..., torch.Tensor]
"""Returns an input of which a secret part is that of another one."""


class InputWays:
    """The way in which each input may vary, by its position."""

    def __init__(
        self,
        first: Tensors,
        second: Tensors,
        is_written: Callable[[], bool] = lambda: False,
        further: Sequence[Callable[[], Tensors]] = (),
        drawn_from: Callable[[], Mapping[int, Ends]] = dict,
    ) -> None:
        """Find the forms and the widest ways by two draws, and by further ones where chance may have its part in these.

        `is_written` tells whether the reference writes to places by index, `drawn_from` the ranges of inputs, where known.
        """
        pairs = list(zip(first, second, strict=True))
        is_written = functools.cache(is_written)
        self.forms = tuple(
            InputForm.of(*pair, is_written, [functools.partial(_one_of, draw, i) for draw in further])
            for i, pair in enumerate(pairs)
        )
        self._shapes = tuple(t.shape for t in first)
        self._ways = {
            i: _ways_of(form, pair, is_written, functools.partial(_range_of, drawn_from, i))
            for i, (form, pair) in enumerate(zip(self.forms, pairs, strict=True))
            if form.needs_ways
        }
        self._is_full = tuple(
            form.is_ordered_whole and has_full_row(draw, form.order)
            for form, draw in zip(self.forms, first, strict=True)
        )
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
    def left(self) -> tuple[int, ...]:
        """Return the inputs of drawn whole numbers, distinct or in order, of which no trial holds but what is drawn."""
        forms = ((i, self.forms[i]) for i in self._ways if not self.forms[i].is_alike and not self.forms[i].is_mask)
        return tuple(i for i, form in forms if (form.is_distinct or form.is_ordered_whole) and self._is_as_drawn(i))

    @property
    def masks(self) -> tuple[int, ...]:
        """Return the masks of rows and columns that keep no shape: the reference takes other places than those drawn."""
        free = (i for i, f in enumerate(self.forms) if f.is_mask and self.changes(i) and not self._is_as_drawn(i))
        return tuple(i for i in free if may_be_apart(self._shapes[i]))

    def _is_as_drawn(self, index: int) -> bool:
        return all(way is _as_drawn for way in self._ways[index][:1])

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

    def varied_in_way(
        self, index: int, tensor: torch.Tensor, generator: torch.Generator, *, is_timed: bool = False
    ) -> torch.Tensor:
        """Return an input changed in the way that it has now; in most timed sets drawn blocks and unit steps stay."""
        if is_timed and self._is_drawn_structure(index) and float(uniform((), generator)) < _AS_DRAWN_WHEN_TIMED:
            return tensor
        return self._ways[index][0](tensor, generator)

    def _is_drawn_structure(self, index: int) -> bool:
        """Return whether an input is drawn, and distinct, or of rows in order into which no other number fits."""
        form = self.forms[index]
        return not form.is_alike and (self._is_full[index] if form.order else form.is_distinct)

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
        is_whole_draw = form.is_distinct and not form.is_permuted and self._is_as_drawn(index)
        if tensor.dim() == 1 and (is_whole_draw or is_unlike):
            return other  # a part of another draw would break the order
        changed = in_order(tweak(tensor, other), form.order if is_unlike else 0)
        return other if form.is_alike and equal_bits(changed, tensor) else changed

    def _tweak_of(self, index: int, change: Change) -> Change:
        """Return how little of an input changes: what a permutation or an order allows."""
        if self.forms[index].is_permuted:
            return with_two_exchanged
        if self.forms[index].is_ordered_whole and self.changes(index):
            return functools.partial(with_part_changed, way=self._ways[index][0])
        if self.forms[index].is_distinct and not self._is_as_drawn(index):
            return _with_three_changed
        return change


def _one_of(draw: Callable[[], Tensors], index: int) -> torch.Tensor:
    return draw()[index]


def _range_of(drawn_from: Callable[[], Mapping[int, Ends]], index: int) -> Ends | None:
    return drawn_from().get(index)


def _ways_of(
    form: InputForm,
    draws: tuple[torch.Tensor, torch.Tensor],
    is_written: Callable[[], bool],
    drawn_from: Callable[[], Ends | None],
) -> tuple[Way, ...]:
    if form.is_alike:
        return ways_to_vary(draws[0], form.order)
    if form.is_padded:
        return (*ways_of_zeros(), _as_drawn)
    return (*_ways_beyond(form, draws, is_written, drawn_from), _as_drawn)


def _ways_beyond(
    form: InputForm,
    draws: tuple[torch.Tensor, torch.Tensor],
    is_written: Callable[[], bool],
    drawn_from: Callable[[], Ends | None],
) -> tuple[Way, ...]:
    """Return the ways to change an input beyond what two draws of it show, the likeliest first.

    A mask has no shape that a kernel may rely on. Whole numbers in order lie anywhere between their ends. Distinct ones come
    in any order. Others above 0 may be 0 or 1, where no sentinel is 0 or more, and links that lead up alone would be no rings;
    not what is drawn from a range that holds these: the smallest of a wide one's numbers is far above its lowest.
    """
    first = draws[0]
    if first.numel() == 0:
        return ()
    if form.is_mask:
        return ways_of_masks(first)
    if not form.is_whole or first.is_complex():
        return ()
    if form.order:
        return ways_of_drawn_order(first, form.order, is_written)
    if form.is_distinct:
        return (exchanged_in_rows,) if are_permuted_rows(first) else (exchanged, exchanged_in_rows)
    lowest, sentinel = (min(ends) for ends in zip(*map(_lowest_and_sentinel, draws), strict=True))
    is_free = (lowest == sentinel or sentinel < 0) and not order_of(first) and not _lead_up(draws, lowest)
    if lowest <= 0 or not is_free:
        return ()
    least, _ = drawn_from() or (lowest, lowest)
    return tuple(
        functools.partial(some_lowered, low=low) for low in sorted({0, 1, -(-lowest // 2)}) if low < min(least, lowest)
    )


def _lowest_and_sentinel(tensor: torch.Tensor) -> tuple[int, int]:
    """Return the smallest of whole numbers, and the sentinel below it, or that number once more."""
    (lowest, _), (sentinel, _) = range_without_sentinels(tensor) or (0, 0), range_of_whole(tensor) or (0, 0)
    return lowest, sentinel


def _lead_up(draws: Sequence[torch.Tensor], lowest: int) -> bool:
    """Return whether whole numbers name places along a dimension, and none from the lowest on a place before its own.

    So it is of both draws, and would hardly be of the same numbers in any order: counts near a dimension's size lie before
    few places.
    """
    largest = max(int(draw.max()) for draw in draws)
    sizes = enumerate(draws[0].shape, -draws[0].dim())
    named = [(axis, size) for axis, size in sizes if size >= max(LEAST_ORDERED, largest)]
    return any(
        not any(_is_before(draw, lowest, axis) for draw in draws)
        and sum(_expected_before(draw, lowest, size) for draw in draws) >= _LEAD_UP_BY_RULE
        for axis, size in named
    )


def _expected_before(tensor: torch.Tensor, lowest: int, size: int) -> float:
    """Return how many numbers from the lowest on would lie before their places, were these drawn anew."""
    return float(((size - 1 - tensor).clamp_min(0).double() * (tensor >= lowest)).sum()) / size


def _is_before(tensor: torch.Tensor, lowest: int, axis: int) -> bool:
    """Return whether a number from the lowest on is less than its own place along a dimension."""
    places = torch.arange(tensor.shape[axis], device=tensor.device).view(-1, *(1 for _ in range(-1 - axis)))
    return bool(((tensor < places) & (tensor >= lowest)).any())


def _with_three_changed(tensor: torch.Tensor, other: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return distinct numbers of which two are exchanged and one is another draw's: no sum of them stays.

    Rows that are permutations keep their numbers.
    """
    changed = with_two_exchanged(tensor, other, generator)
    return changed if are_permuted_rows(tensor) else with_one_replaced(changed, other, generator)


def _as_drawn(tensor: torch.Tensor, _generator: torch.Generator) -> torch.Tensor:
    """Return what `get_inputs` gave: it changes by itself."""
    return tensor
