"""The models of one search, and the seeded bandit that gives each idea and each branch to one of them."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ridgeline.tools.errors import ModelError

if TYPE_CHECKING:
    from ridgeline.graph.models.requests import KernelModel

EXPLORATION = 0.35
"""Weight of UCB1's bonus: rewards here spread over about a third of [0, 1], where UCB1's sqrt(2) assumes all of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The reward of one attempt of a model; see `reward`."""

    model: str
    reward: float


def reward(speedup: float | None, best_before: float) -> float:
    """Return the relative gain as a reward in [0, 1]: 0.5 for a tie with the best so far, 1 for twice as fast, 0 failed."""
    if speedup is None or speedup <= 0:
        return 0.0
    return min(1.0, max(0.0, 0.5 + 0.5 * math.log2(speedup / max(best_before, 1e-9))))


class ModelPool:
    """Models by name.

    A decision depends on its arguments and on the models dropped in this session, so that a resumed search decides as the
    first session did.
    """

    def __init__(self, models: Sequence[KernelModel]) -> None:
        """Take at least one model; names are unique."""
        self._models = {model.name: model for model in models}
        self._dropped: set[str] = set()
        if not self._models:
            raise ModelError("a search needs at least one model, such as offline")

    @property
    def names(self) -> list[str]:
        """Return the names of the models that get work, in the order given."""
        return [name for name in self._models if name not in self._dropped]

    def place(self, name: str) -> int:
        """Return a model's place in the order given; dropped models keep theirs."""
        return list(self._models).index(name)

    def drop(self, name: str) -> bool:
        """Give a model no more work in this session; False when it is the last one, or none of this pool."""
        if name not in self._models or self.names == [name]:
            return False
        self._dropped.add(name)
        return True

    def model(self, name: str) -> KernelModel:
        """Return the model of this name; ModelError when a resumed search is not given it again."""
        if name not in self._models:
            raise ModelError(f"model {name} was part of this search: pass --model {name} again to resume it")
        return self._models[name]

    def assign(self, count: int, outcomes: Iterable[Outcome], rng_seed: int) -> list[str]:
        """Return the model of each of `count` pieces of work, by UCB1 over `outcomes`; `rng_seed` breaks ties.

        Work of the same batch counts as an outcome with the model's mean reward, so that a batch spreads over the pool.
        """
        pulls = dict.fromkeys(self.names, 0)
        total = dict.fromkeys(self.names, 0.0)
        for outcome in outcomes:
            if outcome.model in pulls:
                pulls[outcome.model] += 1
                total[outcome.model] += outcome.reward
        means = {name: total[name] / pulls[name] if pulls[name] else 0.5 for name in pulls}
        order = random.Random(rng_seed).sample(self.names, len(pulls))
        chosen: list[str] = []
        for _ in range(count):
            name = max(order, key=lambda n: means[n] + _bonus(pulls[n], sum(pulls.values())))
            pulls[name] += 1
            chosen.append(name)
        return chosen


def _bonus(pulls: int, total: int) -> float:
    return math.inf if pulls == 0 else EXPLORATION * math.sqrt(math.log(total + 1) / pulls)
