"""The kinds of contents on which one candidate's timed outputs were graded, and those that are still to come.

Chance decides which kinds the blocks that count have. The machine's load decides how many calls a block has. A kernel
could leave work out on a kind that nobody grades. So a measurement asks for each kind that it has not met, in blocks that
do not count. What one set may not show is asked for several times: a mask or a length may hide its few large numbers. Whole
trials are asked for once each, drawn anew, in a secret order from the first pair of blocks on: what only larger weights show
may be left out once the trials are over, and a kernel that leaves it out for a while meets one of them then.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ridgeline.tools.records.trial_names import BLOCKED, OUTLIERS, trial_of_kind

_OFTEN = {OUTLIERS: 3, BLOCKED: 3}
"""Graded outputs of kinds of which one set may show nothing. Its four outliers were all negative or masked in 8 of 300 sets of
a masked softmax; lifted runs of eight rows hold the largest numbers in one block, or in one lane, in 5 of 6 sets."""


@dataclass(slots=True, kw_only=True)
class Coverage:
    """The number of graded outputs of each kind."""

    kinds: tuple[str, ...] = ()
    least: int = 1  # graded outputs of each kind, in a measurement
    graded: Counter[str] = field(default_factory=Counter)

    def due(self) -> tuple[str, ...]:
        """Return the kinds that were graded too rarely, each as often as it is missing, the rarest first."""
        missing = [kind for kind in self.kinds for _ in range(self._least_of(kind) - self.graded[kind])]
        return tuple(sorted(missing, key=lambda kind: self.graded[kind]))

    def due_trials(self) -> tuple[str, ...]:
        """Return the whole trials that are still to come: chance gives no set one of them."""
        return tuple(kind for kind in self.due() if trial_of_kind(kind))

    def _least_of(self, kind: str) -> int:
        return 1 if trial_of_kind(kind) else max(self.least, _OFTEN.get(kind, 0))

    def count(self, kinds: Sequence[str]) -> int:
        """Return how many outputs of these kinds were graded."""
        return sum(self.graded[kind] for kind in kinds)

    def rarest(self, used: Mapping[int, str], rng: random.Random) -> int:
        """Return a set whose kind was graded least among the sets used, by set."""
        fewest = min(self.graded[kind] for kind in used.values())
        return rng.choice([index for index, kind in used.items() if self.graded[kind] == fewest])

    def note(self, chosen: Sequence[int], trial_sets: Mapping[int, str], parameter_kind: str) -> None:
        """Count the outputs of a block that were graded: by their own contents, and by the block's parameters."""
        self.graded.update(trial_sets[index] for index in chosen if index in trial_sets)
        if parameter_kind:
            self.graded[parameter_kind] += len(chosen)
