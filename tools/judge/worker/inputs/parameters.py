"""Values for parameters and buffers: random ones, those of order one, and those with one row that differs.

A kernel has to compute from these tensors too, so none keeps the value that the model was made with. Floating values
become random around their own. Whole numbers get other values within the range that they show: a permutation is
permuted, an index or a length becomes smaller. Masks stay. What the reference refuses varies in a narrower way.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Collection, Iterator, Mapping

import torch

from ridgeline.tools.judge.worker.inputs.arrangements.square_matrices import matrix_axes
from ridgeline.tools.judge.worker.inputs.parameter_ways import (
    RANDOM,
    Change,
    ParameterWay,
    has_fragile_structure,
    lists_whole_numbers,
    ways_after_random,
    ways_at_first,
)
from ridgeline.tools.judge.worker.inputs.signs import have_one_sign
from ridgeline.tools.judge.worker.inputs.values.structure import in_order, order_of
from ridgeline.tools.judge.worker.inputs.values.transforms import rms_of
from ridgeline.tools.records.trial_names import NOMINAL

SMALL = 0.02
"""A tensor is small when its rms is below this part of order one: a branch behind it may be below every gate."""
_FEW_ROWS = 4
_LEAST_OF_FEW = 16
"""So few rows of so many numbers are no matrix that mixes rows and columns, but logits or rates that are compared."""
_AS_MADE = 1 / 2  # of the draws of a floating-point buffer of whole numbers, which others may have to be equal to
_DRAWS = 4  # that leave a tensor as it is show a way that cannot change it

Values = dict[str, torch.Tensor]


class ParameterSource:
    """Secret values for the parameters and buffers of one model; the same label gives the same values."""

    def __init__(
        self,
        defaults: Values,
        *,
        buffers: frozenset[str],
        untrained: frozenset[str],
        varied: frozenset[str] | None,
        generator: Callable[[str], torch.Generator],
    ) -> None:
        """Make no value yet.

        Args:
            defaults: the values that the model was made with.
            buffers: the names among them that are buffers.
            untrained: those of parameters that no training changes.
            varied: the names that get other values; None: all.
            generator: makes the generator that belongs to a label.
        """
        self.defaults = defaults
        self._generator = generator
        arguments = {n: t for n, t in defaults.items() if (varied is None or n in varied) and t.numel()}
        kept_in_order = buffers | untrained
        ways = {
            n: ways_at_first(t, is_buffer=n in buffers, stays_in_order=n in kept_in_order) for n, t in arguments.items()
        }
        self._ways = {n: each for n, each in ways.items() if each}
        self._arguments = tuple(arguments)
        self._orders = {n: order for n in self._ways if n in kept_in_order and (order := order_of(defaults[n]))}
        self._listed = frozenset(n for n in self._ways if n in buffers and lists_whole_numbers(defaults[n]))
        self.are_ways_known = False
        """Until then every draw differs from the model's own values, of which a reference takes any."""
        self._only: frozenset[str] | None = None

    @property
    def varied(self) -> tuple[str, ...]:
        """Return the names of the tensors that differ between labels, or that do so meanwhile."""
        return tuple(n for n in self._arguments if n in self._ways and (self._only is None or n in self._only))

    @property
    def kept(self) -> tuple[str, ...]:
        """Return the names of the tensors that hold the same values in every trial and every block."""
        return tuple(n for n in self._arguments if n not in self._ways)

    @functools.cached_property
    def fragile(self) -> frozenset[str]:
        """The names of the tensors with structure that random values break, and that some draws keep by chance."""
        return frozenset(n for n in self._arguments if self._is_random(n) and has_fragile_structure(self.defaults[n]))

    def _is_random(self, name: str) -> bool:
        return self._ways.get(name, ())[:1] == (RANDOM,)

    def give_up_way(self, name: str) -> None:
        """Change a tensor in its next way that does change it, or no longer where there is none."""
        default = self.defaults[name]
        ways = ways_after_random(default) if self._is_random(name) else self._ways[name][1:]
        while ways and all(torch.equal(self._drawn(name, ways[0], f"any:{i}"), default) for i in range(_DRAWS)):
            ways = ways[1:]
        del self._ways[name]
        if ways:
            self._ways[name] = ways

    def _drawn(self, name: str, way: ParameterWay, label: str) -> torch.Tensor:
        return way.draw(self.defaults[name], self._generator(f"{label}:{name}"))

    @contextlib.contextmanager
    def varying_only(self, names: Collection[str]) -> Iterator[None]:
        """Leave all other tensors as the model was made with them meanwhile."""
        before, self._only = self._only, frozenset(names)
        try:
            yield
        finally:
            self._only = before

    @property
    def of_one_sign(self) -> tuple[str, ...]:
        """Return the names of the tensors whose random values all have the sign of the default ones."""
        draws = (self.defaults, self.random("sign 0"), self.random("sign 1"))
        return tuple(n for n in self.varied if have_one_sign([values[n] for values in draws]))

    # ---------------------------------------------------------------------------------------------------------- values

    def random(self, label: str) -> Values:
        """Return random values: none keeps a default such as weight 1 and bias 0."""
        generator = self._generator(label + ":parameters")
        return {n: self._randomly(n, t, generator) for n, t in self.defaults.items()}

    def _randomly(self, name: str, tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        if name not in self._ways or (self._only is not None and name not in self._only):
            return tensor
        return self._ways[name][0].draw(tensor, generator)

    def usual(self, label: str) -> Values:
        """Return random values as trials and blocks have them: in some a buffer of whole numbers is as the model makes it."""
        values = self.random(label)
        listed = self._listed if self.are_ways_known else ()
        return values | {n: self.defaults[n] for n in listed if self._is_as_made(n, label)}

    def unlike(self, others: Mapping[str, torch.Tensor], values: Mapping[str, torch.Tensor], label: str) -> Values:
        """Return the values, those that may be as the model makes them random where the others' are so too."""
        alike = [n for n in self._listed if torch.equal(values[n], others[n])]
        return {**values} | {n: t for n, t in (self.random(label) if alike else {}).items() if n in alike}

    def _is_as_made(self, name: str, label: str) -> bool:
        """Return whether a label has the model's own values of a buffer: no number is equal to one that is drawn at random."""
        if label in NOMINAL:
            return True
        generator = self._generator(f"{label}:as made:{name}")
        return bool(torch.rand((), generator=generator, device=generator.device) < _AS_MADE)

    def with_seldom(self, label: str) -> Values:
        """Return random values, those of whole numbers as only some draws have them; nothing where there are none such."""
        ways = {n: way for n in self.varied if (way := self._ways[n][0].seldom) is not None}
        drawn = {n: way(self.defaults[n], self._generator(f"{label}:seldom:{n}")) for n, way in ways.items()}
        return self.random(label) | drawn if drawn else {}

    @property
    def small(self) -> tuple[str, ...]:
        """Return the names of the tensors whose random values are far below order one."""
        return tuple(self._factors)

    @functools.cached_property
    def _factors(self) -> dict[str, float]:
        """The factor that brings each small tensor to order one; found once, since asking a GPU for numbers takes time.

        What may not be random has none: a bound that the reference asserts is one of its size.
        """
        values = self.random("size")
        factors = {n: _factor_to_order_one(values[n]) for n in self.varied if self._ways[n][0].is_free}
        return {n: factor for n, factor in factors.items() if factor > 1 / SMALL}

    def in_their_order(self, values: Mapping[str, torch.Tensor]) -> Values:
        """Return the values, those of buffers that the model makes in order as it does."""
        return {n: in_order(t, self._orders.get(n, 0)) for n, t in values.items()}

    def of_order_one(self, label: str) -> Values:
        """Return random values, the small ones times what brings them to order one."""
        values, factors = self.usual(label), self._factors
        return {n: (t.double() * factors[n]).to(t.dtype) if n in factors else t for n, t in values.items()}

    def enlarged(self, label: str, factor: float) -> Values:
        """Return random values, the matrices among them times a factor."""
        values = self.usual(label)
        return values | {n: values[n] * factor for n in self.free if not _is_vector(values[n])}

    def with_large_vectors(self, label: str, largest: float) -> Values:
        """Return random values, each vector among them times what brings its largest number to this size, or as it is."""
        values = self.usual(label)
        vectors = {n: values[n] for n in self.free if _is_vector(values[n])}
        return values | {n: t * max(1.0, largest / _largest_of(t)) for n, t in vectors.items()}

    def lessened(self, label: str, factor: float) -> Values:
        """Return random values, those of one sign over a factor."""
        values = self.usual(label)
        return values | {n: values[n] / factor for n in self.free_of_one_sign}

    def moved(self, label: str, by: float, *, vectors: bool) -> Values:
        """Return random values, to the vectors or to the matrices of either sign among them this added."""
        values = self.usual(label)
        return values | {n: values[n] + by for n in self.free_to_move(vectors=vectors)}

    def with_square(self, label: str, change: Callable[[torch.Tensor], torch.Tensor], *, others: float) -> Values:
        """Return random values, the square matrices among them changed, the others times a factor."""
        values, square = self.usual(label), self.square
        return values | {n: change(values[n]) if n in square else values[n] * others for n in self.free}

    def with_each(
        self, label: str, change: Callable[[torch.Tensor, torch.Generator], torch.Tensor], *, of_all: bool = False
    ) -> Values:
        """Return random values, each free one that is a square matrix changed, or each one in no order."""
        values = self.usual(label)
        names = [n for n in self.free if n not in self._orders] if of_all else self.square
        return values | {n: change(values[n], self._generator(f"{label}:each:{n}")) for n in names}

    @property
    def square(self) -> tuple[str, ...]:
        """Return the names of the square matrices in no order whose values may be of any size."""
        return tuple(n for n in self.free if matrix_axes(self.defaults[n].shape) is not None and n not in self._orders)

    def free_to_move(self, *, vectors: bool) -> tuple[str, ...]:
        """Return the names of the vectors, or of the matrices, whose random values are of either sign."""
        of_one_sign = self.free_of_one_sign
        return tuple(n for n in self.free if n not in of_one_sign and _is_vector(self.defaults[n]) is vectors)

    @functools.cached_property
    def free_of_one_sign(self) -> tuple[str, ...]:
        """The names of such tensors whose random values have one sign; asked for once all ways are known."""
        of_one_sign = self.of_one_sign
        return tuple(n for n in self.free if n in of_one_sign)

    @functools.cached_property
    def free(self) -> tuple[str, ...]:
        """The names of the tensors whose values may be of any size; asked for once all ways are known."""
        return tuple(n for n in self.varied if self._ways[n][0].is_free)

    def has_free(self, *, vectors: bool) -> bool:
        """Return whether there is such a vector, or such a matrix."""
        return any(_is_vector(self.defaults[n]) is vectors for n in self.free)

    def with_slices(self, values: Mapping[str, torch.Tensor], label: str) -> Values:
        """Return the values with one secret row of each changed, one element where there are no rows."""
        return self._changed(values, label, lambda way: way.with_slice)

    def with_elements(self, values: Mapping[str, torch.Tensor], label: str) -> Values:
        """Return the values with one secret element of each moved far, where its way allows it."""
        return self._changed(values, label, lambda way: way.with_element)

    def _changed(self, values: Mapping[str, torch.Tensor], label: str, by: Callable[[ParameterWay], Change]) -> Values:
        generator, others = self._generator(label + ":parameter rows"), self.random(label)
        ways = self._ways
        return {n: by(ways[n][0])(t, others[n], generator) if n in ways else t for n, t in values.items()}

    def with_one_place(self, name: str, tensor: torch.Tensor, other: torch.Tensor, label: str) -> torch.Tensor:
        """Return a tensor with one secret row of `other`, or with one element changed: far, where its way allows it."""
        generator, way = self._generator(f"{label}:place"), self._ways[name][0]
        by_element = bool(torch.rand((), generator=generator, device=generator.device) < 1 / 2)
        change = way.with_element if by_element else way.with_slice
        return change(tensor, other, generator)


def _factor_to_order_one(tensor: torch.Tensor) -> float:
    """Return order one / rms, where order one is 1 for a vector, 1 / sqrt(elements of a row) for weights.

    A product with such weights is as large as what it multiplies.
    """
    row = 1 if _is_vector(tensor) else tensor.numel() // tensor.shape[0]
    return 1 / (_rms_of(tensor) * math.sqrt(row))


def _is_vector(tensor: torch.Tensor) -> bool:
    """Return whether a tensor is one row, or a few long ones: gates that are compared with each other."""
    sizes = sorted(size for size in tensor.shape if size > 1)
    return len(sizes) < 2 or (len(sizes) == 2 and sizes[0] <= _FEW_ROWS and sizes[1] >= _LEAST_OF_FEW)


def _rms_of(tensor: torch.Tensor) -> float:
    """Return the root mean square of a tensor's values, never 0."""
    return max(rms_of(tensor), float(torch.finfo(torch.float32).tiny))


def _largest_of(tensor: torch.Tensor) -> float:
    """Return the largest size of a tensor's values, never 0."""
    return max(float(tensor.abs().max()), float(torch.finfo(torch.float32).tiny))
