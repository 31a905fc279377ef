"""Secret inputs and parameters for the trials and for the timed sets.

Contents stay within what `get_inputs` gives, save for the transforms that say so. A mixture of two draws lies between
them, element by element. So it is as non-negative, triangular, ordered, symmetric and definite as the draws, with
infinities where they have them. It is not as normalised: rows of sum 1 keep that only by chance. Where the reference
refuses mixtures, every set has a draw of its own.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import torch

from ridgeline.tools.judge.worker.call_form import Scalar, Tensors
from ridgeline.tools.judge.worker.device import device_of
from ridgeline.tools.judge.worker.inputs.crowds import ways_to_crowd
from ridgeline.tools.judge.worker.inputs.distributions import Distributed, Distribution, SetKind, Traits
from ridgeline.tools.judge.worker.inputs.parameters import SMALL, ParameterSource
from ridgeline.tools.judge.worker.inputs.permutations import with_two_exchanged
from ridgeline.tools.judge.worker.inputs.signs import SIGNS, have_one_sign
from ridgeline.tools.judge.worker.inputs.structure import (
    are_distinct,
    common_order,
    have_same_values,
    in_order,
    is_mask,
)
from ridgeline.tools.judge.worker.inputs.timed_sets import (
    OFFSETS,
    WEIGHTS,
    Draws,
    Filling,
    Mixtures,
    blend_of,
    finite_in_both,
)
from ridgeline.tools.judge.worker.inputs.transforms import (
    blocked,
    row_scaled,
    shifted,
    whole_numbers,
    with_one_row,
    with_outliers,
)
from ridgeline.tools.judge.worker.inputs.variation import Way, ways_beyond, ways_to_vary, with_part_changed
from ridgeline.tools.judge.worker.reference import Reference
from ridgeline.tools.modelnew.tensor_bits import equal_bits
from ridgeline.tools.records.vocabulary import DeviceKind

ArgumentKey = int | str
"""An input tensor by its position, a parameter or buffer by its name."""
_LEAST_SCALAR = 0.5  # of a scalar's own value, or of 1: other values are within the range that it shows
_DRAWS_S = 0.1  # where integers differ between draws, every set gets its own draw if all take no longer; else a choice


class SecretSource:
    """Inputs and parameters drawn from one secret; the same label gives the same values."""

    def __init__(self, reference: Reference, secret: bytes, randomized: frozenset[str] | None = None) -> None:
        """Draw from `secret`; only the parameters and buffers named in `randomized`, absent all, get random values."""
        self._reference = reference
        self._secret = secret
        self.weights = ParameterSource(
            {n: t.detach().clone() for n, t in reference.named_tensors().items()},
            buffers=frozenset(n for n, _ in reference.model.named_buffers()),
            varied=randomized,
            generator=self._generator,
        )
        first, second, self._draw_s = self._two_draws()
        self._alike = tuple(equal_bits(a, b) for a, b in zip(first, second, strict=True))
        pairs = list(zip(first, second, strict=True))
        are_masks = tuple(is_mask(a) and is_mask(b) for a, b in pairs)
        self._orders = tuple(0 if each else common_order(*pair) for each, pair in zip(are_masks, pairs, strict=True))
        self._whole = tuple(not t.is_floating_point() for t in first)
        self._distinct = tuple(is_whole and are_distinct(t) for is_whole, t in zip(self._whole, first, strict=True))
        traits = zip(self._distinct, self._orders, pairs, strict=True)
        self._permuted = tuple(distinct and not order and have_same_values(*pair) for distinct, order, pair in traits)
        self._ordered_whole = tuple(w and order != 0 for w, order in zip(self._whole, self._orders, strict=True))
        own = [any(each) for each in zip(self._permuted, self._ordered_whole, strict=True)]
        self._maps = {i: first[i] for i, is_alike in enumerate(self._alike) if is_alike and own[i]}
        may_vary = [i for i, each in enumerate(zip(self._alike, self._whole, are_masks, strict=True)) if any(each)]
        self._ways = {i: self._ways_of(i, pairs[i]) for i in may_vary}
        self._refused: set[int] = set()  # inputs whose other values the reference refuses; a transform leaves them too
        self._only: int | None = None
        self._draws_each: bool | None = None
        self._largest = max(t.numel() for t in first)
        self._traits = tuple(Traits.of(t, order) for t, order in zip(first, self._orders, strict=True))
        self.crowds: Mapping[int, Way] = {}
        """How inputs become mostly one of their numbers in the trial `crowded`; none until it is known which may."""
        self.inputs_of_signs: Mapping[Distribution, frozenset[int]] = {}
        """The inputs that get other signs in a timed set; none until it is known which the reference takes."""
        self.inputs_apart: Mapping[str, frozenset[int]] = {}
        """The inputs that a timed set may have of another draw, by trial `alone_NAME`; none until that is known."""

    def draw_from(self, secret: bytes) -> None:
        """Draw from another secret from now on; the mixtures' weights stay, which are as secret and cost a renewal's time."""
        self._secret = secret

    # ------------------------------------------------------------------------------------------------- what may change

    def _two_draws(self) -> tuple[Tensors, Tensors, float]:
        first = self._reference.draw_inputs(1)
        watch = device_of(DeviceKind(torch.device(self._reference.device).type)).stopwatch()
        watch.start()
        second = self._reference.draw_inputs(2)
        return first, second, watch.seconds()

    def _ways_of(self, index: int, draws: tuple[torch.Tensor, torch.Tensor]) -> tuple[Way, ...]:
        if self._alike[index]:
            return ways_to_vary(draws[0], self._orders[index])
        return (*ways_beyond(draws), _as_drawn)

    @property
    def varied(self) -> tuple[int, ...]:
        """Return the inputs that are changed beyond what `get_inputs` does: tables, masks, lengths, indices."""
        return tuple(i for i, ways in self._ways.items() if ways)

    @property
    def kept(self) -> tuple[int, ...]:
        """Return the inputs that hold the same values in every trial and every set."""
        return tuple(i for i, ways in self._ways.items() if not ways and self._alike[i])

    def give_up_way(self, index: int) -> None:
        """Change an input in its next way, or no longer where there is none: the reference refuses this one."""
        self._ways[index] = self._ways[index][1:]
        if not self._ways[index] and self._alike[index]:
            self._refused.add(index)

    @contextlib.contextmanager
    def varying_only(self, index: int) -> Iterator[None]:
        """Change no other input meanwhile, to find the one that the reference refuses."""
        self._only = index
        try:
            yield
        finally:
            self._only = None

    def _changes(self, index: int) -> bool:
        return bool(self._ways.get(index)) and self._only in (None, index)

    def shuffled(self, arguments: Sequence[ArgumentKey], label: str) -> list[ArgumentKey]:
        """Return the arguments in a secret order."""
        return [arguments[i] for i in torch.randperm(len(arguments), generator=self._cpu_generator(label)).tolist()]

    def other_scalar(self, index: int, value: Scalar) -> Scalar:
        """Return another value for a floating-point scalar within its own range, or of order one; any other as it is."""
        if not isinstance(value, float) or not math.isfinite(value):
            return value
        factor = self.rng(f"scalar:{index}").uniform(_LEAST_SCALAR, 1 - _LEAST_SCALAR / 4)
        size = abs(value) if abs(value) > SMALL else 1.0
        return math.copysign(factor * size, value)

    # ----------------------------------------------------------------------------------------------------------- draws

    def given(self, label: str) -> Tensors:
        """Return inputs as `get_inputs` gives them."""
        return self._reference.draw_inputs(self._seed(label))

    def nominal(self, label: str) -> Tensors:
        """Return inputs as `get_inputs` gives them, but change those that it always gives alike."""
        return tuple(self._varied(i, t, label) for i, t in enumerate(self.given(label)))

    def _varied(self, index: int, tensor: torch.Tensor, label: str) -> torch.Tensor:
        if not self._changes(index):
            return tensor
        return self._ways[index][0](tensor, self._generator(f"{label}:varied:{index}"))

    def tweaked(self, base: str, label: str, change: Callable[..., torch.Tensor] = with_one_row) -> Tensors:
        """Return the inputs given for `base` changed in one secret place: a few sampled elements do not tell the two apart."""
        generator = self._generator(label + ":row")
        pairs = enumerate(zip(self.given(base), self.nominal(label), strict=True))
        each = [functools.partial(self._tweak_of(i, change), generator=generator) for i in range(len(self._alike))]
        return tuple(self._tweaked(i, t, other, each[i]) for i, (t, other) in pairs)

    def _tweak_of(self, index: int, change: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
        """Return how little of an input changes: what a permutation or an order allows."""
        if self._permuted[index]:
            return with_two_exchanged
        if self._ordered_whole[index] and self._changes(index):
            return functools.partial(with_part_changed, way=self._ways[index][0])
        return change

    def _tweaked(
        self, index: int, tensor: torch.Tensor, other: torch.Tensor, change: Callable[..., torch.Tensor]
    ) -> torch.Tensor:
        if index in self._ways and not self._changes(index):
            return tensor
        is_alike = self._alike[index]
        if self._ordered_whole[index]:
            changed = change(tensor, other)
            return other if equal_bits(changed, tensor) else changed
        is_unlike = self._orders[index] != 0 and not is_alike
        if tensor.dim() == 1 and not self._permuted[index] and (self._distinct[index] or is_unlike):
            return other  # a part of another draw would break the order
        changed = change(tensor, other)
        return other if is_alike and equal_bits(changed, tensor) else changed

    @property
    def changing(self) -> tuple[ArgumentKey, ...]:
        """Return the arguments that differ between trials: input tensors by position, parameters and buffers by name."""
        kept = self.kept
        return (*(i for i in range(len(self._alike)) if i not in kept), *self.weights.varied)

    # ------------------------------------------------------------------------------------------------------ transforms

    def shifted(self, label: str) -> Tensors:
        """Return 3x + 2; zeros stay zero where they are structure (a triangular matrix)."""
        return self._transformed(shifted, label)

    def row_scaled(self, label: str) -> Tensors:
        """Return every row (the last dimension) times its own power of two."""
        return self._transformed(row_scaled, label)

    def blocked(self, label: str) -> Tensors:
        """Return the inputs with numbers of their own added to runs of rows and columns: some columns far above others."""
        return self._transformed(blocked, label)

    def integers(self, label: str) -> Tensors:
        """Return small whole numbers of the same sign and range as the inputs."""
        return self._transformed(whole_numbers, label)

    def outliers(self, label: str) -> Tensors:
        """Return the inputs with one large element at a secret place of some rows."""
        return self._transformed(with_outliers, label)

    def crowded(self, label: str) -> Tensors:
        """Return inputs most of whose numbers are one of them: counters, capacities and degrees have to hold that."""
        pairs = enumerate(self.nominal(label))
        return tuple(
            self.crowds[i](t, self._generator(f"{label}:crowded:{i}")) if i in self.crowds else t for i, t in pairs
        )

    def ways_to_crowd(self) -> dict[int, tuple[Way, ...]]:
        """Return the ways in which each input may be crowded, the widest first; none of what is in order or a permutation.

        Whole numbers come before others: only what crowds them finds a counter that is too small.
        """
        inputs = self.nominal("crowded")
        indices = [
            i for i, order in enumerate(self._orders) if not order and not self._permuted[i] and self._may_crowd(i)
        ]
        whole_first = sorted(indices, key=lambda i: not self._whole[i])
        found = {i: ways_to_crowd(inputs[i], is_alike=self._alike[i]) for i in whole_first}
        return {i: ways for i, ways in found.items() if ways}

    def _may_crowd(self, index: int) -> bool:
        return self._changes(index) if index in self._ways else self._only in (None, index)

    def _transformed(self, transform: Way, label: str) -> Tensors:
        generator = self._generator(label + ":transform")
        pairs = enumerate(zip(self.nominal(label), self._orders, strict=True))
        is_left = {i: self._whole[i] or i in self._refused for i in range(len(self._orders))}
        return tuple(t if is_left[i] else in_order(transform(t, generator), order) for i, (t, order) in pairs)

    # ----------------------------------------------------------------------------------------------------------- signs

    @property
    def of_one_sign(self) -> tuple[ArgumentKey, ...]:
        """Return the arguments whose values all have one sign in every draw."""
        pairs = zip(self.nominal("sign 0"), self.nominal("sign 1"), strict=True)
        inputs = tuple(i for i, pair in enumerate(pairs) if i not in self._refused and have_one_sign(pair))
        return (*inputs, *self.weights.of_one_sign)

    def inputs_with_signs(self, inputs: Tensors, trial: str, chosen: frozenset[ArgumentKey], label: str) -> Tensors:
        """Return inputs with the chosen ones' signs as the trial has them."""
        generator, change = self._generator(label + ":signs"), SIGNS[trial]
        pairs = enumerate(zip(inputs, self._orders, strict=True))
        return tuple(in_order(change(t, generator), order) if i in chosen else t for i, (t, order) in pairs)

    def parameters_with_signs(
        self, values: Mapping[str, torch.Tensor], trial: str, chosen: frozenset[ArgumentKey], label: str
    ) -> dict[str, torch.Tensor]:
        """Return parameters and buffers with the chosen ones' signs as the trial has them."""
        generator, change = self._generator(label + ":parameter signs"), SIGNS[trial]
        return {n: change(t, generator) if n in chosen else t for n, t in values.items()}

    # ------------------------------------------------------------------------------------------------------ timed sets

    def timed_set(self, label: str, like: Tensors, n_sets: int, to: SetKind | None) -> Tensors:
        """Return the inputs of one timed set, as `fill` makes them, and `distributed` where a kind is given."""
        views = tuple(torch.empty_like(view) for view in like)
        index = self.rng(label + ":set").randrange(n_sets)
        filling = self.fill(label, n_sets)
        (filling if to is None else self.distributed(filling, label, {index: to})).write(index, views)
        return views

    def fill(self, label: str, n_sets: int) -> Filling:
        """Return contents for every set: its own draw where that is cheap or needed, else a mixture of two fresh draws."""
        if self._draws_each is None:
            self._draws_each = self._should_draw_each(n_sets)
        if self._draws_each:
            return Draws(draw=lambda index: self.nominal(f"{label}:{index}"))
        return self._mixtures(label, n_sets)

    def distributed(self, filling: Filling, label: str, chosen: Mapping[int, SetKind]) -> Distributed:
        """Return a filling whose chosen sets have contents of a kind."""
        left = [replace(t, is_left=t.is_left or i in self._refused) for i, t in enumerate(self._traits)]
        generator = functools.partial(self._labelled_generator, label)
        return Distributed(
            filling=filling,
            chosen=chosen,
            traits=tuple(left),
            generator=generator,
            with_signs=self.inputs_of_signs,
            crowds=self.crowds,
            wholly=frozenset(i for i, t in enumerate(left) if t.is_symmetric or t.order or self._distinct[i]),
        )

    def rng(self, label: str) -> random.Random:
        """Return the generator of secret decisions that belongs to a label."""
        return random.Random(self._seed(label))

    def _labelled_generator(self, label: str, place: str) -> torch.Generator:
        return self._generator(f"{label}:distribution:{place}")

    def draw_each_set(self) -> None:
        """Give every set a draw of its own from now on: the reference refuses mixtures."""
        self._draws_each = True

    def _should_draw_each(self, n_sets: int) -> bool:
        """Return whether sets need draws of their own: integers that differ between draws cannot be mixed."""
        drawn = [i for i, is_whole in enumerate(self._whole) if is_whole and not self._alike[i]]
        if not drawn or not self._is_reproducible():
            return False
        must = all(self._whole) or any(self._orders[i] or self._distinct[i] for i in drawn)
        return must or self._draw_s * n_sets <= _DRAWS_S

    def _is_reproducible(self) -> bool:
        """Return whether a set's draw can be made again: not when it comes from another library's generator."""
        pairs = zip(self.given("again"), self.given("again"), strict=True)
        return all(equal_bits(a, b) for a, b in pairs)

    def _mixtures(self, label: str, n_sets: int) -> Mixtures:
        first, second = self.nominal(label + ":a"), self.nominal(label + ":b")
        pairs = list(zip(first, second, strict=True))
        return Mixtures(
            first=first,
            second=second,
            blends=tuple(blend_of(a, b) for a, b in pairs),
            orders=self._orders,
            finite=tuple(finite_in_both(a, b) for a, b in pairs),
            weights=self._weights,
            offsets=torch.randperm(OFFSETS, generator=self._cpu_generator(label + ":weights"))[:n_sets].tolist(),
            own={i: functools.partial(self._another_map, i, label) for i in self._maps if self._changes(i)},
        )

    def _another_map(self, index: int, label: str, of_set: int) -> torch.Tensor:
        """Return a permutation or an order of a set's own: one chosen of two, element by element, is none, or has no heaps."""
        return self._varied(index, self._maps[index], f"{label}:{of_set}")

    @functools.cached_property
    def _weights(self) -> torch.Tensor:
        low, high = WEIGHTS
        generator = self._generator("mixture")
        drawn = torch.rand(OFFSETS + self._largest, generator=generator, device=generator.device)
        return drawn * (high - low) + low

    def _seed(self, label: str) -> int:
        return int.from_bytes(hashlib.sha256(self._secret + label.encode()).digest()[:7], "big")

    def _generator(self, label: str) -> torch.Generator:
        return torch.Generator(self._reference.device).manual_seed(self._seed(label))

    def _cpu_generator(self, label: str) -> torch.Generator:
        return torch.Generator().manual_seed(self._seed(label))


def _as_drawn(tensor: torch.Tensor, _generator: torch.Generator) -> torch.Tensor:
    """Return what `get_inputs` gave: it changes by itself."""
    return tensor
