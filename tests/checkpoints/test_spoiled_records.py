"""Archives whose records were altered: everything that reads one either reads it or names the file in one line."""

from __future__ import annotations

import copy
import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.checkpoints.conftest import fill

from ridgeline.checkpoints.archive import PIECES, Archive
from ridgeline.checkpoints.export import export_archive, export_jsonl, merge_archives
from ridgeline.checkpoints.result import show_run
from ridgeline.checkpoints.round_record import RoundRecord
from ridgeline.graph.session.outputs import write_result
from ridgeline.tools.errors import RunError, StorageError
from ridgeline.tools.records.codec import Record
from ridgeline.tools.records.results import Build, Comparison, Profile, Timing, Verdict
from ridgeline.tools.records.vocabulary import RunState, Status

RECORDS = {
    "runs": ("record", "description", "baselines", "certificate"),
    **dict.fromkeys(("ideas", "candidates", "evaluations", "rounds", *PIECES), ("record",)),
}
COLUMNS = [(table, column) for table, columns in RECORDS.items() for column in columns]
NO_RECORDS = [b"not json" * 8, b"[" * 3000, b"\xff\xfe\0" * 8, b"null", b"3"]
NO_RECORD_OF = [
    pytest.param(*each, n, marks=[] if n == i % len(NO_RECORDS) else [pytest.mark.slow])
    for i, each in enumerate(COLUMNS)
    for n in range(len(NO_RECORDS))
]
"""Each column with one of what is no record, one after the other; `make soak` tries all of them in all columns."""
SHORT = len("null")
"""Bytes of a spoiled record that is JSON: SQLite takes it."""
MEASURED: dict[str, Record] = {
    "builds": Build(key="x", status=Status.OK),
    "verdicts": Verdict(status=Status.OK),
    "timings": Timing(status=Status.OK, median_ms=1.0),
    "profiles": Profile(bound="memory", fraction_of_floor=None, achieved_gbps=None, achieved_gflops=None),
    "comparisons": Comparison(ratio=2.0, ratio_ci95=(1.5, 2.5), first_ms=2.0, second_ms=1.0, blocks=3),
}


def _show(run: Path, _: Path) -> None:
    with Archive.open_read_only(run) as archive:
        json.dumps(show_run(archive), allow_nan=False)


def _export(run: Path, out: Path) -> None:
    export_archive(run, out / "copy.sqlite")


def _lines(run: Path, out: Path) -> None:
    export_jsonl(run, out / "lines.jsonl")


def _merge(run: Path, out: Path) -> None:
    merge_archives(out / "all.sqlite", [run])


def _pieces(run: Path, _: Path) -> None:
    with Archive.open_read_only(run) as archive:
        for table in PIECES:
            archive.records(table)


def _outputs(run: Path, out: Path) -> None:
    with Archive.open_read_only(run) as archive:
        write_result(out, archive, RunState.FINISHED)


READERS: list[Callable[[Path, Path], None]] = [_show, _export, _lines, _merge, _pieces, _outputs]


def read_everywhere(run: Path, out: Path) -> int:
    """Read a run in every way and return how often it was refused, always in one line that names the user's file."""
    refusals = []
    for read in READERS:
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()
        try:
            read(run, out)
        except RunError as error:
            refusals.append(str(error))
    assert [said for said in refusals if str(run / "archive.sqlite") not in said or "\n" in said] == []
    return len(refusals)


def alter(file: Path, statement: str, value: str | None = None) -> int:
    """Change a database behind Ridgeline's back and return the number of changed rows."""
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=DELETE")
        return connection.execute(statement, [] if value is None else [value]).rowcount


def _in_large_pages(file: Path) -> None:
    """Give a database pages that hold any of its records in one piece."""
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.executescript("PRAGMA journal_mode=DELETE; PRAGMA page_size=65536; VACUUM")


def spoil(file: Path, table: str, column: str, value: bytes) -> None:
    """Write bytes into every row of a column, also those that SQLite refuses in a column that others are computed of."""
    marker = json.dumps("@" * (len(value) - 2)) if len(value) > SHORT else value.decode()
    rows = alter(file, f"UPDATE {table} SET {column} = ?", marker)
    whole = file.read_bytes()
    assert 0 < rows <= whole.count(marker.encode())
    file.write_bytes(whole.replace(marker.encode(), value) if len(value) > SHORT else whole)


@pytest.fixture(scope="module")
def full_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a run folder that holds a record of every kind, of two rounds, to be copied."""
    run = tmp_path_factory.mktemp("full") / "run"
    with Archive.open(run / "archive.sqlite") as archive:
        fill(archive, rounds=2)
        for table, record in MEASURED.items():
            archive.save(table, "r1i0v0a0:r1i1v0a0:x", "r1i0v0a0", record)
    _in_large_pages(run / "archive.sqlite")
    return run


@pytest.fixture
def runs(full_run: Path, tmp_path: Path) -> tuple[Path, Path]:
    """Give a run folder that holds everything, and a folder to write in."""
    return shutil.copytree(full_run, tmp_path / "run"), tmp_path / "out"


@pytest.mark.first_case
@pytest.mark.parametrize(("table", "column", "number"), NO_RECORD_OF)
def test_a_record_that_is_none_is_told_in_one_line(
    runs: tuple[Path, Path], table: str, column: str, number: int
) -> None:
    run, out = runs
    spoil(run / "archive.sqlite", table, column, NO_RECORDS[number])
    assert read_everywhere(run, out)


@pytest.mark.parametrize(("table", "column"), COLUMNS)
def test_a_record_without_a_field_is_read_or_told_in_one_line(runs: tuple[Path, Path], table: str, column: str) -> None:
    run, out = runs
    spoil(run / "archive.sqlite", table, column, b"{}")
    read_everywhere(run, out)


def _leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    entries = (
        value.items() if isinstance(value, dict) else list(enumerate(value))[:1] if isinstance(value, list) else ()
    )
    for key, inner in entries:
        yield from _leaves(inner, (*path, key))


def _changed(value: Any, path: tuple[Any, ...], new: Any) -> str:
    changed = copy.deepcopy(value)
    place = changed
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = new
    return json.dumps(changed)


WRONG: list[Any] = ["x", 3, {"a": 1}, [1], None, [[]], "\ud800", "NaN"]
STEP = 13
"""Of a record's fields every 13th is spoiled, other ones with each value."""


@pytest.mark.thorough
@pytest.mark.parametrize(
    "number", [pytest.param(n, marks=[pytest.mark.slow] if n > 0 else []) for n in range(len(WRONG))]
)
def test_a_field_of_a_wrong_type_is_read_or_told_in_one_line(runs: tuple[Path, Path], number: int) -> None:
    run, out = runs
    sound, refusals = (run / "archive.sqlite").read_bytes(), 0
    for table, column in COLUMNS:
        with closing(sqlite3.connect(run / "archive.sqlite")) as connection:
            row = connection.execute(f"SELECT {column} FROM {table} WHERE {column} NOT NULL LIMIT 1").fetchone()
        record = json.loads(row[0])
        leaves = list(_leaves(record))
        paths = leaves[number % len(leaves) :: STEP]
        for path in paths:
            changed = _changed(record, path, WRONG[number])
            assert alter(run / "archive.sqlite", f"UPDATE {table} SET {column} = ?", changed)
            refusals += read_everywhere(run, out)
            (run / "archive.sqlite").write_bytes(sound)
    assert refusals


@pytest.mark.parametrize(
    "statement",
    [f"ALTER TABLE {table} RENAME COLUMN {column} TO gone" for table, column in COLUMNS]
    + [f"DROP TABLE {table}" for table in (*RECORDS, "ledger", "model_calls", "engine_failures")]
    + ["ALTER TABLE runs RENAME COLUMN search_id TO gone", "ALTER TABLE candidates RENAME COLUMN id TO gone"],
)
def test_a_missing_column_or_table_is_told_in_one_line(runs: tuple[Path, Path], statement: str) -> None:
    run, out = runs
    alter(run / "archive.sqlite", statement)
    assert read_everywhere(run, out)


@pytest.mark.parametrize(
    ("column", "path", "value"),
    [
        ("certificate", ("verification", "rel_error"), "NaN"),
        ("certificate", ("verification", "trials"), [[]]),
        ("certificate", ("seconds", "verify"), "a\0b"),
        ("certificate", ("hashes", "source_sha256"), "\ud800"),
        ("description", ("signature", "args", 1, "strides"), None),
    ],
)
def test_a_field_that_only_the_run_s_files_show_is_told_as_damage(
    runs: tuple[Path, Path], column: str, path: tuple[Any, ...], value: Any
) -> None:
    run, out = runs
    with closing(sqlite3.connect(run / "archive.sqlite")) as connection:
        record = json.loads(connection.execute(f"SELECT {column} FROM runs").fetchone()[0])
    alter(run / "archive.sqlite", f"UPDATE runs SET {column} = ?", _changed(record, path, value))
    out.mkdir()
    with pytest.raises(StorageError, match="archive.sqlite: the database is damaged"):
        _outputs(run, out)


def test_an_infinite_error_of_a_certificate_is_written_as_one(runs: tuple[Path, Path]) -> None:
    run, out = runs
    with Archive.open(run) as archive:
        certificate = archive.certificate_json() or {}
        archive.save_certificate(certificate | {"verification": certificate["verification"] | {"rel_error": "inf"}})
    out.mkdir()
    _outputs(run, out)
    assert json.loads((out / "certificate.json").read_text())["verification"]["rel_error"] is None


def test_a_cost_that_is_no_number_is_damage(tmp_path: Path) -> None:
    with Archive.open(tmp_path / "archive.sqlite") as archive:
        archive.charge("a", cpu_s=1.0, what="verify")
        assert archive.ledger_totals()["cpu_s"] == 1.0
        with archive.database.write() as rows:
            rows.execute("UPDATE ledger SET cpu_s = 9e999")
        with pytest.raises(StorageError, match=r"archive\.sqlite: the database is damaged \(a cost is no number"):
            archive.ledger_totals()


def test_a_table_whose_name_is_no_text_is_damage(tmp_path: Path) -> None:
    file = tmp_path / "archive.sqlite"
    Archive.open(file).close()
    content = bytearray(file.read_bytes())
    place = content.index(b"tablecandidatescandidates") + len("table")
    content[place] = 0xC2  # the first byte of two in UTF-8
    file.write_bytes(content)
    with pytest.raises(StorageError, match="the database is damaged"):
        Archive.open_read_only(file)


ROUND: dict[str, Any] = {
    "round": 1,
    "ideas": ["r1i0"],
    **dict.fromkeys(("candidates", "ok", "tuned", "tokens", "unpriced_calls"), 1),
    "best_id": "r1i0v0a0",
    **dict.fromkeys(("best_speedup", "best_median_ms", "usd", "wall_s", "gpu_s"), 1.5),
    "best_speedup_ci95": [1.4, 1.6],
    "elites": ["r1i0v0a0"],
}


def _store_round(archive: Archive, entry: dict[str, Any]) -> None:
    """Store a round behind Ridgeline's back."""
    with archive.database.write() as rows:
        rows.execute("DELETE FROM rounds")
        rows.execute("INSERT INTO rounds (id, record) VALUES ('1', ?)", [json.dumps(entry)])


@pytest.mark.parametrize("field", ROUND)
@pytest.mark.parametrize("wrong", [{"a": 1}, [[]], "NaN", True])
def test_a_field_of_a_round_that_is_no_such_is_told_with_its_name(tmp_path: Path, field: str, wrong: Any) -> None:
    if (field, wrong) == ("best_id", "NaN"):
        pytest.skip("a name like any other")
    with Archive.open(tmp_path / "archive.sqlite") as archive:
        archive.save_round(RoundRecord.from_json(ROUND))
        assert [each.to_json() for each in archive.rounds()] == [ROUND]
        _store_round(archive, ROUND | {field: wrong})
        with pytest.raises(StorageError, match=rf"is damaged \(a record is spoiled: round .*({field}|no number)"):
            archive.rounds()


def test_a_round_whose_speedup_is_no_number_is_told_with_the_file_and_the_field(tmp_path: Path) -> None:
    with Archive.open(tmp_path / "archive.sqlite") as archive:
        _store_round(archive, ROUND | {"best_speedup": "x"})
        says = r"archive\.sqlite: .*\(a record is spoiled: round 1: best_speedup: x is no float\)"
        with pytest.raises(StorageError, match=says):
            archive.rounds()
