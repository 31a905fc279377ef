"""Numbers that mean something of their own: those that the reference's source writes, and the ends of an input's range.

A mark between documents is one of them, and often the last of all words. What is written as a tuple or a list may be looked
for as a run. Among floating-point numbers a limit is one that none is equal to by chance, and so is a code for a missing value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch

from ridgeline.tools.judge.worker.inputs.arrangements.links import Ends
from ridgeline.tools.judge.worker.inputs.values.structure import is_within, range_without_sentinels
from ridgeline.tools.judge.worker.inputs.written_numbers import WrittenNumbers

_MARKED = 1 / 16
"""Share of an input's places that hold marks, and of those that hold runs of them."""
_EACH_MARK = 3
"""Places of each mark at least, as long as all take no more than _MOST_MARKED of an input's places."""
_MOST_RUNS = 64
"""Runs that one input holds at most."""
_MOST_MARKED = 1 / 4
_MARKED_FLOATS = 3 / 4
"""Share of a floating-point input's places that hold marks: what less than a quarter of an output says is left to last bits."""
_MOST_OF_FLOATS = 2
"""Marks that come among the numbers of one such input, so that each has more than a quarter of its places."""


@dataclass(frozen=True)
class Marks:
    """The numbers that an input may hold as marks."""

    written: torch.Tensor
    """Those that the source writes, of shape (count,)."""
    runs: tuple[tuple[int, ...], ...]
    """Those that it writes as tuples and lists."""
    drawn_from: Mapping[int, Ends]
    """The ranges that inputs are drawn from, by position, where they are known."""
    thresholds: tuple[float, ...] = ()
    """Floating-point numbers that the source compares with."""
    codes: tuple[float, ...] = ()
    """Those that something is, or is not, equal to: they may be beyond an input's range."""

    @classmethod
    def of(cls, source: str, drawn_from: Mapping[int, Ends]) -> Marks:
        """Return the marks of a reference's source."""
        written = WrittenNumbers(source)
        thresholds, codes = written.thresholds(), written.codes()
        return cls(written.whole(), tuple(written.whole_runs()), drawn_from, thresholds, codes)

    def range_of(self, key: int | str, tensor: torch.Tensor) -> Ends | None:
        """Return the range of an argument's whole numbers, without sentinels; None of anything else."""
        known = self.drawn_from.get(key) if isinstance(key, int) else None
        return known or range_without_sentinels(tensor)

    def has_any(self, index: int, ends: Ends) -> bool:
        """Return whether an input of this range may hold any."""
        return len(self._numbers(index, ends)) > 0

    def placed(self, index: int, tensor: torch.Tensor, ends: Ends, generator: torch.Generator) -> torch.Tensor:
        """Return whole numbers that hold marks in some places; none takes a sentinel's, which is beyond the ends."""
        numbers = self._numbers(index, ends)
        if not len(numbers):
            return tensor
        n_places = tensor.numel()
        count = max(min(_EACH_MARK * len(numbers), int(_MOST_MARKED * n_places)), int(_MARKED * n_places), 1)
        places, order = (_permuted(n, generator) for n in (n_places, len(numbers)))
        places = places[:count]
        chosen = numbers.to(tensor.device, tensor.dtype)[order].repeat(-(-len(places) // len(numbers)))[: len(places)]
        changed = tensor.flatten().clone()
        changed[places] = torch.where(is_within(changed[places], ends), chosen, changed[places])
        return changed.view(tensor.shape)

    def with_runs(self, tensor: torch.Tensor, ends: Ends, generator: torch.Generator) -> torch.Tensor:
        """Return whole numbers whose rows, along the last dimension, hold runs of marks here and there."""
        width = tensor.shape[-1] if tensor.dim() else 0
        runs = [run for run in self.runs if len(run) <= width and ends[0] <= min(run) <= max(run) <= ends[1]]
        changed = tensor.reshape(-1, max(width, 1)).clone()
        for run, rows, columns in _places_of(runs, changed.shape, generator) if runs else ():
            numbers, held = torch.tensor(run, device=tensor.device).to(tensor.dtype), changed[rows, columns]
            changed[rows, columns] = torch.where(is_within(held, ends), numbers, held)
        return changed.view(tensor.shape)

    def has_floats(self, tensor: torch.Tensor) -> bool:
        """Return whether a floating-point input may hold any."""
        return len(self._floats(tensor)) > 0

    def among_floats(self, tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """Return floating-point numbers most of which are a secret mark, or one of two."""
        numbers = self._floats(tensor).to(tensor.device)
        if not len(numbers):
            return tensor
        chosen = numbers[_permuted(len(numbers), generator)[:_MOST_OF_FLOATS]]
        which = torch.randint(len(chosen), tensor.shape, generator=generator, device=generator.device)
        is_mark = torch.rand(tensor.shape, generator=generator, device=generator.device) < _MARKED_FLOATS
        return torch.where(is_mark, chosen[which], tensor)

    def _floats(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return the marks of an input that its type holds: where it rounds one, float64 has it on the other side."""
        low, high = map(float, torch.aminmax(tensor))
        marks = {*(each for each in self.thresholds if low <= each <= high), *self.codes}
        known = torch.tensor(sorted(marks), dtype=torch.float64)
        return known[known.to(tensor.dtype).double() == known].to(tensor.dtype)

    def _numbers(self, index: int, ends: Ends) -> torch.Tensor:
        is_known = self.drawn_from.get(index) == ends  # else its ends have come already
        marks = {*self.written[is_within(self.written, ends)].tolist(), *(ends if is_known else ())}
        return torch.tensor(sorted(marks), dtype=torch.int64)


NO_MARKS = Marks(torch.empty(0, dtype=torch.int64), (), {})
"""Of a source that writes no numbers, and inputs whose ranges are not known."""


def _places_of(
    runs: Sequence[tuple[int, ...]], shape: torch.Size, generator: torch.Generator
) -> Iterator[tuple[tuple[int, ...], torch.Tensor, torch.Tensor]]:
    """Yield runs, secret ones of very many, with the places of their copies: rows (count, 1) and columns (count, length).

    Rows have parts with room for the longest run, each of which holds one copy at most: none is in another's place.
    """
    n_rows, width = shape
    per_row = max(1, width // (2 * max(map(len, runs))))
    room, left = width // per_row, int(_MARKED * n_rows * width)
    parts = _permuted(n_rows * per_row, generator)[:, None]
    chosen = [runs[i] for i in _permuted(len(runs), generator).tolist()[:_MOST_RUNS]]
    of_each, begun = (left // len(chosen), len(parts) // len(chosen)), 0
    for run in chosen:
        count = max(1, min(of_each[0] // len(run), of_each[1]))
        own = parts[begun : begun + count]
        if begun and (count * len(run) > left or not len(own)):
            continue
        begun, left = begun + count, left - count * len(run)
        place = torch.rand(own.shape, generator=generator, device=generator.device)
        begin = own % per_row * room + (place * (room - len(run) + 1)).long()
        columns = begin + torch.arange(len(run), device=generator.device)
        yield run, torch.div(own, per_row, rounding_mode="floor"), columns


def _permuted(count: int, generator: torch.Generator) -> torch.Tensor:
    return torch.randperm(count, generator=generator, device=generator.device)
