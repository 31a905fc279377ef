"""What a search will cost, told before its first call."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from tests.graph.conftest import write_problem
from tests.graph.loopback import Answer, serve

from ridgeline.graph.cli import main
from ridgeline.graph.models.estimate import Shape, estimate, estimate_lines
from ridgeline.graph.models.prices import Tariff
from ridgeline.problems.model_calls import PriceSettings
from ridgeline.problems.spec import Budget

pytestmark = pytest.mark.usefixtures("warm_judge")
SHAPE = Shape(rounds=5, ideas=4, implementations=2, repairs=2, elites=4, remembers_ideas=True, reference_chars=900)
PRICED = Tariff(price=PriceSettings(input=2.0, output=8.0))


def test_calls_are_counted_from_the_search_s_shape() -> None:
    low, high = estimate(SHAPE)
    assert (low.calls, high.calls) == (5 + 40, 2 * 5 + 40 * 3)
    assert low.input_tokens < high.input_tokens and low.output_tokens < high.output_tokens


def test_a_request_for_ideas_is_no_longer_than_its_prompt_is_cut_to() -> None:
    assert estimate(replace(SHAPE, elites=400))[1] == estimate(SHAPE)[1]
    longer = replace(SHAPE, reference_chars=90_000)
    assert estimate(longer)[1].input_tokens > estimate(SHAPE)[1].input_tokens + 130 * 29_000


def test_dollars_are_a_range_over_the_models_that_share_the_search() -> None:
    dear = Tariff(price=PriceSettings(input=20.0, output=80.0))
    (alone,) = estimate_lines(SHAPE, [PRICED], Budget())
    (both,) = estimate_lines(SHAPE, [PRICED, dear], Budget())
    low, high = estimate(SHAPE)
    assert f"${PRICED.usd(low.usage):,.2f} to ${PRICED.usd(high.usage):,.2f}" in alone
    assert f"${PRICED.usd(low.usage):,.2f} to ${dear.usd(high.usage):,.2f}" in both


def test_an_unknown_price_is_said_and_a_limit_below_the_estimate_named() -> None:
    assert estimate_lines(SHAPE, [Tariff()], Budget())[0].endswith("price unknown")
    assert "calls of unknown price" in estimate_lines(SHAPE, [PRICED, Tariff()], Budget())[0]
    assert estimate_lines(SHAPE, [PRICED], Budget(usd=0.5))[1].endswith("its usd is $0.50")


def test_estimate_alone_sends_nothing_and_makes_no_run_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setenv("RIDGELINE_HOME", str(tmp_path / "home"))
    write_problem(tmp_path / "problem")
    with serve(lambda n, request: Answer(status=500)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        assert main(["run", "problem", "--model", "openai:o3", "--estimate", "--rounds", "2"]) == 0
    assert "estimate of all rounds: 18 to 52 model calls" in capsys.readouterr().out
    assert not server.requests
    assert sorted(path.name for path in tmp_path.iterdir()) == ["problem"]


@pytest.mark.parametrize("model", ["openai:o3", "openai:o3?batch", "google_genai:gemini-2.5-pro"])
def test_estimate_alone_needs_no_key_which_the_search_itself_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], model: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "GOOGLE_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    write_problem(tmp_path / "problem")
    assert main(["run", "problem", "--model", model, "--estimate"]) == 0
    assert "estimate of all rounds: " in capsys.readouterr().out
    assert main(["run", "problem", "--model", model, "--plain"]) == 2
    assert "_API_KEY, or run with --model offline" in capsys.readouterr().err


def test_a_search_that_tells_of_no_tried_idea_costs_less(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    write_problem(tmp_path / "problem")
    tokens = []
    for without in ([], ["--without", "memory"]):
        assert main(["run", "problem", "--model", "openai:o3", "--estimate", *without]) == 0
        tokens.append(re.findall(r"([\d,.]+)", capsys.readouterr().out.partition("tokens")[0]))
    whole, forgetful = tokens
    assert whole[:2] == forgetful[:2]  # as many calls
    assert whole != forgetful


def test_a_mailbox_s_requests_are_counted_without_a_price(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    write_problem(tmp_path / "problem")
    options = ["--estimate", "--rounds", "2", "--max-usd", "1"]
    assert main(["run", "problem", "--model", "mailbox:me", *options]) == 0
    assert capsys.readouterr().out == (
        "estimate of all rounds: 18 to 52 requests; an answer from a mailbox costs what it states\n"
    )
    assert main(["run", "problem", "--model", "mailbox", "--model", "openai:o3", *options]) == 0
    first, *_, last = capsys.readouterr().out.splitlines()
    assert "$" in first and "unknown price" not in first
    assert last == "a part of these calls goes to a mailbox: an answer from a mailbox costs what it states"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["problem"]


def test_a_search_without_a_language_model_is_estimated_at_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_problem(tmp_path / "problem")
    assert main(["run", "problem", "--estimate"]) == 0
    assert "no call of a language model" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("forward", "says"),
    [
        ("torch.sort(x)[0]", "ridgeline: toy: the offline model"),
        ("x @ torch.rand(3)", "reference.py: forward() raised"),
    ],
)
def test_an_estimate_refuses_what_the_search_would_refuse(
    forward: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_problem(tmp_path / "problem", seeds=[])
    reference = tmp_path / "problem" / "reference.py"
    reference.write_text(reference.read_text().replace("torch.softmax(x, dim=-1)", forward))
    assert main(["run", "problem", "--estimate"]) == 2
    said = capsys.readouterr()
    assert not said.out and says in said.err and said.err.count("\n") == 1
