"""The sizes of the prompts of a search, and the share of them that a provider's prompt cache can hold.

    PYTHONPATH=src python benchmarks/prompt_sizes.py [RUN]

With the folder of a run, a replay's for example, its own prompts are measured. Without one nothing is run or asked: the
requests are those of prompt_scenario.py, 3 rounds of 4 ideas in 2 implementations and a repair a round. A token counts as
CHARACTERS_PER_TOKEN characters, which English and code of kernels have on average; providers' own counts differ by some
15 %. A prompt is cacheable as far as an earlier one that was asked with the same schema began with the same text, and from
CACHED_FROM tokens on: OpenAI puts the schema before the prompt.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from prompt_scenario import CASES, Scenario, scenario

from ridgeline.graph.models.prompts import render_request
from ridgeline.graph.models.requests import IdeationRequest, KernelRequest
from ridgeline.tools.records.keys import CallId

CHARACTERS_PER_TOKEN = 3.6
CACHED_FROM = 1024
"""Fewest tokens of a beginning that OpenAI caches (platform.openai.com/docs/guides/prompt-caching)."""


def main() -> None:
    """Print a line for each case, or for a run's prompts."""
    if sys.argv[1:]:
        print(told(sizes_of(run_prompts(Path(sys.argv[1])))))
        return
    print(f"{'':16} {'prefix':>7} {'first write':>12} {'ideation':>9} {'round 2':>8} {'round 3':>8} {'cacheable':>10}")
    for name in CASES:
        given = scenario(name)
        requests = list(given.requests())
        prompts = [render_request(request) for request in requests]
        first, *ideations = (tokens(text) for text in (_first_write(given), *_ideations(given)))
        prefix = tokens(prompts[0][: min(shared(prompts[0], prompt) for prompt in prompts)])
        print(
            f"{name:16} {prefix:7.0f} {first:12.0f} {ideations[0]:9.0f} {ideations[1]:8.0f} {ideations[2]:8.0f} "
            f"{cacheable(requests):10.1%}"
        )


@dataclass(frozen=True, slots=True)
class RunSizes:
    """The sizes of a run's prompts, in tokens."""

    ideation: dict[int, float]  # the largest of each round
    first_write: float  # the largest of the first round, repairs aside
    write: float  # the largest of all
    total: float
    cacheable: float


def run_prompts(run: Path) -> list[tuple[str, str]]:
    """Return the ids and the prompts of a run's calls, in the order of their beginnings."""
    with closing(sqlite3.connect(f"file:{run / 'archive.sqlite'}?mode=ro", uri=True)) as database:
        return list(
            database.execute(
                "SELECT call_id, prompts.text FROM model_calls JOIN prompts ON sha256 = prompt_sha256 "
                "ORDER BY began_at, model_calls.rowid"
            )
        )


def sizes_of(prompts: Sequence[tuple[str, str]]) -> RunSizes:
    """Return the sizes of a run's prompts by their calls."""
    asked = [(CallId.read(call_id), text) for call_id, text in prompts]
    ideation: dict[int, float] = {}
    writes: list[float] = []
    first = 0.0
    kinds: list[tuple[str, str]] = []
    for call, text in asked:
        if call is None:
            continue
        if call.asks_for_ideas:
            ideation[call.round] = max(ideation.get(call.round, 0.0), tokens(text))
        else:
            writes.append(tokens(text))
            first = max(first, tokens(text)) if call.round == 1 and not call.attempt else first
        kinds.append(("ideas" if call.asks_for_ideas else "kernel", text))
    total, cached = _cached(kinds)
    return RunSizes(ideation, first, max(writes, default=0.0), total, cached / total)


def told(sizes: RunSizes) -> str:
    """Return the sizes in lines."""
    ideas = ", ".join(f"round {round_} {size:.0f}" for round_, size in sizes.ideation.items())
    return (
        f"ideas: {ideas}\nlargest first kernel: {sizes.first_write:.0f}, largest kernel: {sizes.write:.0f}\n"
        f"all: {sizes.total:.0f}, cacheable: {sizes.cacheable:.1%}"
    )


def tokens(text: str) -> float:
    """Return about how many tokens a text has."""
    return len(text) / CHARACTERS_PER_TOKEN


def shared(one: str, other: str) -> int:
    """Return how many characters two texts begin with alike."""
    alike, longest = 0, min(len(one), len(other))
    while alike < longest:
        middle = (alike + longest + 1) // 2
        if one.startswith(other[alike:middle], alike):
            alike = middle
        else:
            longest = middle - 1
    return alike


def cacheable(requests: Sequence[IdeationRequest | KernelRequest]) -> float:
    """Return the share of all input that an earlier prompt of the same kind began with."""
    total, cached = _cached([(type(request).__name__, render_request(request)) for request in requests])
    return cached / total


def _cached(prompts: Sequence[tuple[str, str]]) -> tuple[float, float]:
    """Return the tokens of prompts, each behind its kind, and those of them that one before of its kind began with."""
    before: dict[str, list[str]] = {}
    cached = total = 0.0
    for kind, prompt in prompts:
        alike = before.setdefault(kind, [])
        longest = max((tokens(prompt[: shared(prompt, earlier)]) for earlier in alike), default=0.0)
        cached += longest if longest >= CACHED_FROM else 0.0
        total += tokens(prompt)
        alike.append(prompt)
    return total, cached


def _first_write(given: Scenario) -> str:
    return render_request(given.kernel(1, 0, 0))


def _ideations(given: Scenario) -> list[str]:
    return [render_request(given.ideation(round_)) for round_ in (1, 2, 3)]


if __name__ == "__main__":
    main()
