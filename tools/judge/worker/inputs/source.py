"""Secret inputs and parameters for the trials and for the timed sets.

Contents stay within what `get_inputs` gives, save for the transforms that say so. A mixture of two draws lies between
them, element by element. So it is as non-negative, triangular, ordered, symmetric and definite as the draws, with
infinities where they have them. It is not as normalised: rows of sum 1 keep that only by chance. Where the reference
refuses mixtures, every set has a draw of its own.
"""

from __future__ import annotations

import functools
import hashlib
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import torch

from ridgeline.tools.judge.worker.call_form import Tensors
from ridgeline.tools.judge.worker.device import device_of
from ridgeline.tools.judge.worker.inputs.arrangements import lifts
from ridgeline.tools.judge.worker.inputs.arrangements.crowds import ways_to_crowd
from ridgeline.tools.judge.worker.inputs.arrangements.linked_inputs import LinkedInputs
from ridgeline.tools.judge.worker.inputs.arrangements.links import ranges_of
from ridgeline.tools.judge.worker.inputs.arrangements.pictures import Arrangement
from ridgeline.tools.judge.worker.inputs.arrangements.square_matrices import is_square
from ridgeline.tools.judge.worker.inputs.distributions import Distributed, SetKind, Traits
from ridgeline.tools.judge.worker.inputs.drawn_ends import drawn_ends
from ridgeline.tools.judge.worker.inputs.held import Held, zero
from ridgeline.tools.judge.worker.inputs.input_ways import Change, InputWays
from ridgeline.tools.judge.worker.inputs.parameters import ParameterSource
from ridgeline.tools.judge.worker.inputs.signs import SIGNS, have_one_sign
from ridgeline.tools.judge.worker.inputs.timed_sets import (
    OFFSETS,
    WEIGHTS,
    Draws,
    Filling,
    Mixtures,
    blend_of,
    finite_in_both,
)
from ridgeline.tools.judge.worker.inputs.values.structure import in_order
from ridgeline.tools.judge.worker.inputs.values.transforms import near_one, silent, with_one_row
from ridgeline.tools.judge.worker.inputs.variation import Way
from ridgeline.tools.judge.worker.inputs.written_places import writes_to_places
from ridgeline.tools.judge.worker.reference import Reference
from ridgeline.tools.modelnew.tensor_bits import equal_bits
from ridgeline.tools.records.trial_names import APART, BLOCKED, CROWDED, EARLY, LARGE_DIAGONALS
from ridgeline.tools.records.vocabulary import DeviceKind

ArgumentKey = int | str
"""An input tensor by its position, a parameter or buffer by its name."""
_DRAWS_S = 0.1  # where integers differ between draws, every set gets its own draw if all take no longer; else a choice
_MOST_DRAWS = 32  # further ones, which show whether numbers are distinct by accident
_MOST_DRAWN = 1 << 26  # numbers in these


class SecretSource:
    """Inputs and parameters drawn from one secret; the same label gives the same values."""

    def __init__(self, reference: Reference, secret: bytes, randomized: frozenset[str] | None = None) -> None:
        """Draw from `secret`; only the parameters and buffers named in `randomized`, absent all, get random values."""
        self._reference = reference
        self._secret = secret
        self.weights = ParameterSource(
            {n: t.detach().clone() for n, t in reference.named_tensors().items()},
            buffers=frozenset(n for n, _ in reference.model.named_buffers()),
            untrained=reference.frozen,
            varied=randomized,
            generator=self._generator,
        )
        first, second, self._draw_s = self._two_draws()
        count = min(_MOST_DRAWS, _MOST_DRAWN // max(1, sum(t.numel() for t in first)))
        further = [functools.partial(reference.draw_inputs, 3 + i) for i in range(count)]
        is_written = functools.partial(writes_to_places, reference, first)
        self.drawn_from = functools.cache(functools.partial(drawn_ends, reference))
        """Returns the ranges that inputs of whole numbers are drawn from, by position, where they are known."""
        self.ways = InputWays(first, second, is_written, further, self.drawn_from)
        self._forms = self.ways.forms
        self._maps = {i: t for i, (t, form) in enumerate(zip(first, self._forms, strict=True)) if form.is_map}
        self._draws_each: bool | None = None
        self._shapes = tuple(t.shape for t in first)
        self._largest = max(shape.numel() for shape in self._shapes)
        self.lifts = ranges_of({i: t for i, t in enumerate(first) if self._forms[i].may_be_lifted})
        """The inputs of whole numbers that are lifted in blocks, with the ends of their range."""
        self.links = LinkedInputs(first, self.lifts)
        """Those of them, and the masks, that are links between near places in `blocked` and `apart`."""
        self._traits = tuple(Traits.of(t, form.order) for t, form in zip(first, self._forms, strict=True))
        self.crowds: dict[str, Mapping[int, Way]] = {}
        """How inputs become mostly one of their numbers, by trial of CROWDS; none until it is known which may."""
        self.arrangements: dict[str, Arrangement] = {}
        """How inputs are arranged, by trial of ARRANGED; none until it is known which may."""
        self.whole_kept = {LARGE_DIAGONALS}
        """The trials of OF_SQUARES in which whole numbers stay."""
        self.lifted_dims = 0
        """The last dimensions that are lifted as a whole in place of single outliers; 0 where there are such."""
        self.power = 1.0
        """The power of the trial `near_one`; 1 until it is known which one the reference takes."""
        self.sizes: dict[str, float] = {}
        """The factor of each trial of SIZED, of MOVED what is added; those that the reference takes, once that is known."""
        self.held: dict[str, Held] = {}
        """The number that inputs hold in each trial of HELD; only where there is one."""
        self.faint: set[str] = set()
        """The trials of SILENT whose inputs are small, not zero, beyond the part that stays."""
        self.beside: dict[str, str] = {}
        """The usual trial whose inputs each trial of SIZED has."""

    def draw_from(self, secret: bytes) -> None:
        """Draw from another secret from now on; the mixtures' weights stay, which are as secret and cost a renewal's time."""
        self._secret = secret

    def _two_draws(self) -> tuple[Tensors, Tensors, float]:
        first = self._reference.draw_inputs(1)
        watch = device_of(DeviceKind(torch.device(self._reference.device).type)).stopwatch()
        watch.start()
        second = self._reference.draw_inputs(2)
        return first, second, watch.seconds()

    @property
    def changing(self) -> tuple[ArgumentKey, ...]:
        """Return the arguments that differ between trials: input tensors by position, parameters and buffers by name."""
        kept = self.ways.kept
        return (*(i for i in range(len(self._forms)) if i not in kept), *self.weights.varied)

    def shuffled(self, arguments: Sequence[ArgumentKey], label: str) -> list[ArgumentKey]:
        """Return the arguments in a secret order."""
        return [arguments[i] for i in torch.randperm(len(arguments), generator=self._cpu_generator(label)).tolist()]

    # ----------------------------------------------------------------------------------------------------------- draws

    def given(self, label: str) -> Tensors:
        """Return inputs as `get_inputs` gives them."""
        return self._reference.draw_inputs(self._seed(label))

    def nominal(self, label: str, *, is_timed: bool = False) -> Tensors:
        """Return inputs as `get_inputs` gives them, but change those that it always gives alike."""
        return tuple(self._varied(i, t, label, is_timed=is_timed) for i, t in enumerate(self.given(label)))

    def _varied(self, index: int, tensor: torch.Tensor, label: str, *, is_timed: bool = False) -> torch.Tensor:
        if not self.ways.changes(index):
            return tensor
        return self.ways.varied_in_way(index, tensor, self._generator(f"{label}:varied:{index}"), is_timed=is_timed)

    def tweaked(self, base: str, label: str, change: Change = with_one_row) -> Tensors:
        """Return the inputs given for `base` changed in one secret place: a few sampled elements do not tell the two apart."""
        generator = self._generator(label + ":row")
        pairs = enumerate(zip(self.given(base), self.nominal(label), strict=True))
        return tuple(self.ways.tweaked(i, t, other, change, generator) for i, (t, other) in pairs)

    # ------------------------------------------------------------------------------------------------------ transforms

    def blocked(self, label: str) -> Tensors:
        """Return the inputs with numbers of their own added to runs of rows and columns: some columns far above others."""
        generator, inputs = self._generator(label + ":whole"), self.transformed(lifts.blocked, label)
        pairs = enumerate(self.links.changed(BLOCKED, inputs, generator))
        return tuple(lifts.lifted_whole(t, generator, ends=self.lifts[i]) if i in self.lifts else t for i, t in pairs)

    def apart(self, label: str) -> Tensors:
        """Return the inputs with groups of rows that share hardly a column, and whole numbers near their places, or chains."""
        return self.links.changed(APART, self.transformed(lifts.apart, label), self._generator(label + ":near"))

    @property
    def may_be_apart(self) -> bool:
        """Return whether any input has groups of rows, or whole numbers that may be near their places, or chains."""
        floating = (self._shapes[i] for i in self.may_be_larger)
        return self.links.are_in(APART) or any(map(lifts.may_be_apart, floating))

    def near_one(self, label: str) -> Tensors:
        """Return the inputs with sizes near one, by the power in use: long products of them are numbers, not 0."""
        return self.transformed(functools.partial(near_one, power=self.power), label)

    def times(self, inputs: Tensors, factor: float) -> Tensors:
        """Return inputs times a factor; whole numbers, and what the reference takes as it is given, stay."""
        return tuple(t * factor if self._may_be_larger(i) else t for i, t in enumerate(inputs))

    def with_square(self, label: str, change: Callable[[torch.Tensor], torch.Tensor], *, others: float) -> Tensors:
        """Return the inputs, the square matrices among them changed, the others times a factor."""
        inputs, square = self.nominal(label), self.square(label)
        pairs = enumerate(zip(inputs, self.times(inputs, others), strict=True))
        return tuple(change(t) if i in square else other for i, (t, other) in pairs)

    def square(self, trial: str) -> tuple[int, ...]:
        """Return the inputs that a trial of OF_SQUARES changes: one square matrix, or several, of numbers in no order."""
        forms, whole = self._forms, () if trial in self.whole_kept else self.lifts
        free = (i for i in (*self.may_be_larger, *whole) if is_square(self._shapes[i]))
        return tuple(i for i in free if not (forms[i].order or forms[i].is_mask))

    def silent(self, label: str, trial: str) -> Tensors:
        """Return inputs that are zero, faint, or hold a number, but for a first, or a last, part of every dimension."""
        quiet = functools.partial(
            silent, share=1 / self.sizes[trial], at_end=trial in EARLY, is_faint=trial in self.faint
        )
        held = self.held.get(trial, zero)
        return self.transformed(lambda tensor, _: quiet(tensor, number=held(tensor)), label)

    @property
    def may_be_larger(self) -> tuple[int, ...]:
        """Return the inputs that may have another size."""
        return tuple(filter(self._may_be_larger, range(len(self._forms))))

    def _may_be_larger(self, index: int) -> bool:
        return not self._forms[index].is_whole and index not in self.ways.refused

    def crowded(self, label: str, trial: str = CROWDED) -> Tensors:
        """Return inputs most of whose numbers are one of them: counters, capacities and degrees have to hold that."""
        pairs, crowds = enumerate(self.nominal(label)), self.crowds.get(trial, {})
        return tuple(crowds[i](t, self._generator(f"{label}:crowded:{i}")) if i in crowds else t for i, t in pairs)

    def ways_to_crowd(self, trial: str) -> dict[int, tuple[Way, ...]]:
        """Return the ways in which each input may be crowded, the widest first; none of what is in order or distinct.

        Whole numbers come before others: only what crowds them finds a counter that is too small.
        """
        inputs = self.nominal(trial)
        free = [i for i, form in enumerate(self._forms) if not form.order and not form.is_distinct]
        indices = [i for i in free if self.ways.may_change(i)]
        whole_first = sorted(indices, key=lambda i: not self._forms[i].is_whole)
        found = {i: ways_to_crowd(trial, inputs[i], is_alike=self._forms[i].is_alike) for i in whole_first}
        return {i: ways for i, ways in found.items() if ways}

    def arranged(self, label: str, trial: str, arrange: Arrangement | None = None) -> Tensors:
        """Return inputs arranged as one of ARRANGED has them, or as is given: copies, areas, numbers of others, NaN."""
        return (arrange or self.arrangements[trial])(self.nominal(label), self._generator(label + ":copies"))

    def transformed(self, transform: Way, label: str) -> Tensors:
        """Return nominal inputs, those that may change transformed, and in their order."""
        generator = self._generator(label + ":transform")
        pairs, refused = enumerate(zip(self.nominal(label), self._forms, strict=True)), self.ways.refused
        return tuple(
            t if form.is_whole or i in refused else in_order(transform(t, generator), form.order)
            for i, (t, form) in pairs
        )

    # ----------------------------------------------------------------------------------------------------------- signs

    @property
    def of_one_sign(self) -> tuple[ArgumentKey, ...]:
        """Return the arguments whose values all have one sign in every draw."""
        pairs = zip(self.nominal("sign 0"), self.nominal("sign 1"), strict=True)
        refused = self.ways.refused
        inputs = tuple(i for i, pair in enumerate(pairs) if i not in refused and have_one_sign(pair))
        return (*inputs, *self.weights.of_one_sign)

    def inputs_with_signs(self, inputs: Tensors, trial: str, chosen: frozenset[ArgumentKey], label: str) -> Tensors:
        """Return inputs with the chosen ones' signs as the trial has them."""
        generator, change = self._generator(label + ":signs"), SIGNS[trial]
        pairs = enumerate(zip(inputs, self._forms, strict=True))
        return tuple(in_order(change(t, generator), form.order) if i in chosen else t for i, (t, form) in pairs)

    def parameters_with_signs(
        self, values: Mapping[str, torch.Tensor], trial: str, chosen: frozenset[ArgumentKey], label: str
    ) -> dict[str, torch.Tensor]:
        """Return parameters and buffers with the chosen ones' signs as the trial has them."""
        generator, change = self._generator(label + ":parameter signs"), SIGNS[trial]
        return self.weights.in_their_order({n: change(t, generator) if n in chosen else t for n, t in values.items()})

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
            return Draws(draw=lambda index: self.nominal(f"{label}:{index}", is_timed=True))
        return self._mixtures(label, n_sets)

    def distributed(self, filling: Filling, label: str, chosen: Mapping[int, SetKind]) -> Distributed:
        """Return a filling whose chosen sets have contents of a kind."""
        refused = self.ways.refused
        left = [replace(t, is_left=t.is_left or i in refused) for i, t in enumerate(self._traits)]
        generator = functools.partial(self._labelled_generator, label)
        return Distributed(
            filling=filling,
            chosen=chosen,
            traits=tuple(left),
            generator=generator,
            crowds=self.crowds,
            links=self.links,
            lifts=self.lifts,
            lifted_dims=self.lifted_dims,
            wholly=frozenset(i for i, t in enumerate(left) if t.is_symmetric or t.order or self._forms[i].is_distinct),
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
        drawn = [form for form in self._forms if form.is_whole and not form.is_alike]
        if not drawn or not self._is_reproducible():
            return False
        must = all(form.is_whole for form in self._forms) or any(form.order or form.is_distinct for form in drawn)
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
            orders=tuple(form.order for form in self._forms),
            finite=tuple(finite_in_both(a, b) for a, b in pairs),
            weights=self._weights,
            offsets=torch.randperm(OFFSETS, generator=self._cpu_generator(label + ":weights"))[:n_sets].tolist(),
            own={i: functools.partial(self._another_map, i, label) for i in self._maps if self.ways.changes(i)},
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
