from __future__ import annotations

import json
import os
import sqlite3
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import jsonschema
import pytest

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.calls.journal import Journal
from ridgeline.checkpoints.export import export_archive, export_jsonl, jsonl_lines, merge_archives
from ridgeline.checkpoints.result import read_schema
from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.checkpoints.runs.folders import lock_run
from ridgeline.tools.errors import RunError, StorageError
from ridgeline.tools.records.search import Mending
from ridgeline.tools.records.vocabulary import Mender


def _rows(path: Path) -> list[str]:
    with sqlite3.connect(path) as connection:
        tables = [r[0] for r in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
        rows = [f"{t}: {r}" for t in tables for r in connection.execute(f"SELECT * FROM {t} ORDER BY rowid")]
    connection.close()
    return rows


def _second(tmp_path: Path, story: SimpleNamespace) -> Path:
    with Archive.open(tmp_path / "second" / "archive.sqlite") as archive:
        story.fill(archive)
        archive.save_run(RunRecord(search_id="77aa", problem={"name": "softmax"}))
    return tmp_path / "second"


def test_an_exported_archive_is_one_file_with_everything(filled: Archive, tmp_path: Path) -> None:
    out = export_archive(filled.path.parent, tmp_path / "out" / "search.sqlite")
    assert [f.name for f in out.parent.iterdir()] == ["search.sqlite"]
    with Archive.open(out, create=False) as copy:
        assert copy.candidates() == filled.candidates()
        assert copy.evaluations() == filled.evaluations()
        assert copy.baselines() == filled.baselines()
        assert copy.certificate_json() == filled.certificate_json()
        assert Journal(copy).totals() == Journal(filled).totals()
        assert copy.run().exported_from == "run"
        assert replace(copy.run(), exported_at=None, exported_from=None) == filled.run()


def test_an_export_removes_what_a_killed_one_left_beside_its_file(filled: Archive, tmp_path: Path) -> None:
    left = tmp_path / ".kernels.sqlite.abcdefgh.part"
    left.mkdir()
    (left / "archive.sqlite").write_text("half")
    os.utime(left, (0, 0))
    assert export_archive(filled.path.parent, tmp_path / "kernels.sqlite").is_file()
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".kernels")]


def test_an_export_into_a_folder_is_named_after_the_run(filled: Archive, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    assert export_archive(filled.path.parent, tmp_path / "folder").name == "run.sqlite"
    with pytest.raises(StorageError, match="no such archive"):
        export_archive(tmp_path / "nothing", tmp_path / "folder")


def test_merging_twice_or_in_parts_changes_nothing(filled: Archive, tmp_path: Path, story: SimpleNamespace) -> None:
    first, second = filled.path.parent, _second(tmp_path, story)
    both = tmp_path / "both.sqlite"
    assert merge_archives(both, [first, second]) == {"searches": 2, "candidates": 70}
    once = _rows(both)
    assert merge_archives(both, [second, first, both.parent / "run"]) == {"searches": 0, "candidates": 0}
    assert _rows(both) == once
    again = tmp_path / "again.sqlite"
    merge_archives(again, [both])
    assert _rows(again) == once


def test_merged_ids_name_their_search_and_still_find_one_another(
    filled: Archive, tmp_path: Path, story: SimpleNamespace
) -> None:
    both = tmp_path / "both.sqlite"
    build = story.ok("r3i1v1a0", 2.18).build
    filled.save("builds", build.key, "r3i1v1a0", build)
    merge_archives(both, [filled.path.parent, _second(tmp_path, story)])
    with Archive.open(both, create=False) as merged:
        assert merged.find("builds", f"5e4c/{build.key}") == build.to_json()
        tuned = merged.candidate("5e4c/r4i1v0a0t3")
        assert (tuned.parent_id, tuned.idea_id) == ("5e4c/r4i1v0a0", "5e4c/r4i1")
        assert merged.idea("77aa/r4i1").parent_id == "77aa/r3i1v1a0"
        found = merged.evaluation("77aa/r3i1v1a0")
        own = filled.evaluation("r3i1v1a0")
        assert found and own and found.key == own.key
        assert merged.ledger_totals()["wall_s"] == pytest.approx(2 * filled.ledger_totals()["wall_s"])
        with pytest.raises(RunError, match="several searches"):
            merged.run()


def test_a_search_that_went_on_is_brought_up_to_date(filled: Archive, tmp_path: Path, story: SimpleNamespace) -> None:
    into = tmp_path / "into.sqlite"
    merge_archives(into, [filled.path])
    filled.add_candidate(story.candidate("r5i1v0a0", round=5))
    filled.save_run(RunRecord(state="budget"))
    assert merge_archives(into, [filled.path]) == {"searches": 0, "candidates": 1}
    with Archive.open(into, create=False) as merged:
        assert merged.run().state == "budget"


def test_a_source_without_a_search_is_refused(archive: Archive, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="holds no search yet"):
        merge_archives(tmp_path / "into.sqlite", [archive.path])
    assert not (tmp_path / "into.sqlite").exists()


def test_merging_into_a_run_or_its_exported_archive_is_refused(
    filled: Archive, tmp_path: Path, story: SimpleNamespace
) -> None:
    second, exported = _second(tmp_path, story), export_archive(filled.path.parent, tmp_path / "exported.sqlite")
    began = tmp_path / "began"
    with lock_run(began):
        Archive.open(began / "archive.sqlite").close()
    for into in (filled.path.parent, filled.path, exported, began / "archive.sqlite"):
        with pytest.raises(RunError, match="merge into another file") as error:
            merge_archives(into, [second])
        assert "\n" not in str(error.value)
    assert filled.run().search_id == "5e4c"
    assert len(filled.candidates()) == 35


def test_a_merged_file_keeps_what_failed_model_calls_cost(filled: Archive, tmp_path: Path) -> None:
    journal = Journal(filled)
    journal.begin("r5:ideate:0", model="openai:o3", prompt_sha256="aa", request={})
    journal.fail("r5:ideate:0", "no idea in the reply", {"input_tokens": 900, "usd": 0.5})
    merge_archives(tmp_path / "into.sqlite", [filled.path])
    with Archive.open_read_only(tmp_path / "into.sqlite") as merged:
        assert Journal(merged).totals() == journal.totals()
        assert Journal(merged).calls("failed")[0].usd == 0.5


def test_an_export_never_replaces_a_device_a_pipe_or_a_folder(filled: Archive, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for write in (export_archive, export_jsonl):
        for name in ("pipe", "link"):
            with pytest.raises(StorageError, match="is not a regular file"):
                write(filled.path.parent, tmp_path / name)
    with pytest.raises(StorageError, match="is not a regular file"):
        export_jsonl(filled.path.parent, tmp_path / "folder")
    assert (tmp_path / "pipe").is_fifo()
    assert (tmp_path / "link").is_symlink()
    assert sorted(f.name for f in tmp_path.iterdir()) == ["folder", "link", "pipe", "run"]


def test_an_export_through_a_link_replaces_what_it_points_at(filled: Archive, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "data" / "real.jsonl")
    assert export_jsonl(filled.path.parent, tmp_path / "link.jsonl") == 35
    assert (tmp_path / "link.jsonl").is_symlink()
    assert (tmp_path / "data" / "real.jsonl").read_text().splitlines() == jsonl_lines(filled.path.parent)


def test_an_export_that_nobody_named_replaces_a_link_itself(filled: Archive, tmp_path: Path) -> None:
    (tmp_path / "kept.txt").write_text("the user's own")
    (tmp_path / "run.sqlite").symlink_to(tmp_path / "kept.txt")
    export_archive(filled.path.parent, tmp_path / "run.sqlite", is_users=False)
    assert (tmp_path / "kept.txt").read_text() == "the user's own"
    with Archive.open_read_only(tmp_path / "run.sqlite") as exported:
        assert exported.candidates()


def test_an_archive_without_the_newer_fields_of_a_run_is_exported(archive: Archive, story: SimpleNamespace) -> None:
    archive.save_run(RunRecord(problem={"name": "old"}))
    archive.add_candidate(story.candidate("r1i1v0a0"))
    (line,) = map(json.loads, jsonl_lines(archive.path.parent))
    assert (line["problem"], line["reference_source"]) == ("old", "")


@pytest.mark.parametrize(
    ("row", "record", "says"),
    [
        ("r1i1v0a1", "r1i1v0a0", "the record of r1i1v0a1 is of r1i1v0a0"),
        ("r1i1v0a1", "r9i9v9a9", "the record of r1i1v0a1 is of r9i9v9a9"),
        ("77aa/r1i1v0a0", "77aa/r1i1v0a0", "77aa/r1i1v0a0 is of a search that it does not hold"),
    ],
)
def test_a_candidate_of_a_forged_id_is_no_training_data_and_is_not_merged(
    archive: Archive, story: SimpleNamespace, tmp_path: Path, row: str, record: str, says: str
) -> None:
    archive.save_run(RunRecord(search_id="5e4c", problem={"name": "old"}))
    archive.add_candidates([story.candidate("r1i1v0a0"), story.candidate("r1i1v0a1")])
    with archive.database.write() as rows:
        forged = json.dumps(story.candidate("r1i1v0a1").to_json() | {"id": record})
        rows.execute("UPDATE candidates SET id = ?, record = ? WHERE id = 'r1i1v0a1'", [row, forged])
    with pytest.raises(StorageError, match=says):
        export_jsonl(archive.path.parent, tmp_path / "data.jsonl")
    with pytest.raises(StorageError, match=says):
        merge_archives(tmp_path / "all.sqlite", [archive.path])
    assert not list(tmp_path.glob("*.jsonl")) and not list(tmp_path.glob("all.sqlite"))


def test_every_jsonl_line_has_the_same_fields_of_the_same_types(
    filled: Archive, tmp_path: Path, story: SimpleNamespace
) -> None:
    both = tmp_path / "both.sqlite"
    merge_archives(both, [filled.path.parent, _second(tmp_path, story)])
    assert export_jsonl(both, tmp_path / "data.jsonl") == 70
    lines = [json.loads(line) for line in (tmp_path / "data.jsonl").read_text().splitlines()]
    validator = jsonschema.Draft202012Validator(read_schema("candidate"))
    types: dict[str, set[type]] = {}
    for line in lines:
        validator.validate(line)
        for name, value in line.items():
            types.setdefault(name, set()).add(type(value))
    assert all(len(kinds - {type(None)}) == 1 for kinds in types.values()), types
    assert {line["problem"] for line in lines} == {"quickstart", "softmax"}
    assert all(isinstance(line["median_ms"], float) for line in lines if line["status"] == "ok")


def test_a_jsonl_line_tells_the_whole_story_of_a_candidate(filled: Archive, tmp_path: Path) -> None:
    export_jsonl(filled.path.parent, tmp_path / "data.jsonl")
    lines = {line["id"]: line for line in map(json.loads, (tmp_path / "data.jsonl").read_text().splitlines())}
    line = lines["r3i1v1a0"]
    assert line["idea"]["title"] == "Stream the output past the cache"
    assert line["parent_source"] == filled.candidate("r2i1v1a0").source
    assert (line["status"], line["speedup"], line["origin"], line["device_kind"]) == ("ok", 2.18, "model", "cpu")
    assert lines["seed-naive"]["idea"] == {"title": None, "mechanism": None, "category": None}
    assert lines["r1i4v0a0"]["reason_code"] == "compiler_failed"


def test_a_mended_kernel_says_of_what_it_was_made_in_a_merged_archive_too(filled: Archive, tmp_path: Path) -> None:
    mending = Mending(by=Mender.SIBLING, failed_id="r3i1v1a0", changes=("a", "b"), sibling_id="r3i1v0a1")
    filled.add_candidate(replace(filled.candidate("r3i1v1a0"), id="r3i1v1a0f1", mending=mending))
    merge_archives(tmp_path / "all.sqlite", [filled.path.parent])
    validator = jsonschema.Draft202012Validator(read_schema("candidate"))
    for archive, prefix in ((filled.path.parent, ""), (tmp_path / "all.sqlite", f"{filled.run().search_id}/")):
        lines = {line["id"]: line for line in map(json.loads, jsonl_lines(archive))}
        found = lines[f"{prefix}r3i1v1a0f1"]
        validator.validate(found)
        ids = {"failed_id": f"{prefix}r3i1v1a0", "sibling_id": f"{prefix}r3i1v0a1"}
        assert found["mending"] == {"by": "sibling", "changes": "a\nb"} | ids
        assert set(lines[f"{prefix}r3i1v1a0"]["mending"].values()) == {None}


def test_jsonl_loads_as_a_hugging_face_dataset(filled: Archive, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    export_jsonl(filled.path.parent, tmp_path / "data.jsonl")
    loaded = datasets.load_dataset("json", data_files=str(tmp_path / "data.jsonl"), cache_dir=str(tmp_path / "cache"))
    assert loaded["train"].num_rows == 35
