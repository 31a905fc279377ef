"""A run folder that was altered: what its checkpoints hold, and what is told of them in one line."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import pytest
from tests.graph.memory_engine import MemoryEngine
from tests.graph.scripted_model import ScriptedModel
from tests.graph.session.test_session import options

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.graph.session.session import run_search
from ridgeline.tools.errors import StorageError


@pytest.mark.parametrize(
    "harm",
    [
        "UPDATE checkpoints SET checkpoint = x'ffee'",
        "UPDATE checkpoints SET type = 'nope'",
        "UPDATE checkpoints SET metadata = 'x'",
        "ALTER TABLE checkpoints RENAME COLUMN metadata TO gone",
    ],
)
async def test_altered_checkpoints_are_told_in_one_line(tmp_path: Path, harm: str) -> None:
    await run_search(options(tmp_path), engine=MemoryEngine(), models=[ScriptedModel()])
    with contextlib.closing(sqlite3.connect(tmp_path / "run" / "search.sqlite", isolation_level=None)) as changed:
        changed.execute(harm)
    with pytest.raises(StorageError, match=r"search.sqlite: the database is damaged \(.*move it away$"):
        await run_search(options(tmp_path, resume=True), engine=MemoryEngine(), models=[ScriptedModel()])


async def test_checkpoints_hold_no_type_of_ridgelines_own(tmp_path: Path) -> None:
    """LangGraph refuses to read types that were not registered with its checkpointer, which may be a host's."""
    await run_search(options(tmp_path, search={"tune_trials": 2}), engine=MemoryEngine(), models=[ScriptedModel()])
    with contextlib.closing(sqlite3.connect(tmp_path / "run" / "search.sqlite")) as stored:
        found = [row[0] for row in stored.execute("SELECT checkpoint FROM checkpoints UNION SELECT value FROM writes")]
    assert any(b"finished" in blob for blob in found) and any(b"certify" in blob for blob in found)
    assert not any(b"ridgeline." in blob for blob in found)


async def test_outcome_that_no_search_has_is_told_in_one_line(tmp_path: Path) -> None:
    await run_search(options(tmp_path), engine=MemoryEngine(), models=[ScriptedModel()])
    with contextlib.closing(sqlite3.connect(tmp_path / "run" / "search.sqlite", isolation_level=None)) as changed:
        changed.create_function("spoiled", 1, lambda blob: blob.replace(b"outcome\xa8finished", b"outcome\xa8vanished"))
        changed.execute("UPDATE checkpoints SET checkpoint = spoiled(checkpoint)")
    with pytest.raises(StorageError, match=r"search.sqlite: the database is damaged .*'vanished'"):
        await run_search(options(tmp_path, resume=True), engine=MemoryEngine(), models=[ScriptedModel()])


@pytest.mark.parametrize("field", ["settings", "budget"])
async def test_altered_settings_of_a_run_are_told_in_one_line(tmp_path: Path, field: str) -> None:
    await run_search(options(tmp_path), engine=MemoryEngine(), models=[ScriptedModel()])
    with Archive.open(tmp_path / "run") as archive:
        archive.save_run(RunRecord(**{field: {"rounds": "many"}}))
    with pytest.raises(
        StorageError, match=r"archive.sqlite: the database is damaged \(what its search began with: rounds"
    ):
        await run_search(options(tmp_path, resume=True), engine=MemoryEngine(), models=[ScriptedModel()])
