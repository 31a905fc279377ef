"""How models are called: the problem says it, a request replaces single settings, a resumed search takes them anew."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.graph.conftest import write_problem

from ridgeline.graph.cli.arguments import make_parser
from ridgeline.graph.session.options import SearchRequest
from ridgeline.graph.session.problem import changed_calls
from ridgeline.problems.model_calls import CallSettings
from ridgeline.tools.errors import ProblemError


def test_settings_of_the_request_replace_single_ones_of_the_problem(tmp_path: Path) -> None:
    problem = write_problem(tmp_path, model_calls={"timeout_s": 20.0, "attempts": 3, "max_output_tokens": 9000})
    assert changed_calls(problem, {"attempts": 1}) == CallSettings(timeout_s=20.0, attempts=1, max_output_tokens=9000)


def test_the_clients_of_a_search_have_its_timeout_attempts_and_limits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setenv("GOOGLE_API_KEY", "test")
    stated = {"timeout_s": 20.0, "max_output_tokens": 9000, "max_reply_chars": 5000}
    problem = write_problem(tmp_path, model_calls=stated, models=["openai:gpt-4o", "openai:o3", "google_genai:g"])
    search = SearchRequest(problem=problem, run_dir=tmp_path / "run", model_calls={"attempts": 2}).resolve(
        is_local=False
    )
    for model in search.models:
        policy, chat = model.model._policy, model.model._chat  # type: ignore[attr-defined]
        assert (policy.timeout_s, policy.attempts, policy.max_reply_chars) == (20.0, 2, 5000)
        assert 9000 in (getattr(chat, "max_tokens", None), getattr(chat, "max_output_tokens", None))
        assert 20.0 in (getattr(chat, "request_timeout", None), getattr(chat, "timeout", None))


@pytest.mark.parametrize(("given", "said"), [({"attempts": 0}, "attempts: "), ({"timeout": 3}, "did you mean")])
def test_a_setting_that_is_out_of_range_or_unknown_is_one_line(
    tmp_path: Path, given: dict[str, int], said: str
) -> None:
    with pytest.raises(ProblemError, match=said):
        write_problem(tmp_path, model_calls=given)


@pytest.mark.parametrize("words", ["--model-timeout-s 0", "--model-attempts 0", "--model-attempts 101"])
def test_an_option_out_of_range_is_refused(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        make_parser().parse_args(["run", "softmax", *words.split()])
    assert "must be" in capsys.readouterr().err
