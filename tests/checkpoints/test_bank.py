from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from ridgeline.checkpoints.bank import Bank, bank_id
from ridgeline.checkpoints.storage.database import Database
from ridgeline.checkpoints.storage.database_kind import Kind
from ridgeline.checkpoints.storage.migrations import BANK
from ridgeline.tools.errors import StorageError
from ridgeline.tools.records.search import KernelWork
from ridgeline.tools.records.vocabulary import Origin, ReasonCode, Status


def test_seeds_come_fastest_first_with_each_problem_s_best_before_any_second(
    tmp_path: Path, story: SimpleNamespace
) -> None:
    with Bank.open(tmp_path / "deep" / "bank.sqlite") as bank:
        for problem, name, speedup in (("a", "a1", 9.0), ("a", "a2", 8.0), ("b", "b1", 1.5), ("b", "b2", 1.2)):
            bank.add("row-wise", "avx512", problem, story.candidate(name, parent_id="x"), story.ok(name, speedup))
        bank.add("matmul", "avx512", "c", story.candidate("c1"), story.ok("c1", 3.0))
        found = bank.seeds("row-wise", "avx512", 3)
        assert [c.source.splitlines()[1] for c in found] == ["// a1", "// b1", "// a2"]
        assert {(c.origin, c.round, c.parent_id, c.idea_id) for c in found} == {(Origin.BANK, 0, None, None)}
        assert found[0].id == bank_id(found[0].source)
        assert bank.seeds("row-wise", "sm_90a", 3) == []


def test_a_path_that_no_bank_can_be_opened_at_is_told_and_nothing_is_written(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "notes.txt").write_text("kernels")
    for place, says in (
        ("folder", "folder: is a folder, not a Ridgeline seed bank; name a file"),
        ("notes.txt", "notes.txt: not a Ridgeline seed bank"),
        ("notes.txt/bank.sqlite", "not a directory"),
        ("mistyped/bank.sqlite", "the folder .*mistyped does not exist; make it, or mend the bank's name"),
        ("/proc/no/bank.sqlite", "/proc/no/bank.sqlite: "),
    ):
        with pytest.raises(StorageError, match=says):
            Bank.check_openable(tmp_path / place)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "notes.txt"]


def test_a_path_that_a_bank_can_be_opened_at_stays_as_it_is_until_then(tmp_path: Path) -> None:
    path = tmp_path / "bank.sqlite"
    Bank.check_openable(path)
    assert not path.exists()
    path.touch()
    Bank.check_openable(path)
    assert path.read_bytes() == b""
    Bank.open(path).close()
    content = path.read_bytes()
    Bank.check_openable(path)
    assert path.read_bytes() == content


def test_a_bank_whose_maker_was_killed_before_its_first_table_can_be_opened(tmp_path: Path) -> None:
    path = tmp_path / "bank.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
    assert path.stat().st_size
    os.utime(path, (0, 0))
    Bank.check_openable(path)
    Bank.open(path).close()


def test_the_same_source_is_kept_once_with_its_better_result(tmp_path: Path, story: SimpleNamespace) -> None:
    with Bank.open(tmp_path / "bank.sqlite") as bank:
        for speedup in (1.4, 1.6, 1.1):
            bank.add("row-wise", "avx512", "a", story.candidate("k"), story.ok("k", speedup))
        assert len(bank.seeds("row-wise", "avx512", 9)) == 1
        assert bank.database.query("SELECT speedup FROM kernels") == [{"speedup": 1.6}]


def test_one_source_good_for_two_problems_is_one_seed(tmp_path: Path, story: SimpleNamespace) -> None:
    with Bank.open(tmp_path / "bank.sqlite") as bank:
        for problem in "ab":
            bank.add("row-wise", "avx512", problem, story.candidate("k"), story.ok("k", 1.4))
        assert len(bank.seeds("row-wise", "avx512", 9)) == 1


def test_blocks_are_the_best_of_each_other_family_nearest_to_the_peak_first(
    tmp_path: Path, story: SimpleNamespace
) -> None:
    kernels = (  # family, name, speedup, share
        ("matmul", "slow", 9.0, 0.4), ("matmul", "near", 1.2, 0.88), ("attention", "a", 2.0, 0.6),
        ("rowwise", "r", 5.0, None), ("convolution", "own", 3.0, 0.99), ("unknown", "u", 4.0, 0.95),
    )  # fmt: skip
    with Bank.open(tmp_path / "bank.sqlite") as bank:
        for family, name, speedup, share in kernels:
            work = KernelWork(arguments="a float32 (8,)", bound="compute", share=share)
            bank.add(family, "sm_90a", name, story.candidate(name), story.ok(name, speedup), work=work)
        found = bank.blocks("convolution", "sm_90a", 2)
        assert [(block.family, block.problem, block.work.share) for block in found] == [
            ("matmul", "near", 0.88), ("attention", "a", 0.6)
        ]  # fmt: skip
        assert [block.family for block in bank.blocks("convolution", "sm_90a", 9)][-1] == "rowwise"
        assert found[0].median_ms == pytest.approx(1.21 / 1.2)
        assert bank.blocks("convolution", "avx512", 2) == []


def test_a_bank_of_the_first_schema_gives_blocks_whose_work_is_unknown(tmp_path: Path, story: SimpleNamespace) -> None:
    path = tmp_path / "bank.sqlite"
    with Bank.open(path) as bank:
        bank.add("matmul", "sm_90a", "m", story.candidate("m"), story.ok("m", 1.5))
        row = bank.database.first("SELECT id, record, evaluation FROM kernels")
    path.unlink()
    old = Database.open(path, BANK[:1], create=True, what=Kind.BANK)
    with old.write() as rows:
        rows.execute(
            "INSERT INTO kernels (id, family, device_arch, problem, record, evaluation) "
            "VALUES (:id, 'matmul', 'sm_90a', 'm', :record, :evaluation)", row,
        )  # fmt: skip
    old.close()
    Bank.check_openable(path)
    with Bank.open(path) as bank:
        assert [block.work for block in bank.blocks("rowwise", "sm_90a", 2)] == [KernelWork()]


def test_a_kernel_that_failed_does_not_enter(tmp_path: Path, story: SimpleNamespace) -> None:
    failed = story.failed("k", Status.WRONG, ReasonCode.WRONG_VALUES, "no")
    with Bank.open(tmp_path / "bank.sqlite") as bank, pytest.raises(ValueError, match="only a kernel that is ok"):
        bank.add("row-wise", "avx512", "a", story.candidate("k"), failed)


_WRITER = """
import importlib.util, sys
from pathlib import Path
spec = importlib.util.spec_from_file_location("story", sys.argv[2])
story = importlib.util.module_from_spec(spec)
spec.loader.exec_module(story)
from ridgeline.checkpoints.bank import Bank
with Bank.open(Path(sys.argv[1])) as bank:
    for n in range(20):
        name = f"{sys.argv[3]}-{n}"
        bank.add("row-wise", "avx512", name, story.make_candidate(name), story.make_ok(name, 1.5))
"""


def test_several_processes_add_to_a_new_bank_at_once(tmp_path: Path) -> None:
    path, story = tmp_path / "bank.sqlite", Path(__file__).with_name("conftest.py")
    started = [
        subprocess.Popen([sys.executable, "-c", _WRITER, str(path), str(story), str(writer)]) for writer in range(4)
    ]
    assert [p.wait(60) for p in started] == [0, 0, 0, 0]
    with Bank.open(path) as bank:
        assert len(bank.seeds("row-wise", "avx512", 1000)) == 80


def test_a_damaged_bank_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "bank.sqlite").write_bytes(b"SQLite format 3\0" + b"garbage " * 1000)
    with pytest.raises(StorageError, match="bank.sqlite: the database is damaged"):
        Bank.open(tmp_path / "bank.sqlite")


@pytest.mark.parametrize("record", ["null", "{}", "3", '{"id": 5}'])
def test_a_damaged_kernel_is_told_in_one_line_that_names_the_bank(
    tmp_path: Path, story: SimpleNamespace, record: str
) -> None:
    path = tmp_path / "bank.sqlite"
    with Bank.open(path) as bank:
        bank.add("row-wise", "avx512", "a", story.candidate("k"), story.ok("k", 1.5))
        bank.check()
        with bank.database.write() as rows:
            rows.execute("UPDATE kernels SET record = ?", [record])
        for read in (bank.check, lambda: bank.seeds("row-wise", "avx512", 9), lambda: Bank.check_openable(path)):
            with pytest.raises(
                StorageError, match=r"bank.sqlite: the database is damaged \(a record is .*move it away"
            ):
                read()
