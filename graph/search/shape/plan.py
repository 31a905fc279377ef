"""The shape of a search: its rounds, ideas and trials, for the two strategies at equal budgets."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ridgeline.graph.search.shape.ablation import Ablation
from ridgeline.problems.limits import MOST

if TYPE_CHECKING:
    from ridgeline.problems.spec import SearchSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The shape of one search; which parts it has is `Ablation`'s.

    `revision` turns every branch of `branch` into a round of one idea and one implementation, so both write as many
    candidates and measure as many tuned points; with a limit of tokens, both use as many tokens.
    """

    rounds: int
    ideas: int
    implementations: int
    elites: int
    stall_rounds: int | None
    trials_per_round: float

    @property
    def told_rounds(self) -> int:
        """Return the rounds as viewers are told them: 0 where tokens alone limit the search."""
        return 0 if self.rounds == MOST else self.rounds

    def trials(self, round_: int) -> int:
        """Return how many tuned points round `round_` may measure; fractions add up over the rounds."""
        return int(self.trials_per_round * round_ + 1e-9) - int(self.trials_per_round * (round_ - 1) + 1e-9)


def make_plan(settings: SearchSettings, max_rounds: int | None = None, *, is_token_limited: bool = False) -> Plan:
    """Return the plan of these settings; `max_rounds` (an extension) counts rounds of `branch`.

    A `revision` with a limit of tokens goes on until these are used: beside a `branch` that had as many, its rounds say
    nothing, since a call of either costs another number of tokens.
    """
    rounds = max_rounds or settings.rounds
    trials = settings.tune_trials if Ablation.of(settings).has("tuning") else 0
    if settings.strategy == "branch":
        return Plan(
            rounds=rounds,
            ideas=settings.ideas,
            implementations=settings.implementations,
            elites=settings.elites,
            stall_rounds=settings.stall_rounds,
            trials_per_round=trials,
        )
    width = settings.ideas * settings.implementations
    return Plan(
        rounds=MOST if is_token_limited and max_rounds is None else rounds * width,
        ideas=1,
        implementations=1,
        elites=1,
        stall_rounds=settings.stall_rounds * width if settings.stall_rounds else None,
        trials_per_round=trials / width,
    )


def derived_seed(rng_seed: int, *parts: object) -> int:
    """Return a seed for one decision, the same on every resume and independent of the others."""
    text = ":".join(str(p) for p in (rng_seed, *parts))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")
