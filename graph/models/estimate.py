"""The model calls of a search before the first is sent: calls, tokens and dollars, each as a range.

The low end is a search without a failure whose models write short kernels; the high end one in which every branch needs
all repairs, every round a second ask, and every reply thought. Both run all rounds: a stop rule may end a search earlier.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ridgeline.graph.models.allowance import CHARACTERS_PER_TOKEN, in_words
from ridgeline.graph.models.prices import Tariff
from ridgeline.graph.models.prompts import IDEATION_CHARS
from ridgeline.graph.models.requests import Usage

if TYPE_CHECKING:
    from ridgeline.problems.spec import Budget

KERNEL_TOKENS = (800, 10_000)
"""A kernel's source. The seeds that ship have 300 to 3,300; those that a language model wrote for a causal attention had 3,100
to 9,700 (benchmarks/recordings), at 3.6 characters a token."""
THOUGHT_TOKENS = (0, 15_000)
"""Thought of one reply, which is paid as output."""
CONTRACT_TOKENS = (1000, 1700)
"""The prompt of a kernel around its sources: contract, machine, PyTorch's times (benchmarks/prompt_sizes.py)."""
ASK_TOKENS = (1300, 2100)
"""The prompt for ideas around its sources: the same, and what makes a good idea."""
MOST_ASK_TOKENS = IDEATION_CHARS // CHARACTERS_PER_TOKEN
"""The prompt for ideas with its sources, which are cut to it."""
IDEA_TOKENS = (120, 300)
"""An idea, in a reply and among those tried."""
FAILURE_TOKENS = (100, 2000)
"""The error that a repair is shown: a compiler's log is cut at 6,000 characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The numbers that a search's calls follow from."""

    rounds: int
    ideas: int  # a round
    implementations: int  # of an idea
    repairs: int
    elites: int
    remembers_ideas: bool
    reference_chars: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """One end of the range."""

    calls: int
    input_tokens: int
    output_tokens: int

    @property
    def usage(self) -> Usage:
        """Return the tokens of all calls as one usage."""
        return Usage(input_tokens=self.input_tokens, output_tokens=self.output_tokens)


def estimate(shape: Shape) -> tuple[Calls, Calls]:
    """Return the fewest and the most that a search of this shape is expected to ask."""
    return _end(shape, 0), _end(shape, 1)


def _end(shape: Shape, end: int) -> Calls:
    """Return the low end (0) or the high end (1)."""
    kernel, thought, idea = KERNEL_TOKENS[end], THOUGHT_TOKENS[end], IDEA_TOKENS[end]
    reference = shape.reference_chars // CHARACTERS_PER_TOKEN
    asks, repairs = 1 + end, shape.repairs * end  # a second ask for ideas; all repairs of all branches
    elites = shape.elites if end else 1
    branches = shape.rounds * shape.ideas * shape.implementations
    tried = shape.ideas * (shape.rounds - 1) / 2 if shape.remembers_ideas else 0  # on average over the rounds
    ask_tokens = ASK_TOKENS[end] + reference
    ask_tokens = max(ask_tokens, min(ask_tokens + elites * kernel + int(tried * idea), MOST_ASK_TOKENS))
    write_tokens = CONTRACT_TOKENS[end] + reference + idea + kernel
    repair_tokens = write_tokens + kernel + FAILURE_TOKENS[end]
    ideations, writes = shape.rounds * asks, branches * (1 + repairs)
    return Calls(
        calls=ideations + writes,
        input_tokens=ideations * ask_tokens + branches * (write_tokens + repairs * repair_tokens),
        output_tokens=ideations * (shape.ideas * idea + thought) + writes * (kernel + thought),
    )


def estimate_lines(shape: Shape, tariffs: Sequence[Tariff], budget: Budget) -> list[str]:
    """Return the estimate in words: one line, and one on the limit that may end the search before."""
    low, high = estimate(shape)
    tokens = [_tokens(each.usage.tokens) for each in (low, high)]
    usd = [_usd(each, tariffs) for each in (low, high)]
    cost = ", price unknown"
    if usd[0] and usd[1]:
        cost = f", {in_words('usd', min(usd[0]))} to {in_words('usd', max(usd[1]))}"
        cost += " and calls of unknown price" if len(usd[1]) < len(tariffs) else ""
    lines = [
        f"estimate of all rounds: {low.calls:,} to {high.calls:,} model calls, {tokens[0]} to {tokens[1]} tokens{cost}"
    ]
    reached = {"usd": max(usd[1], default=0.0), "tokens": float(high.usage.tokens)}
    for name, most in reached.items():
        limit = getattr(budget, name)
        if limit is not None and most > limit:
            lines.append(f"the budget may end it before: its {name} is {in_words(name, limit)}")
    return lines


def _usd(end: Calls, tariffs: Sequence[Tariff]) -> list[float]:
    """Return what the calls would cost with each model whose price is known alone."""
    found = (tariff.usd(end.usage) for tariff in tariffs)
    return [usd for usd in found if usd is not None]


def _tokens(number: int) -> str:
    """Return a number of tokens with two digits: an estimate has no more."""
    return f"{number / 1e6:.1f} million" if number >= 1_000_000 else f"{round(number, -3):,}"
