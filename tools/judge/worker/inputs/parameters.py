"""Values for parameters and buffers: random ones, those of order one, and those with one row that differs.

A kernel has to compute from these tensors too, so none keeps the value that the model was made with. Floating values
become random around their own. Whole numbers get other values within the range that they show: a permutation is
permuted, an index or a length becomes smaller. Masks stay.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping

import torch

from ridgeline.tools.judge.worker.inputs.signs import have_one_sign
from ridgeline.tools.judge.worker.inputs.structure import are_distinct, is_binary, order_of
from ridgeline.tools.judge.worker.inputs.transforms import random_index, with_one_slice
from ridgeline.tools.judge.worker.inputs.variation import Way, ways_below, ways_to_vary

SMALL = 0.02
"""A tensor is small when its rms is below this part of order one: a branch behind it may be below every gate."""

Values = dict[str, torch.Tensor]


class ParameterSource:
    """Secret values for the parameters and buffers of one model; the same label gives the same values."""

    def __init__(
        self,
        defaults: Values,
        *,
        buffers: frozenset[str],
        varied: frozenset[str] | None,
        generator: Callable[[str], torch.Generator],
    ) -> None:
        """Make no value yet.

        Args:
            defaults: the values that the model was made with.
            buffers: the names among them that are buffers.
            varied: the names that get other values; None: all.
            generator: makes the generator that belongs to a label.
        """
        self.defaults = defaults
        self._generator = generator
        arguments = {n: t for n, t in defaults.items() if (varied is None or n in varied) and t.numel()}
        self._floating = frozenset(n for n, t in arguments.items() if _may_be_random(t, is_buffer=n in buffers))
        whole = {n: t for n, t in arguments.items() if _is_whole(t)}
        self._ways: dict[str, tuple[Way, ...]] = {n: _ways_of(t) for n, t in whole.items()}
        self._is_whole_draw = frozenset(n for n, t in whole.items() if order_of(t))
        self._is_distinct = frozenset(n for n, t in whole.items() if are_distinct(t))
        self._arguments = tuple(arguments)
        self._only: str | None = None
        self.keeps_whole = False

    @property
    def varied(self) -> tuple[str, ...]:
        """Return the names of the tensors that differ between labels."""
        return tuple(n for n in self._arguments if n in self._floating or self._ways.get(n))

    @property
    def varied_whole(self) -> tuple[str, ...]:
        """Return the names of those that hold whole numbers."""
        return tuple(n for n, ways in self._ways.items() if ways)

    @property
    def kept(self) -> tuple[str, ...]:
        """Return the names of the tensors that hold the same values in every trial and every block."""
        return tuple(n for n in self._arguments if n not in self._floating and not self._ways.get(n))

    def give_up_way(self, name: str) -> None:
        """Change whole numbers in their next way, or no longer where there is none."""
        self._ways[name] = self._ways[name][1:]

    def vary_whole(self, *, only: str | None = None, none: bool = False) -> None:
        """Change whole numbers everywhere from now on, in one tensor only, or nowhere."""
        self._only, self.keeps_whole = only, none

    @property
    def of_one_sign(self) -> tuple[str, ...]:
        """Return the names of the tensors whose random values all have the sign of the default ones."""
        draws = (self.defaults, self.random("sign 0"), self.random("sign 1"))
        return tuple(
            n for n in self._arguments if n in self._floating and have_one_sign([values[n] for values in draws])
        )

    # ---------------------------------------------------------------------------------------------------------- values

    def random(self, label: str) -> Values:
        """Return random values: none keeps a default such as weight 1 and bias 0."""
        generator = self._generator(label + ":parameters")
        return {n: self._randomly(n, t, generator) for n, t in self.defaults.items()}

    def _randomly(self, name: str, tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        if name in self._floating:
            return _randomized(tensor, generator)
        ways = self._ways.get(name)
        if not ways or self.keeps_whole or self._only not in (None, name):
            return tensor
        return ways[0](tensor, generator)

    @property
    def small(self) -> tuple[str, ...]:
        """Return the names of the tensors whose random values are far below order one."""
        return tuple(self._factors)

    @functools.cached_property
    def _factors(self) -> dict[str, float]:
        """The factor that brings each small tensor to order one; found once, since asking a GPU for numbers takes time."""
        values = self.random("size")
        factors = {n: _factor_to_order_one(values[n]) for n in self._arguments if n in self._floating}
        return {n: factor for n, factor in factors.items() if factor > 1 / SMALL}

    def of_order_one(self, label: str) -> Values:
        """Return random values, the small ones times what brings them to order one."""
        values, factors = self.random(label), self._factors
        return {n: (t.double() * factors[n]).to(t.dtype) if n in factors else t for n, t in values.items()}

    def with_slices(self, values: Mapping[str, torch.Tensor], label: str) -> Values:
        """Return the values with one secret row of each changed, one element where there are no rows."""
        generator = self._generator(label + ":parameter rows")
        others = self.random(label)
        return {n: self._with_slice(n, t, others[n], generator) for n, t in values.items()}

    def with_one_place(self, name: str, tensor: torch.Tensor, other: torch.Tensor, label: str) -> torch.Tensor:
        """Return a tensor with one secret row of `other`, or with one element far from its own value."""
        generator = self._generator(f"{label}:place")
        by_element = bool(torch.rand((), generator=generator, device=generator.device) < 1 / 2)
        if by_element and name in self._floating:
            return _with_one_moved(tensor, generator)
        return self._with_slice(name, tensor, other, generator)

    def _with_slice(
        self, name: str, tensor: torch.Tensor, other: torch.Tensor, generator: torch.Generator
    ) -> torch.Tensor:
        if name in self._is_whole_draw:
            return other  # a part of another draw would break the order
        if name in self._is_distinct:
            return _with_two_exchanged(tensor, generator)
        return with_one_slice(tensor, other, generator)


def _ways_of(tensor: torch.Tensor) -> tuple[Way, ...]:
    """Return the ways in which whole numbers may vary; a single one stays above 0, which may leave nothing to compute."""
    if tensor.numel() > 1:
        return ways_to_vary(tensor, order_of(tensor))
    return ways_below(int(tensor), least=1)


def _is_whole(tensor: torch.Tensor) -> bool:
    return (
        not tensor.is_floating_point()
        and not tensor.is_complex()
        and not is_binary(tensor)
        and tensor.dtype != torch.bool
    )


def _may_be_random(tensor: torch.Tensor, *, is_buffer: bool) -> bool:
    """Return whether a tensor may take random values: not a mask of zeros and ones, nor one of infinities."""
    if not tensor.is_floating_point() or not bool(torch.isfinite(tensor).all()):
        return False
    return not (is_buffer and is_binary(tensor))


def _randomized(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    if bool((tensor > 0).all()):
        factors = 0.5 + torch.rand(tensor.shape, generator=generator, device=generator.device)
        return tensor * factors.to(tensor.dtype)  # a variance stays one
    spread = float(tensor.double().std()) if tensor.numel() > 1 else 0.0
    noise = torch.randn(tensor.shape, generator=generator, device=generator.device) * (spread or 0.2)
    return tensor + noise.to(tensor.dtype)


def _factor_to_order_one(tensor: torch.Tensor) -> float:
    """Return order one / rms, where order one is 1 for a vector, 1 / sqrt(elements of a row) for weights.

    A product with such weights is as large as what it multiplies.
    """
    is_vector = sum(size > 1 for size in tensor.shape) < 2
    row = 1 if is_vector else tensor.numel() // tensor.shape[0]
    rms = float(torch.linalg.vector_norm(tensor, dtype=torch.float64)) / math.sqrt(tensor.numel())
    return 1 / (max(rms, float(torch.finfo(torch.float32).tiny)) * math.sqrt(row))


def _with_one_moved(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return a tensor with one element moved by three times its rms; one of positive numbers is halved instead."""
    changed, place = tensor.clone(), random_index(tensor.shape, generator)
    if bool((tensor > 0).all()):
        changed[place] *= 0.5
    else:
        changed[place] += 3 * float(torch.linalg.vector_norm(tensor, dtype=torch.float64)) / math.sqrt(tensor.numel())
    return changed


def _with_two_exchanged(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return a permutation with two of its elements exchanged: it stays one."""
    changed = tensor.flatten().clone()
    first, second = torch.randperm(changed.numel(), generator=generator, device=generator.device)[:2]
    changed[first], changed[second] = changed[second].clone(), changed[first].clone()
    return changed.view(tensor.shape)
