"""New contents before each timed block: inputs for every set, and parameters that change wholly or in one place.

Contents must not tell a timed call from a verifying one. So a secret share of the sets has the distribution of a trial,
and parameters are of order one at times where they are small. At secret times one row or one element of a single
parameter or buffer is all that changes: what a kernel made of the parameters is then wrong, whatever it compares a part of.

A block that does not count may be given the contents that the parent wants: those that no other block had yet, those on
which the reference is too slow to be timed, and a whole trial's, beside nominal inputs for the other calls.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence

import torch

from ridgeline.tools.judge.worker.domain.timed_kinds import ParameterKind, TimedKinds, named, parameters_of_kind
from ridgeline.tools.judge.worker.grading.cases.case import Case
from ridgeline.tools.judge.worker.grading.cases.case_book import CaseBook
from ridgeline.tools.judge.worker.inputs.distributions import choose_sets, place_kinds
from ridgeline.tools.judge.worker.inputs.source import SecretSource
from ridgeline.tools.judge.worker.inputs.timed_sets import Draws, Filling, WithTrial
from ridgeline.tools.judge.worker.memory import ArenaMemory
from ridgeline.tools.records.trial_names import as_kind

_IN_ONE_PLACE = 2 / 3
"""Share of the renewals after which parameters differ from before in one place: often twice in a row for a candidate."""
_WHOLE_EACH = 3
"""At every so many-th change within a block parameters change wholly, which a look at a few tells; else in one place."""
_LARGEST_ALONE = 3 / 4
"""Share of the changes within a block in one place that the largest parameter has: what is made of it is the dearest."""
WAYS = 3 * ((True, True),) + 2 * ((False, True),) + ((True, False),)
"""What changes while a block runs, in turns of a secret order: inputs of a call, parameters. As many as a measurement has."""


class Renewal:
    """Writes the contents of a block, and knows which sets were given what."""

    def __init__(
        self,
        book: CaseBook,
        source: SecretSource,
        memory: ArenaMemory,
        *,
        kinds: TimedKinds,
        poison: Callable[[int], None],
    ) -> None:
        """Write nothing yet.

        Args:
            book: places parameters.
            source: what inputs and parameters are drawn from.
            memory: the sets.
            kinds: what sets and parameters may hold beside nominal contents.
            poison: poisons a set's outputs.
        """
        self._book = book
        self._source = source
        self._memory = memory
        self._poison = poison
        self._count = 0
        self._has_placed = False
        self._turn = 0
        self._kind = ParameterKind.RANDOM
        self._next: list[tuple[torch.Tensor, torch.Tensor]] = []  # parts of the parameters, with what they are to hold
        self._superseded = 0
        self._next_ways: list[tuple[bool, bool]] = []
        self._has_next_inputs = True
        self.kinds = kinds
        self.filling: Filling | None = None
        self.trial_sets: dict[int, str] = {}
        """The sets that have the contents of a trial, and the name of their kind."""
        self.trial = ""
        """The trial whose parameters the block has, and whose inputs one of those sets has; "" for none."""

    def forget(self) -> None:
        """Free the last draws: a trial follows, with parameters of its own."""
        self.filling = None
        self.trial_sets = {}
        self.trial = ""
        self._has_placed = False

    def leave_out(self, refused: Mapping[str, str]) -> None:
        """Give no set, and no block's parameters, these kinds from now on."""
        self.kinds = self.kinds.without(refused)
        self.forget()

    @property
    def parameter_kind(self) -> str:
        """Return the name of the kind that the parameters have now, "" for ordinary ones."""
        return "" if self._kind is ParameterKind.RANDOM else named(self._kind)

    @property
    def whole_kind(self) -> str:
        """Return the name of the kind that a whole block has: a trial's, or its parameters'; "" for neither."""
        return as_kind(self.trial) if self.trial else self.parameter_kind

    def write(self, order: Sequence[int], wanted: Sequence[str] = (), calls: int = 0) -> None:
        """Give every set new inputs and poisoned outputs, in this order; change parameters wholly, or in one place.

        One of the first sets has the contents of a trial, so that every block but the shortest ones uses such a set. Where
        kinds are wanted, as many of the block's calls as it takes have them, or else its parameters.
        """
        label = self._next_label()
        wanted_kind = self.kinds.parameters_named(wanted)
        self._write_parameters(label, wanted_kind)
        rng = self._source.rng(label + ":sets")
        if not wanted:
            places = choose_sets(self.kinds.beside(self._kind), len(order), rng)
        else:
            places = {} if wanted_kind else place_kinds(self.kinds.inputs_named(wanted), calls, rng)
        chosen = {order[place]: kind for place, kind in places.items()}
        self.trial, self.trial_sets = "", {index: kind.name for index, kind in chosen.items()}
        self._fill(order, self._source.distributed(self._source.fill(label, self._memory.n_sets), label, chosen))

    def write_trial(self, trial: Case, order: Sequence[int], calls: int) -> None:
        """Give one of a block's calls the inputs of a trial, the others new nominal ones, and all its parameters."""
        label = self._next_label()
        self._book.place_parameters(trial.parameters)
        self._kind, self._has_placed = ParameterKind.RANDOM, False
        index = order[self._source.rng(label + ":sets").randrange(max(calls, 1))]
        self.trial, self.trial_sets = trial.name, {index: as_kind(trial.name)}
        filling = self._source.fill(label, self._memory.n_sets)
        self._fill(order, WithTrial(filling=filling, index=index, inputs=trial.inputs))
        self.filling = Draws(draw=lambda _: trial.inputs)  # nobody asks whether another set is intact

    def _fill(self, order: Sequence[int], filling: Filling) -> None:
        for index in order:
            filling.write(index, self._memory.inputs[index])
            self._poison(index)
        self.filling = filling

    def _next_label(self) -> str:
        self._count += 1
        return f"renewal:{self._count}"

    def draw_next(self) -> None:
        """Draw what the next `supersede` changes, so that only copies are left to do.

        Nobody knows whether inputs change, parameters or both: a kernel that looks for one of them would take it for the other.
        Parameters differ in one place of a single one, most times of the largest, and wholly now and then: one that keeps what
        it made of them may look at a few of their elements in each call, or at all of a small one. Where they stay nothing is
        written: that would show in a processor's caches.
        """
        label = self._next_label()
        drawn, placed, weights = self._other_parameters(label), self._memory.parameters, self._source.weights
        self._superseded += 1
        if self._superseded % _WHOLE_EACH:
            varied = [n for n in weights.varied if placed[n].is_floating_point()]
            name = self._one_of(varied, self._source.rng(label + ":one"))
            drawn = {n: weights.with_one_place(n, placed[n], drawn[n], f"{label}:{n}") for n in drawn if n == name}
        # whole numbers stay: between two draws a list of offsets may not be in order
        others = {n: t for n, t in drawn.items() if t.is_floating_point()}
        self._next = [part for n, t in others.items() if (part := _differing(placed[n], t)) is not None]
        if not self._next_ways:
            self._next_ways = self._source.rng(label + ":ways").sample(WAYS, len(WAYS))
        self._has_next_inputs, has_parameters = self._next_ways.pop() if self._next else (True, False)
        if not has_parameters:
            self._next = []

    def _one_of(self, varied: Sequence[str], rng: random.Random) -> str:
        """Return the largest of the parameters, or any; "" where there is none."""
        placed = self._memory.parameters
        largest = max(varied, key=lambda name: placed[name].numel(), default="")
        return largest if rng.random() < _LARGEST_ALONE or not varied else rng.choice(varied)

    def supersede(self, index: int, like: int) -> None:
        """Give a set the inputs of another, or place the parameters that were drawn for this, or do both.

        One thread does it: others would wait for the very cores on which a candidate runs.
        """
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            if self._has_next_inputs:
                self._give_inputs(index, like)
            for part, values in self._next:
                part.copy_(values)
        finally:
            torch.set_num_threads(threads)

    def _give_inputs(self, index: int, like: int) -> None:
        for view, other in zip(self._memory.inputs[index], self._memory.inputs[like], strict=True):
            view.copy_(other)
        self.trial_sets.pop(index, None)
        if like in self.trial_sets:
            self.trial_sets[index] = self.trial_sets[like]

    def _other_parameters(self, label: str) -> dict[str, torch.Tensor]:
        values = parameters_of_kind(self._kind, label, self._book, self._source)
        return self._source.weights.unlike(self._memory.parameters, values, label)

    def _write_parameters(self, label: str, wanted: ParameterKind | None) -> None:
        rng, weights = self._source.rng(label + ":parameters"), self._source.weights
        is_kept = self._has_placed and wanted is None
        in_one_place = is_kept and rng.random() < _IN_ONE_PLACE
        if not in_one_place:
            self._kind = wanted or self._next_kind()
        values = self._other_parameters(label)
        if in_one_place and weights.varied:
            name = rng.choice(weights.varied)
            view = self._memory.parameters[name]
            view.copy_(weights.with_one_place(name, view, values[name], label))
        else:
            self._book.place_parameters(values)
        self._has_placed = wanted is None  # another kind is for one block only

    def _next_kind(self) -> ParameterKind:
        """Return the kinds in turns."""
        self._turn += 1
        kinds = (ParameterKind.RANDOM, *self.kinds.parameters)
        return kinds[self._turn % len(kinds)]


def _differing(placed: torch.Tensor, drawn: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor] | None:
    """Return the part of a parameter from the first to the last element that is to differ, and its values; None for none."""
    if not placed.is_contiguous():
        return placed, drawn
    places = (drawn != placed).flatten().nonzero()
    if not len(places):
        return None
    part = slice(int(places[0]), int(places[-1]) + 1)
    return placed.view(-1)[part], drawn.reshape(-1)[part]
