"""An archive where a seed bank belongs, and the other way round: said to be what they are, and left as they are."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.bank import Bank
from ridgeline.checkpoints.export import export_archive, export_jsonl, merge_archives
from ridgeline.checkpoints.runs.folders import find_run
from ridgeline.checkpoints.storage.database_kind import Kind, kind_of
from ridgeline.tools.errors import RunError, StorageError

IS_A_BANK = "is a Ridgeline seed bank, not a Ridgeline archive; name another file"


@pytest.fixture
def bank(tmp_path: Path) -> Path:
    Bank.open(tmp_path / "bank.sqlite").close()
    return tmp_path / "bank.sqlite"


@pytest.mark.parametrize("open_at", [Bank.open, Bank.check_openable])
def test_an_archive_given_as_a_bank_is_said_to_be_one(filled: Archive, open_at: Callable[[Path], object]) -> None:
    with pytest.raises(StorageError, match="archive.sqlite: is a Ridgeline archive, not a Ridgeline seed bank; name"):
        open_at(filled.path)


def test_a_bank_given_for_an_archive_is_said_to_be_one(bank: Path, filled: Archive, tmp_path: Path) -> None:
    content = bank.read_bytes()
    uses: list[Callable[[], object]] = [
        lambda: Archive.open(bank),
        lambda: Archive.open_read_only(bank),
        lambda: merge_archives(tmp_path / "all.sqlite", [bank]),
        lambda: merge_archives(bank, [filled.path.parent]),
        lambda: export_jsonl(bank, tmp_path / "lines.jsonl"),
        lambda: export_archive(bank, tmp_path / "copy.sqlite"),
    ]
    for use in uses:
        with pytest.raises(StorageError, match=f"bank.sqlite: {IS_A_BANK}"):
            use()
    assert bank.read_bytes() == content
    assert not (tmp_path / "all.sqlite").exists()


def test_a_file_given_for_a_runs_folder_is_said_to_be_what_it_is(bank: Path, filled: Archive, tmp_path: Path) -> None:
    exported = export_archive(filled.path.parent, tmp_path / "copy.sqlite")
    (tmp_path / "notes.txt").write_text("kernels")
    for file, says in (
        (bank, "a Ridgeline seed bank, not a run's folder"),
        (exported, "a Ridgeline archive, not a run's folder"),
        (tmp_path / "notes.txt", "a file, not a run's folder"),
    ):
        with pytest.raises(RunError, match=says):
            find_run(tmp_path / "runs", file)


def test_a_bank_in_a_runs_folder_is_said_to_be_one(bank: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    shutil.copy(bank, run / "archive.sqlite")
    with pytest.raises(StorageError, match=f"archive.sqlite: {IS_A_BANK}"):
        Archive.open_read_only(run)


def test_a_damaged_database_is_of_no_kind(bank: Path) -> None:
    assert kind_of(bank) is Kind.BANK
    bank.write_bytes(bank.read_bytes()[:50])
    assert kind_of(bank) is None
    assert kind_of(bank.parent / "missing") is None
