"""A file of an older schema brought up to date, wholly or not at all."""

from __future__ import annotations

import dataclasses
import json
import sqlite3
from pathlib import Path

import pytest
from tests.descriptions import description_of

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.calls.journal import Journal
from ridgeline.checkpoints.engine_failures import EngineFailure
from ridgeline.checkpoints.result import build_result, show_run
from ridgeline.checkpoints.storage.database import Database, Migration
from ridgeline.checkpoints.storage.database_kind import Kind
from ridgeline.checkpoints.storage.migrations import ARCHIVE
from ridgeline.tools.errors import StorageError
from ridgeline.tools.records.problem import Description, SkippedTrial
from ridgeline.tools.records.search import Idea
from ridgeline.tools.records.vocabulary import Category, Purpose, ReasonCode

_SCHEMA_3 = Path(__file__).parent / "archive_schema_3.sql"
REASON = "the engine failed, the kernel may be sound: the judge died"


def _schema_3(path: Path) -> Path:
    """Write a stopped search's archive of schema 3, in which the engine had failed on a kernel and a tuned point."""
    with sqlite3.connect(path) as connection:
        connection.executescript(_SCHEMA_3.read_text(encoding="utf-8"))
    connection.close()
    return path


def test_migrations_bring_a_file_of_the_first_schema_up_to_date(tmp_path: Path) -> None:
    path = tmp_path / "archive.sqlite"
    Database.open(path, ARCHIVE[:1], create=True, what=Kind.ARCHIVE).close()
    with Archive.open(path) as archive:
        archive.charge("a", wall_s=1.0, what="x")
        assert archive.database.first("PRAGMA user_version") == {"user_version": ARCHIVE[-1].number}
        assert archive.database.query("SELECT COUNT(*) AS n FROM model_calls") == [{"n": 0}]
        assert archive.engine_failures() == []


def test_a_migration_that_fails_leaves_the_version_before_it(tmp_path: Path) -> None:
    path = tmp_path / "archive.sqlite"
    broken = Migration(number=2, title="broken", statements=("CREATE TABLE half (x)", "CREATE TABLE half (x)"))
    with pytest.raises(StorageError):
        Database.open(path, (ARCHIVE[0], broken), create=True, what=Kind.ARCHIVE)
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)
        assert connection.execute("SELECT COUNT(*) FROM sqlite_master WHERE name = 'half'").fetchone() == (0,)
    connection.close()


@pytest.mark.parametrize("is_read_only", [False, True])
def test_engine_failures_of_schema_3_leave_the_evaluations(tmp_path: Path, *, is_read_only: bool) -> None:
    path = _schema_3(tmp_path / "archive.sqlite")
    before = path.read_bytes()
    with Archive.open_read_only(path) if is_read_only else Archive.open(path, create=False) as archive:
        assert archive.engine_failures() == [
            EngineFailure(candidate_id="r1i0v0a0", purpose=Purpose.SEARCH, reason=REASON),
            EngineFailure(candidate_id="seed-at0", purpose=Purpose.TUNE, reason=REASON),
        ]
        assert [(e.candidate_id, e.purpose, e.reason_code) for e in archive.evaluations()] == [
            ("seed-a", Purpose.SEARCH, ReasonCode.NONE),
            ("r1i0v1a0", Purpose.SEARCH, ReasonCode.MODEL_FAILED),
            ("seed-a", Purpose.CERTIFY, ReasonCode.ENGINE_FAILED),
        ]
        assert [e.candidate_id for e in archive.ranking()] == ["seed-a"]
        assert archive.run().search_id == "5e4c"
        assert Journal(archive).totals().calls == 1
        assert build_result(archive)["state"] == "stopped"
        assert show_run(archive)["ideas"][0]["failure"] == "refused (model_failed): offline wrote no kernel"
    if is_read_only:
        assert path.read_bytes() == before


def test_a_process_killed_before_a_step_ends_leaves_schema_3_whole(tmp_path: Path) -> None:
    path = _schema_3(tmp_path / "archive.sqlite")
    killed = Migration(number=4, title="killed", statements=(*ARCHIVE[3].statements, "SELECT no_such_function()"))
    with pytest.raises(StorageError):
        Database.open(path, (*ARCHIVE[:3], killed), create=False, what=Kind.ARCHIVE)
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (3,)
        assert connection.execute("SELECT COUNT(*) FROM evaluations").fetchone() == (5,)
    connection.close()
    with Archive.open(path, create=False) as archive:
        assert len(archive.engine_failures()) == 2


@pytest.mark.parametrize(
    ("model", "sentence", "composition"),
    [
        ("offline", "Composition: row-buffer, poly-math.", ("row-buffer", "poly-math")),
        ("offline", "Composition: prefetch.", ("prefetch",)),
        ("offline", "Composition: none.", ()),
        ("offline", 'Composition: "quoted".', None),
        ("offline", "Prefetch the next row.", None),
        ("openai:o3", "Composition: row-buffer.", None),
        ("user", "Composition: row-buffer.", None),
    ],
)
def test_an_offline_idea_of_schema_4_gets_the_composition_that_its_last_sentence_states(
    tmp_path: Path, model: str, sentence: str, composition: tuple[str, ...] | None
) -> None:
    path = tmp_path / "archive.sqlite"
    idea = Idea(
        id="r1i0",
        round=1,
        title="Keep the row",
        mechanism=f"Reads once. {sentence}",
        category=Category.MEMORY_ACCESS,
        predicted_gain=1.3,
        parent_id=None,
        model=model,
    )
    record = {key: value for key, value in idea.to_json().items() if key != "composition"}
    Database.open(path, ARCHIVE[:4], create=True, what=Kind.ARCHIVE).close()
    with sqlite3.connect(path) as connection:
        connection.execute("INSERT INTO ideas (id, record) VALUES (?, ?)", [idea.id, json.dumps(record)])
    connection.close()
    with Archive.open(path) as archive:
        assert archive.idea("r1i0") == dataclasses.replace(idea, composition=composition)


SKIPPED = [
    ("shifted: outside the reference's domain", "shifted", "outside the reference's domain"),
    (
        "other mask: forward() raised ValueError: bounds: 0 to 3",
        "other mask",
        "forward() raised ValueError: bounds: 0 to 3",
    ),
    ('outliers: forward() raised "größer"', "outliers", 'forward() raised "größer"'),
    ("sparse", "sparse", ""),
]


def _with_description(path: Path, version: int, description: str) -> Path:
    """Write the archive of a run with a description, in the schema of a version."""
    Database.open(path, ARCHIVE[:version], create=True, what=Kind.ARCHIVE).close()
    with sqlite3.connect(path) as connection:
        values = ["5e4c", description, json.dumps({"state": "stopped", "problem": {"name": "softmax"}})]
        connection.execute("INSERT INTO runs (search_id, description, record) VALUES (?, ?, ?)", values)
    connection.close()
    return path


def _of_schema_5(description: Description) -> str:
    return json.dumps(description.to_json() | {"skipped_trials": [stored for stored, _, _ in SKIPPED]})


@pytest.mark.parametrize("is_read_only", [False, True])
def test_skipped_trials_of_schema_5_get_their_names_and_reasons_apart(tmp_path: Path, *, is_read_only: bool) -> None:
    expected = description_of(skipped_trials=tuple(SkippedTrial(name=name, reason=why) for _, name, why in SKIPPED))
    path = _with_description(tmp_path / "archive.sqlite", 5, _of_schema_5(expected))
    newest = _with_description(tmp_path / "newest.sqlite", ARCHIVE[-1].number, json.dumps(expected.to_json()))
    before = path.read_bytes()
    with (
        Archive.open_read_only(path) if is_read_only else Archive.open(path, create=False) as archive,
        Archive.open_read_only(newest) as reference,
    ):
        assert archive.description() == expected
        assert show_run(archive) == show_run(reference)
        assert build_result(archive) == build_result(reference)
    assert (path.read_bytes() == before) is is_read_only


@pytest.mark.parametrize("skipped", [(), (SkippedTrial(name="shifted", reason="outside: the domain"),)])
def test_skipped_trials_that_are_records_already_stay(tmp_path: Path, skipped: tuple[SkippedTrial, ...]) -> None:
    stored = json.dumps(description_of(skipped_trials=skipped).to_json())
    with Archive.open(_with_description(tmp_path / "archive.sqlite", 5, stored)) as archive:
        assert archive.description() == description_of(skipped_trials=skipped)


def test_a_damaged_description_of_schema_5_is_told_when_it_is_read(tmp_path: Path) -> None:
    with Archive.open(_with_description(tmp_path / "archive.sqlite", 5, "not json")) as archive:
        assert archive.run().state == "stopped"
        with pytest.raises(StorageError, match="damaged"):
            archive.description()
