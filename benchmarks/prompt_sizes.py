"""The sizes of the prompts of a search, and the share of them that a provider's prompt cache can hold.

    PYTHONPATH=src python benchmarks/prompt_sizes.py

Nothing is run or asked: the requests are those of prompt_scenario.py, 3 rounds of 4 ideas in 2 implementations and a
repair a round. A token counts as CHARACTERS_PER_TOKEN characters, which English and code of kernels have on average;
providers' own counts differ by some 15 %. A prompt is cacheable as far as an earlier one that was asked with the same schema
began with the same text, and from CACHED_FROM tokens on: OpenAI puts the schema before the prompt.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from prompt_scenario import CASES, Scenario, scenario

from ridgeline.graph.models.prompts import render_request
from ridgeline.graph.models.requests import IdeationRequest, KernelRequest

CHARACTERS_PER_TOKEN = 3.6
CACHED_FROM = 1024
"""Fewest tokens of a beginning that OpenAI caches (platform.openai.com/docs/guides/prompt-caching)."""


def main() -> None:
    """Print a line for each case."""
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


def tokens(text: str) -> float:
    """Return about how many tokens a text has."""
    return len(text) / CHARACTERS_PER_TOKEN


def shared(one: str, other: str) -> int:
    """Return how many characters two texts begin with alike."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def cacheable(requests: Sequence[IdeationRequest | KernelRequest]) -> float:
    """Return the share of all input that an earlier prompt of the same kind began with."""
    before: dict[type, list[str]] = {IdeationRequest: [], KernelRequest: []}
    cached = total = 0.0
    for request in requests:
        prompt, alike = render_request(request), before[type(request)]
        longest = max((tokens(prompt[: shared(prompt, earlier)]) for earlier in alike), default=0.0)
        cached += longest if longest >= CACHED_FROM else 0.0
        total += tokens(prompt)
        alike.append(prompt)
    return cached / total


def _first_write(given: Scenario) -> str:
    return render_request(given.kernel(1, 0, 0))


def _ideations(given: Scenario) -> list[str]:
    return [render_request(given.ideation(round_)) for round_ in (1, 2, 3)]


if __name__ == "__main__":
    main()
