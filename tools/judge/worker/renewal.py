"""New contents before each timed block: inputs for every set, and parameters that change wholly or in one place.

Contents must not tell a timed call from a verifying one. So a secret share of the sets has the distribution of a trial,
and parameters are of order one at times where they are small. At secret times one row or one element of a single
parameter or buffer is all that changes: what a kernel made of the parameters is then wrong, whatever it compares a part of.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from ridgeline.tools.errors import ProblemError
from ridgeline.tools.judge.worker.call_form import Tensors
from ridgeline.tools.judge.worker.device import JudgeDevice
from ridgeline.tools.judge.worker.grading.cases import CaseBook
from ridgeline.tools.judge.worker.inputs.distributions import Distribution
from ridgeline.tools.judge.worker.inputs.source import SecretSource
from ridgeline.tools.judge.worker.inputs.timed_sets import Filling
from ridgeline.tools.judge.worker.memory import ArenaMemory
from ridgeline.tools.judge.worker.reference import Reference

_IN_ONE_PLACE = 2 / 3
"""Share of the renewals after which parameters differ from before in one place: often twice in a row for a candidate."""
_SLOWER = 1.15
"""A distribution on which the reference takes longer by this factor is not timed: exponentials that end as denormal
numbers take a CPU many times as long."""
_ATTEMPTS, _ROUNDS, _ENOUGH_S = 3, 7, 0.2
"""The reference is not called slower for a busy machine: the fastest of several calls counts, in the best attempt."""


class Renewal:
    """Writes the contents of a block, and knows which sets were given what."""

    def __init__(
        self, book: CaseBook, source: SecretSource, memory: ArenaMemory, poison: Callable[[int], None]
    ) -> None:
        """Write nothing yet. `poison` poisons a set's outputs."""
        self._book = book
        self._source = source
        self._memory = memory
        self._poison = poison
        self._count = 0
        self._has_placed = False
        self._is_order_one = False
        self._next: dict[str, torch.Tensor] = {}
        self.takes_order_one = False
        self.filling: Filling | None = None
        self.telling: tuple[int, ...] = ()

    def forget(self) -> None:
        """Free the last draws: a trial follows, with parameters of its own."""
        self.filling = None
        self._has_placed = False

    def write(self, order: Sequence[int]) -> None:
        """Give every set new inputs and poisoned outputs, in this order; change parameters wholly, or in one place.

        One of the first sets has the contents of a trial, so that every block but the shortest ones uses such a set.
        """
        self._count += 1
        label = f"renewal:{self._count}"
        self._write_parameters(label)
        chosen = {order[place]: kind for place, kind in self._source.choose_sets(label, len(order)).items()}
        filling = self._source.distributed(self._source.fill(label, self._memory.n_sets), label, chosen)
        for index in order:
            filling.write(index, self._memory.inputs[index])
            self._poison(index)
        self.filling, self.telling = filling, tuple(sorted(chosen))

    def draw_next(self) -> None:
        """Draw the parameters of the next `supersede`, so that only copies are left to do."""
        self._count += 1
        drawn, placed = self._other_parameters(f"renewal:{self._count}"), self._memory.parameters
        # whole numbers stay: between two draws a list of offsets may not be in order
        self._next = {n: t if t.is_floating_point() else placed[n].clone() for n, t in drawn.items()}

    def supersede(self, index: int, like: int) -> None:
        """Give a set the inputs of another, and place the parameters that were drawn for this."""
        for view, other in zip(self._memory.inputs[index], self._memory.inputs[like], strict=True):
            view.copy_(other)
        self._book.place_parameters(self._next)

    def _other_parameters(self, label: str) -> dict[str, torch.Tensor]:
        return self._source.weights.of_order_one(label) if self._is_order_one else self._book.parameters(label)

    def _write_parameters(self, label: str) -> None:
        rng, weights = self._source.rng(label + ":parameters"), self._source.weights
        in_one_place = self._has_placed and rng.random() < _IN_ONE_PLACE and not self._book.default_parameters
        if not in_one_place:
            self._is_order_one = self.takes_order_one and not self._is_order_one  # in turns
        values = self._other_parameters(label)
        if in_one_place and weights.varied:
            name = rng.choice(weights.varied)
            view = self._memory.parameters[name]
            view.copy_(weights.with_one_place(name, view, values[name], label))
        else:
            self._book.place_parameters(values)
        self._has_placed = True


def distributions_in_usual_time(
    names: Sequence[str], reference: Reference, source: SecretSource, memory: ArenaMemory
) -> tuple[Distribution, ...]:
    """Return the distributions of these trials on which the reference takes no longer than on nominal contents."""
    usual = tuple(torch.empty_like(view) for view in memory.inputs[0])
    other = tuple(torch.empty_like(view) for view in memory.inputs[0])
    filling = source.fill("usual time", memory.n_sets)
    filling.write(0, usual)
    found = []
    for kind in Distribution:
        if kind not in names:
            continue
        source.distributed(filling, f"usual time:{kind}", {0: kind}).write(0, other)
        if any(_slowdown(reference, usual, other, memory.device) < _SLOWER for _ in range(_ATTEMPTS)):
            found.append(kind)
    return tuple(found)


def _slowdown(reference: Reference, usual: Tensors, other: Tensors, device: JudgeDevice) -> float:
    """Return the fastest time on the other contents / on the usual ones; infinity where the reference refuses them."""
    best, spent = [float("inf")] * 2, 0.0
    for done in range(_ROUNDS):
        for i, inputs in enumerate((usual, other)):
            watch = device.stopwatch()
            watch.start()
            try:
                reference.run(inputs)
            except ProblemError:
                return float("inf")
            seconds = watch.seconds()
            best[i], spent = min(best[i], seconds), spent + seconds
        if spent > _ENOUGH_S and done:
            break
    return best[1] / max(best[0], 1e-9)
