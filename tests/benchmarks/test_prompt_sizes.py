"""The prompts of a simulated search: as snapshots for people to read, within their sizes, and cacheable.

After a change to a template run `PYTHONPATH=.:src:benchmarks .venv/bin/python tests/benchmarks/test_prompt_sizes.py` and
read the difference.
"""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from ridgeline.graph.models.prompts import render_prefix, render_request

SNAPSHOTS = Path(__file__).parent / "prompt_snapshots"
RECORDINGS = Path(__file__).parents[2] / "benchmarks" / "recordings"
RECORDING = RECORDINGS / "attention_causal.jsonl"
MOST_OF_IDEATION = 0.95 * 5500
"""Tokens: the goal with room for what is yet to be told."""
CASES = ("cpu_fp32", "cuda_half")


def given(name: str) -> Any:
    return import_module("prompt_scenario").scenario(name)


def sizes() -> Any:
    return import_module("prompt_sizes")


def snapshots(name: str) -> dict[str, str]:
    """Return the prompts that are kept as files, by name."""
    scenario = given(name)
    requests = {
        "ideate_round_3": scenario.ideation(3),
        "write_first": scenario.kernel(1, 0, 0),
        "repair": scenario.repair(2, 1),
    }
    return {f"{name}_{kind}.txt": render_request(request) for kind, request in requests.items()}


@pytest.mark.parametrize("name", CASES)
def test_prompts_are_as_the_snapshots_have_them(name: str) -> None:
    for file, text in snapshots(name).items():
        assert (SNAPSHOTS / file).read_text(encoding="utf-8") == text, f"{file}: {__doc__}"


@pytest.mark.parametrize("name", ["cpu_fp32", "cpu_convolution", "cuda_half"])
def test_a_first_write_has_at_most_1500_tokens(name: str) -> None:
    assert sizes().tokens(render_request(given(name).kernel(1, 0, 0))) <= 1500


def test_the_first_write_of_a_run_is_none_of_its_repairs() -> None:
    prompts = [("r1:ideate:0", 36), ("r1i0v0a0:write", 72), ("r1i0v0a1:write", 720), ("r2i0v0a0:write", 360)]
    found = sizes().sizes_of([(call, "x" * size) for call, size in prompts])
    assert (found.ideation, found.first_write, found.write) == ({1: 10.0}, 20.0, 200.0)


def first_words(text: str, count: int) -> str:
    return " ".join(text.split()[:count])


@pytest.mark.parametrize("name", ["attention_causal", "attention_fp16", "conv2d_bias_silu"])
def test_a_first_write_of_a_recorded_search_has_at_most_1500_tokens_where_its_idea_keeps_to_its_length(
    name: str,
) -> None:
    """Recorded ideas are longer than what is asked for since, those for fp16 aside: they are cut to it."""
    recorded = import_module("recorded_prompts").Recorded.read(RECORDINGS / f"{name}.jsonl")
    for number in range(4):
        for variation in range(2):
            asked = recorded.first_write(number, variation)
            words = {
                "title": first_words(asked.idea.title, 12),
                "mechanism": first_words(asked.idea.mechanism, 80),
            }
            cut = replace(asked, idea=asked.idea.model_copy(update=words), plan=first_words(asked.plan, 50))
            assert 1380 < sizes().tokens(render_request(asked if name == "attention_fp16" else cut)) <= 1500


@pytest.mark.parametrize("name", ["cpu_fp32", "cpu_convolution", "cuda_half"])
def test_ideation_of_the_third_round_holds_one_source(name: str) -> None:
    """The CUDA kernel alone has 2,200 tokens."""
    text = render_request(given(name).ideation(3))
    assert sizes().tokens(text) <= MOST_OF_IDEATION
    assert text.count("```cpp") + text.count("```cu") == 1
    assert text.count("Its outline:") == 3


def test_requests_for_ideas_of_a_recorded_search_keep_to_their_size() -> None:
    """Its kernels have 250 to 720 lines, and what was learned of each idea is as long as in a real search."""
    recorded = import_module("recorded_prompts").Recorded.read(RECORDING)
    for round_ in range(2, 7):
        request = recorded.ideation(round_)
        text = render_request(request)
        assert 0.9 * MOST_OF_IDEATION < sizes().tokens(text) <= MOST_OF_IDEATION
        assert [f"### `{elite.candidate_id}`" in text for elite in request.elites] == [True] * 4
        assert all(idea.title[:60] in text for idea in request.tried)
        assert "values 53% (0.325 ms)" in text and "refuted" in text and ("gain 0.93×" in text or round_ == 2)
        assert text.count("```cpp") == 1 and "Cut to the functions" in text


@pytest.mark.parametrize("name", ["cpu_fp32", "cpu_convolution", "cuda_half"])
def test_every_prompt_of_a_search_begins_with_the_same_bytes(name: str) -> None:
    scenario = given(name)
    prompts = [render_request(request) for request in scenario.requests()]
    prefix = render_prefix(scenario.subject)
    assert len(prompts) == 30 and all(prompt.startswith(prefix) for prompt in prompts)


def test_three_quarters_of_a_search_s_input_can_be_cached() -> None:
    shares = [sizes().cacheable(list(given(name).requests())) for name in ("cpu_fp32", "cpu_convolution", "cuda_half")]
    assert min(shares) >= 0.75


def test_an_fp32_problem_is_shown_no_half_types_and_its_shapes_once() -> None:
    text = render_request(given("cpu_fp32").kernel(1, 0, 0)).partition("Arguments of")[2]
    assert "struct fp16" not in text and "float16" not in text
    assert text.count("2048") == 2 and text.count("768") == 3  # x and residual; out; three parameters


if __name__ == "__main__":
    SNAPSHOTS.mkdir(exist_ok=True)
    for case in CASES:
        for path, content in snapshots(case).items():
            (SNAPSHOTS / path).write_text(content, encoding="utf-8")
