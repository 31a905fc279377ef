"""The models of one search, and the seeded bandit that gives each idea and each branch to one of them."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ridgeline.graph.models.search_model import AnyModel, SearchModel, search_model
from ridgeline.tools.errors import ModelError
from ridgeline.tools.wording import option

if TYPE_CHECKING:
    from ridgeline.graph.models.batch.model import BatchModel
    from ridgeline.graph.models.prices import Tariff
    from ridgeline.graph.models.requests import Traits

EXPLORATION = 0.35
"""Weight of UCB1's bonus: rewards here spread over about a third of [0, 1], where UCB1's sqrt(2) assumes all of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The reward of one piece of a model's work, an idea or a branch; see `reward`."""

    model: str
    reward: float
    usd: float | None = None  # what the work cost; None: its price is unknown


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

    def __init__(self, models: Sequence[AnyModel]) -> None:
        """Take at least one model; names are unique."""
        self._models: dict[str, SearchModel] = {model.name: search_model(model) for model in models}
        batched = (model.batched for model in self._models.values())
        self._batched = {model.name: model for model in batched if model is not None}
        self._dropped: set[str] = set()
        if not self._models:
            raise ModelError("a search needs at least one model, such as offline")

    @property
    def names(self) -> list[str]:
        """Return the names of the models that get work, in the order given."""
        return [name for name in self._models if name not in self._dropped]

    @property
    def composes_alone(self) -> bool:
        """Say whether every model that gets work composes kernels of structures that it knows."""
        return all(self.traits(name).composes for name in self.names)

    @property
    def reads_prompts(self) -> bool:
        """Say whether a model that gets work reads what a prompt shows."""
        return any(self.traits(name).reads_prompts for name in self.names)

    @property
    def thinks(self) -> bool:
        """Say whether a model that gets work takes its time, so that the device is idle meanwhile."""
        return any(self.traits(name).thinks for name in self.names)

    def traits(self, name: str) -> Traits:
        """Return how a model differs from others."""
        return self.model(name).traits

    def place(self, name: str) -> int:
        """Return a model's place in the order given; dropped models keep theirs."""
        return list(self._models).index(name)

    def drop(self, name: str) -> bool:
        """Give a model no more work in this session; False when it is the last one, or none of this pool."""
        if name not in self._models or self.names == [name]:
            return False
        self._dropped.add(name)
        return True

    def batch_model(self, name: str) -> BatchModel | None:
        """Return the model of this name whose calls go into its provider's batches, or None."""
        return self._batched.get(name)

    def model(self, name: str) -> SearchModel:
        """Return the model of this name; ModelError when a resumed search is not given it again."""
        if name not in self._models:
            raise ModelError(f"model {name} was part of this search: pass {option('model', name)} again to resume it")
        return self._models[name]

    @property
    def tariffs(self) -> dict[str, Tariff]:
        """Return what is known of the cost of the calls of those models that state it, by their names."""
        stated = ((name, model.tariff) for name, model in self._models.items())
        return {name: tariff for name, tariff in stated if tariff is not None}

    def unpriced(self) -> list[str]:
        """Return the models that say what their calls use, and have no known price."""
        return [name for name, tariff in self.tariffs.items() if tariff.price is None]

    def assign(self, count: int, outcomes: Iterable[Outcome], rng_seed: int) -> list[str]:
        """Return the model of each of `count` pieces of work, by UCB1 over `outcomes`; `rng_seed` breaks ties.

        Work of the same batch counts as an outcome with the model's mean reward, so that a batch spreads over the pool.

        Where the cost of every model is known, a model counts by its reward for what its work costs: the square of the
        reward, so that a tie is worth a quarter of a doubling, over its mean cost and the pool's mean cost together. The
        latter stands for what any work costs besides, time and measurements; so of two models the cheaper one is
        preferred three times at most, and a free one not without end.
        """
        outcomes = list(outcomes)
        costs = _relative_costs(outcomes, self.names)
        pulls = dict.fromkeys(self.names, 0)
        total = dict.fromkeys(self.names, 0.0)
        for outcome in outcomes:
            if outcome.model in pulls:
                pulls[outcome.model] += 1
                total[outcome.model] += outcome.reward if costs is None else outcome.reward**2
        means = {name: total[name] / pulls[name] if pulls[name] else 0.5 for name in pulls}
        order = random.Random(rng_seed).sample(self.names, len(pulls))
        chosen: list[str] = []
        for _ in range(count):
            tried = sum(pulls.values())
            name = max(order, key=lambda n: (means[n] + _bonus(pulls[n], tried)) / (costs[n] if costs else 1.0))
            pulls[name] += 1
            chosen.append(name)
        return chosen


def _relative_costs(outcomes: Sequence[Outcome], names: Sequence[str]) -> dict[str, float] | None:
    """Return what a piece of each model's work costs, over the pool's mean, and 1 for what any work costs besides.

    None where the costs are unknown, or nothing costs anything.
    """
    means = _mean_usd(outcomes, names)
    pooled = sum(means.values()) / len(means) if means else 0.0
    return {name: 1.0 + usd / pooled for name, usd in means.items()} if means and pooled > 0 else None


def _mean_usd(outcomes: Sequence[Outcome], names: Sequence[str]) -> dict[str, float] | None:
    """Return each model's mean cost of a piece of work; None while a price is unknown or a model has done nothing."""
    spent: dict[str, list[float]] = {name: [] for name in names}
    for outcome in outcomes:
        if outcome.model in spent:
            if outcome.usd is None:
                return None
            spent[outcome.model].append(outcome.usd)
    if not all(spent.values()):
        return None
    return {name: sum(found) / len(found) for name, found in spent.items()}


def _bonus(pulls: int, total: int) -> float:
    return math.inf if pulls == 0 else EXPLORATION * math.sqrt(math.log(total + 1) / pulls)
