"""Choices among equals: which of several equal numbers a sort, a top-k or a k-th value takes is nowhere specified.

The reference runs with its choices made one way: the first of equals, or the last. Where an output of a kernel is such a
choice itself, its own order of equals is taken, and that order alone: what is no order of equals stays wrong. A stable sort
and an argmax are specified: the first of equals.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ridgeline.tools.judge.worker.call_form import Tensors
from ridgeline.tools.judge.worker.dispatch_modes import TorchDispatchMode, named_arguments, operation_name

_AGREEING = 0.5
"""An output is taken for the choice of an operation where more than this share of it are numbers that it may choose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A way to choose among equals: as torch does, or one end first and an output's own order before that."""

    takes_last: bool | None = None  # None: as torch does
    guides: Tensors = ()
    types: tuple[torch.dtype, ...] = ()  # that numbers are rounded to before the first, second, … choice among them
    is_flushed: bool = False  # numbers below the smallest normal one are 0 there


class Choices(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch has no types there
    """Lets a reference choose in one way, and notes what it chooses among."""

    def __init__(self, way: Way) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch has no types there
        self.types: list[torch.dtype] = []  # of the numbers of each choice
        self.is_found = False  # there was a choice of which nothing is specified
        self.is_free = False  # ... among equals, and no output tells of it
        self._way = way

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = operation_name(func)
        given = named_arguments(func, args, kwargs)
        numbers = given.get("self")
        if (
            not _gives_places(func, name)
            or not isinstance(numbers, torch.Tensor)
            or not (numbers.dim() and numbers.numel())
        ):
            return func(*args, **(kwargs or {}))
        call = _Call(func, given, self._way, self._rounded(numbers))
        if name in _SPECIFIED or given.get("stable"):
            return call.as_torch()
        self.is_found = True
        result = call.as_torch() if self._way.takes_last is None else _MADE[name](call)
        self.is_free = self.is_free or call.is_free
        return result

    def _rounded(self, numbers: torch.Tensor) -> torch.Tensor:
        """Return the numbers as the reference has them in its own type where it chooses among them."""
        index = len(self.types)
        self.types.append(numbers.dtype)
        if index >= len(self._way.types) or not numbers.is_floating_point():
            return numbers
        kept = numbers.to(self._way.types[index])
        if self._way.is_flushed:
            kept = torch.where(kept.abs() < torch.finfo(kept.dtype).tiny, 0.0, kept)
        return kept


def _gives_places(func: Any, name: str) -> bool:
    """Return whether an operation chooses among numbers and says which ones it took."""
    is_choice = name in _SPECIFIED or name in _MADE
    return is_choice and not func._schema.is_mutable and (len(func._schema.returns) > 1 or name.startswith("arg"))


class _Call:
    """One choice: what is chosen from, in rows."""

    def __init__(self, func: Any, given: dict[str, Any], way: Way, keys: torch.Tensor) -> None:
        self._func, self._way, self._keys = func, way, keys
        self.given = given
        self._others = {name: value for name, value in given.items() if name != "self"}
        self.numbers: torch.Tensor = given["self"]
        self.dim = int(given.get("dim", -1) if given.get("dim", -1) is not None else -1) % keys.dim()
        self.is_free = False

    def as_torch(self) -> Any:
        """Return what torch chooses; values are those of the numbers that are not rounded."""
        result = self._func(self._keys, **self._others)
        return result if isinstance(result, torch.Tensor) else self._chosen(result[1])

    def _chosen(self, places: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the numbers at these places, and the places."""
        if places.dim() == self.numbers.dim():
            return self.numbers.gather(self.dim, places), places
        return self.numbers.gather(self.dim, places.unsqueeze(self.dim)).squeeze(self.dim), places

    # ---------------------------------------------------------------------------------------------------------- rows

    @property
    def rows(self) -> torch.Tensor:
        """Return what is chosen from, each row a choice of its own."""
        return self._in_rows(self._keys)

    def _in_rows(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.movedim(self.dim, -1).reshape(-1, tensor.shape[self.dim])

    def _shaped(self, rows: torch.Tensor) -> torch.Tensor:
        """Return rows of places in the shape of a result."""
        sizes = [size for d, size in enumerate(self._keys.shape) if d != self.dim]
        return rows.reshape(*sizes, rows.shape[-1]).movedim(-1, self.dim)

    def _guide(self, most: int, agree: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> torch.Tensor | None:
        """Return the output that this choice is, in rows of places; None where none is."""
        rows = self.rows
        best, found = _AGREEING, None
        for output in self._way.guides:
            guide = self._as_rows(output, len(rows), most)
            if guide is None:
                continue
            is_place = (guide >= 0) & (guide < rows.shape[-1])
            share = float((is_place & agree(guide.clamp(0, rows.shape[-1] - 1), rows)).float().mean())
            if share > best:
                best, found = share, torch.where(is_place, guide, -1)
        return found

    def _as_rows(self, output: torch.Tensor, count: int, most: int) -> torch.Tensor | None:
        output = output.long()
        sizes = [size for d, size in enumerate(output.shape) if d != self.dim]
        wanted = [size for d, size in enumerate(self._keys.shape) if d != self.dim]
        if output.dim() == self._keys.dim() and sizes == wanted and 0 < output.shape[self.dim] <= most:
            return self._in_rows(output)
        is_dense = most == 1 or self.dim == self._keys.dim() - 1
        if is_dense and 0 < output.numel() <= count * most and output.numel() % count == 0:
            return output.reshape(count, -1)
        return None

    # -------------------------------------------------------------------------------------------------------- orders

    def order(self, most: int, *, descending: bool, is_sorted: bool = True) -> torch.Tensor:
        """Return the places of each row in their order, equals as the way has them; `most` are looked at."""
        rows = self.rows
        plain = rows.sort(dim=-1, descending=descending, stable=True)
        first = plain.values[:, :most]

        def agree(guide: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
            got = rows.gather(-1, guide)
            if is_sorted:
                return got == first[:, : guide.shape[-1]]
            return got >= first[:, -1:] if descending else got <= first[:, -1:]

        guide = self._guide(most, agree)
        if guide is None:
            looked_at = plain.values[:, : most + 1]
            self.is_free = bool((looked_at[:, 1:] == looked_at[:, :-1]).any())
            if not self._way.takes_last:
                return plain.indices[:, :most]
        rank = self._rank(guide)
        by_rank = rank.argsort(-1)
        places = by_rank.gather(-1, rows.gather(-1, by_rank).sort(dim=-1, descending=descending, stable=True).indices)
        chosen = places[:, :most]
        if is_sorted or guide is None:
            return chosen
        return chosen.gather(-1, rank.gather(-1, chosen).argsort(-1))  # any order is one where none is asked for

    def _rank(self, guide: torch.Tensor | None) -> torch.Tensor:
        """Return when each place's turn is among equals: first those of the guide, in its order."""
        rows = self.rows
        count = rows.shape[-1]
        rank = torch.arange(count, device=rows.device)
        rank = (rank.flip(0) if self._way.takes_last else rank).expand(rows.shape).contiguous()
        if guide is None:
            return rank
        width = guide.shape[-1]
        turns = torch.arange(width, device=rows.device).expand(guide.shape)
        wide = torch.cat([rank + width, rank.new_zeros(len(rows), 1)], -1)  # the last one takes what is no place
        wide.scatter_reduce_(-1, torch.where(guide < 0, count, guide), turns, "amin")
        return wide[:, :count]

    def one_of(self, value: torch.Tensor) -> torch.Tensor:
        """Return a place of each row that has its value: the output's, or that at one end."""
        rows, value = self.rows, value.reshape(-1, 1)
        guide = self._guide(1, lambda guide, rows: rows.gather(-1, guide) == value)
        are_equal = (rows == value) | (rows.isnan() & value.isnan())
        if guide is None:
            self.is_free = bool((are_equal.sum(-1) > 1).any())
        count = rows.shape[-1]
        ends = are_equal.flip(-1) if self._way.takes_last else are_equal
        place = ends.to(torch.uint8).argmax(-1, keepdim=True)
        place = count - 1 - place if self._way.takes_last else place
        if guide is None:
            return place
        return torch.where((guide >= 0) & are_equal.gather(-1, guide.clamp(min=0)), guide, place)

    def so_far(self, value: torch.Tensor) -> torch.Tensor:
        """Return for each element a place up to it that has its value: the output's, or that at one end."""
        rows, value = self.rows, self._in_rows(value)
        count = rows.shape[-1]
        guide = self._guide(count, lambda guide, rows: rows.gather(-1, guide) == value[:, : guide.shape[-1]])
        places = torch.arange(count, device=rows.device).expand(rows.shape)
        are_equal = (rows == value) | (rows.isnan() & value.isnan())
        before = torch.cat([value[:, :1], value[:, :-1]], -1)
        is_new = ~((value == before) | (value.isnan() & before.isnan()))
        starts = is_new if not self._way.takes_last else are_equal
        found = torch.where(starts, places, 0).cummax(-1).values
        if guide is None or guide.shape != rows.shape:
            self.is_free = bool((are_equal & ~is_new)[:, 1:].any())
            return found
        has_value = rows.gather(-1, guide.clamp(min=0)) == value
        return torch.where((guide >= 0) & (guide <= places) & has_value, guide, found)

    # -------------------------------------------------------------------------------------------------------- results

    def sorted(self) -> Any:
        """Return what a sort gives."""
        places = self.order(self.numbers.shape[self.dim], descending=bool(self.given.get("descending", False)))
        return self._chosen(self._shaped(places))

    def largest(self) -> Any:
        """Return what a top-k gives."""
        is_sorted = bool(self.given.get("sorted", True))
        descending = bool(self.given.get("largest", True))
        return self._chosen(self._shaped(self.order(self.given["k"], descending=descending, is_sorted=is_sorted)))

    def single(self) -> Any:
        """Return what an operation gives that has one number of each row, and its place."""
        value = self._func(self._keys, **self._others)[0]
        places = self._shaped(self.one_of(value))
        return self._chosen(places if self.given.get("keepdim") else places.squeeze(self.dim))

    def running(self) -> Any:
        """Return what a running maximum or minimum gives."""
        value = self._func(self._keys, **self._others)[0]
        return self._chosen(self._shaped(self.so_far(value)))


_MADE: dict[str, Callable[[_Call], Any]] = {
    "sort": _Call.sorted,
    "argsort": lambda call: call.sorted()[1],
    "topk": _Call.largest,
    "kthvalue": _Call.single,
    "median": _Call.single,
    "nanmedian": _Call.single,
    "mode": _Call.single,
    "cummax": _Call.running,
    "cummin": _Call.running,
}
_SPECIFIED: Sequence[str] = ("argmax", "argmin", "max", "min")
"""Operations that choose the first of equals, by torch's documentation."""
