"""A revision beside a branch search: as many tokens, however many rounds these are."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest
from tests.graph.memory_engine import MemoryEngine
from tests.graph.scripted_model import ScriptedModel
from tests.graph.session.test_session import options

from ridgeline.graph.cli.arguments import make_parser
from ridgeline.graph.cli.request import request_of_words
from ridgeline.graph.models.requests import Reply, Usage
from ridgeline.graph.search.shape.plan import make_plan
from ridgeline.graph.session.session import run_search
from ridgeline.problems.limits import MOST
from ridgeline.problems.spec import SearchSettings
from ridgeline.tools.errors import RunError

pytestmark = pytest.mark.long

CALL = 4000
"""Tokens of a call: more than its prompt has characters, so that room for it can be told beforehand."""


class Costly(ScriptedModel):
    """A scripted model whose calls use as many tokens as a real one's."""

    async def _reply(self, answer: Any) -> Reply:
        return dataclasses.replace(
            await super()._reply(answer), usage=Usage(input_tokens=CALL - 500, output_tokens=500, usd=0.0)
        )


async def test_a_revision_uses_as_many_tokens_as_the_branch_search_that_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    branch = await run_search(options(tmp_path), engine=MemoryEngine(), models=[Costly()])
    monkeypatch.chdir(tmp_path)
    words = vars(make_parser().parse_args(["run", "softmax", "--max-tokens", "run"]))
    limit = request_of_words(words, problem=None, run_dir=None, resume=False).budget
    assert limit is not None
    assert limit.tokens == branch.report["tokens"] == 10 * CALL
    events: list[Any] = []
    revised = options(tmp_path, search={"rounds": 1, "strategy": "revision"}, budget=limit)
    asked = dataclasses.replace(revised, run_dir=tmp_path / "revision")
    revision = await run_search(asked, engine=MemoryEngine(), models=[Costly()], on_event=events.append)
    assert revision.state == "budget"
    assert abs(10 * CALL - revision.report["tokens"]) <= CALL
    assert {event["max_rounds"] for event in events if event["event"] == "round_started"} == {0}


def test_rounds_limit_a_revision_where_tokens_do_not() -> None:
    settings = SearchSettings(strategy="revision", rounds=2, ideas=2, implementations=2)
    assert make_plan(settings).rounds == 8
    assert make_plan(settings, is_token_limited=True).rounds == MOST
    assert make_plan(settings, 3, is_token_limited=True).rounds == 12
    assert make_plan(settings.model_copy(update={"strategy": "branch"}), is_token_limited=True).rounds == 2


@pytest.mark.parametrize(("limit", "says"), [("0", "above 0|1 or more"), ("-3", "1 or more"), ("1.5", "whole number")])
def test_a_limit_that_is_no_number_of_tokens_is_refused(
    limit: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        make_parser().parse_args(["run", "softmax", f"--max-tokens={limit}"])
    assert re.search(says, capsys.readouterr().err)


async def test_a_run_without_a_token_is_no_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ridgeline.checkpoints.archive import Archive
    from ridgeline.checkpoints.run_record import RunRecord

    monkeypatch.chdir(tmp_path)
    with Archive.open(tmp_path / "run" / "archive.sqlite") as archive:
        archive.save_run(RunRecord(problem={"name": "toy"}))
    for name, says in (("run", "used no token"), ("nowhere", "no such run")):
        words = vars(make_parser().parse_args(["run", "softmax", "--max-tokens", name]))
        with pytest.raises(RunError, match=says):
            request_of_words(words, problem=None, run_dir=None, resume=False)
