"""A request for a search, and what it comes to."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.graph.conftest import write_problem
from tests.graph.memory_engine import MemoryEngine
from tests.graph.scripted_model import ScriptedModel

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.bank import Bank
from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.checkpoints.storage.database import Database
from ridgeline.graph.session.opened_search import open_context
from ridgeline.graph.session.options import SearchRequest
from ridgeline.graph.session.session import run_resolved, run_search
from ridgeline.problems.spec import Budget, SearchSettings
from ridgeline.tools.errors import ModelError, ProblemError, RunError, StorageError

SETTINGS = {"rounds": 1, "ideas": 1, "implementations": 1, "tune_trials": 0}


def request(tmp_path: Path, **fields: Any) -> SearchRequest:
    problem = write_problem(tmp_path / "problem", search=SETTINGS, budget={"usd": 5, "tokens": 1000})
    return SearchRequest(problem=problem, runs_dir=tmp_path / "runs", **fields)


def resolve(asked: SearchRequest) -> Any:
    return asked.resolve(models=[ScriptedModel()], is_local=False)


def test_a_new_search_takes_what_the_request_leaves_open_from_the_problem(tmp_path: Path) -> None:
    search = resolve(request(tmp_path, settings={"ideas": 3}, budget=Budget(tokens=7)))
    assert (search.settings.rounds, search.settings.ideas) == (1, 3)
    assert (search.budget.usd, search.budget.tokens) == (5, 7)
    assert search.run_dir.parent == tmp_path / "runs"
    assert not (tmp_path / "runs").exists(), "to resolve writes nothing"
    assert not search.has_begun


def test_a_search_that_was_ended_before_it_stored_its_problem_is_to_be_started_again(tmp_path: Path) -> None:
    run_dir = tmp_path / "runs" / "begun"
    Archive.open(run_dir / "archive.sqlite").close()
    with pytest.raises(RunError, match="begun: its search was ended before anything was stored; start it again"):
        resolve(SearchRequest(run_dir=run_dir, resume=True))
    assert resolve(request(tmp_path, run_dir=run_dir)).run_dir == run_dir, "it may begin there"


async def test_a_problem_lies_in_a_folder_of_any_name(tmp_path: Path) -> None:
    asked = request(tmp_path / os.fsdecode(b"q\xff\xfe"), run_dir=tmp_path / "runs" / "odd")
    await run_search(asked, engine=MemoryEngine(), models=[ScriptedModel()])
    resumed = resolve(SearchRequest(run_dir=asked.run_dir, resume=True))
    assert resumed.has_begun and resumed.problem.path == asked.problem.path


def test_settings_can_be_given_whole(tmp_path: Path) -> None:
    assert resolve(request(tmp_path, settings=SearchSettings(rounds=9))).settings == SearchSettings(rounds=9)


def test_a_setting_out_of_range_is_said_in_own_words(tmp_path: Path) -> None:
    with pytest.raises(ProblemError, match=r"^rounds: must be greater than or equal to 1, got 0$"):
        resolve(request(tmp_path, settings={"rounds": 0}))


async def test_a_resumed_search_keeps_what_it_began_with_and_takes_models_and_limits_that_are_named(
    tmp_path: Path,
) -> None:
    begun = request(tmp_path, rng_seed=4, settings={"ideas": 2}, run_dir=tmp_path / "runs" / "begun")
    await run_search(begun, engine=MemoryEngine(), models=[ScriptedModel()])
    asked = SearchRequest(
        run_dir=begun.run_dir, resume=True, device="cuda:7", rng_seed=5, settings={"ideas": 6}, budget=Budget(usd=9)
    )
    search = resolve(asked)
    assert search.problem.name == "toy", "the run says which problem it searched"
    assert (search.device, search.rng_seed, search.settings.ideas) == ("cpu", 4, 2)
    assert (search.budget.usd, search.budget.tokens) == (9, 1000)
    with pytest.raises(
        ModelError, match=r"runs/begun: begun by a program with a model of its own, 'scripted'; resume it"
    ):
        asked.resolve(is_local=False)  # the models of the run itself, of which there is no such provider
    named = SearchRequest(run_dir=begun.run_dir, resume=True, models=("offline",)).resolve(is_local=False)
    assert named.model_names == ("offline",)


async def test_a_resumed_search_without_a_folder_is_the_newest_unfinished_one_of_its_problem(tmp_path: Path) -> None:
    asked = request(tmp_path, resume=True)
    with pytest.raises(RunError, match="no unfinished run of toy"):
        resolve(asked)
    for name in ("older", "newer"):
        begun = request(tmp_path, run_dir=tmp_path / "runs" / name)
        async with open_context(begun, engine=MemoryEngine(), models=[ScriptedModel()]):
            pass
    assert resolve(asked).run_dir.name == "newer"


@pytest.mark.parametrize(
    ("stored", "says"),
    [
        ({"graph_version": 7}, "was ended before anything was stored; start it again"),
        ({"problem": {"name": "toy"}}, "does not say which problem it searched; name its problem.yaml too"),
        ({"state": "stopped"}, "does not say which problem it searched; name its problem.yaml too"),
    ],
)
def test_a_run_that_cannot_go_on_says_whether_it_began(tmp_path: Path, stored: dict[str, Any], says: str) -> None:
    with Archive.open(tmp_path / "run" / "archive.sqlite") as archive:
        archive.save_run(RunRecord(**stored))
    with pytest.raises(RunError, match=says):
        SearchRequest(run_dir=tmp_path / "run", resume=True).resolve()


async def test_a_search_that_is_alive_is_no_reason_to_begin_a_second_one(tmp_path: Path) -> None:
    begun = request(tmp_path, run_dir=tmp_path / "runs" / "alive")
    async with open_context(begun, engine=MemoryEngine(), models=[ScriptedModel()]):
        with pytest.raises(
            RunError,
            match=r"alive: another search of this process uses it; wait for it, or stop it with: ridgeline stop",
        ):
            resolve(request(tmp_path, resume=True))


def test_a_request_without_a_problem_and_without_a_run_is_refused() -> None:
    with pytest.raises(ProblemError, match="no problem was named"):
        SearchRequest().resolve()
    with pytest.raises(RunError, match=r"no run was named; name its folder \(run_dir\), or its problem"):
        SearchRequest(resume=True).resolve()


async def test_a_folder_that_is_no_run_is_told_so_where_it_is_to_go_on(tmp_path: Path) -> None:
    begun = request(tmp_path, run_dir=tmp_path / "runs" / "begun")
    async with open_context(begun, engine=MemoryEngine(), models=[ScriptedModel()]):
        pass
    for named, says in (
        ("runs/nope", "runs/nope: no such run; give a run's folder"),
        ("beg", "did you mean .*runs/begun"),
    ):
        with pytest.raises(RunError, match=says):
            resolve(request(tmp_path, run_dir=Path(named), resume=True))


async def test_a_resume_reads_its_archive_once_and_opens_it_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = request(tmp_path, run_dir=tmp_path / "runs" / "begun")
    await run_search(begun, engine=MemoryEngine(), models=[ScriptedModel()])
    opened: list[str] = []

    def noted(method: str) -> Any:
        call = getattr(Database, method)

        def opening(*given: Any, **named: Any) -> Any:
            opened.append(method)
            return call(*given, **named)

        return opening

    for method in ("open", "open_read_only"):
        monkeypatch.setattr(Database, method, noted(method))
    resumed = SearchRequest(run_dir=begun.run_dir, resume=True)
    async with open_context(resumed, engine=MemoryEngine(), models=[ScriptedModel()]):
        assert opened == ["open_read_only", "open"]


async def test_a_search_that_began_after_the_request_was_resolved_is_not_taken_over(tmp_path: Path) -> None:
    asked = request(tmp_path, run_dir=tmp_path / "runs" / "begun")
    resolved = resolve(asked)
    await run_search(asked, engine=MemoryEngine(), models=[ScriptedModel()])
    with pytest.raises(RunError, match="holds a search already"):
        await run_resolved(resolved, engine=MemoryEngine())


def _damaged_bank(path: Path) -> Path:
    with Bank.open(path):
        pass
    with closing(sqlite3.connect(path)) as bank, bank:
        bank.execute(
            "INSERT INTO kernels (id, family, device_arch, problem, record, evaluation) "
            "VALUES ('bank-1', 'softmax', 'test-1', 'toy', 'null', '{}')"
        )
    return path


async def test_a_search_goes_on_without_the_users_own_damaged_bank_and_refuses_one_that_was_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("RIDGELINE_HOME", str(tmp_path / "home"))
    named = _damaged_bank(tmp_path / "named.sqlite")
    with pytest.raises(StorageError, match="named.sqlite: the database is damaged"):
        resolve(request(tmp_path, bank=named))
    assert not (tmp_path / "runs").exists()
    own = _damaged_bank(tmp_path / "home" / "bank.sqlite")
    result = await run_search(request(tmp_path, bank=own), engine=MemoryEngine(), models=[ScriptedModel()])
    assert result.certified
    assert "going on without the seed bank" in caplog.text
