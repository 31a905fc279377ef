"""A search's record: what was stored comes back, in the JSON of earlier archives too."""

from __future__ import annotations

import json
import os
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace

import pytest

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.result import choose_best
from ridgeline.checkpoints.run_record import RunRecord, path_text
from ridgeline.tools.errors import StorageError
from ridgeline.tools.records.problem import DeviceFact
from ridgeline.tools.records.search import BuildingBlock
from ridgeline.tools.records.vocabulary import RunState


def _whole(story: SimpleNamespace) -> RunRecord:
    return RunRecord(
        search_id="5e4c", problem={"name": "softmax"}, problem_path="p.yaml", device=story.device, device_name="cpu",
        settings={"rounds": 3}, strategy="branch", rng_seed=0, models=("offline", "openai:o3"), reference_source="x",
        reference_source_sha256="ab", versions={"compiler": "g++"}, graph_version=1, started_at="2026-01-01T00:00:00Z",
        budget={"usd": None, "tokens": 7}, state="finished", ended_by="the disk is full", max_rounds=3,
        rounds_outcome="finished", rounds_reason="3 rounds done", stop_reason="3 rounds done", wall_s=0.0, finding_s=0.0,
        bank_read=False, sandbox_tier="A",
        replay={"run": "softmax-1"}, facts=(DeviceFact(name="L2 cache", value="2 MiB a core"),),
        blocks=(BuildingBlock(name="gemm.cu", words="a matmul", language="cu", source="int gemm;"),),
        baselines_again=story.baselines(), best_id="r1i0v0a0", exported_at="now", exported_from="run",
    )  # fmt: skip


def test_every_field_comes_back_through_json(archive: Archive, story: SimpleNamespace) -> None:
    whole = _whole(story)
    assert all(getattr(whole, field.name) is not None for field in fields(whole))
    assert RunRecord.from_json(json.loads(json.dumps(whole.to_json()))) == whole
    archive.save_run(whole)
    assert archive.run() == whole
    assert archive.run().state is RunState.FINISHED


@pytest.mark.parametrize("name", [b"plain", "größe 50%".encode(), b"q\xff\xfe 50%", b"file:"])
def test_the_problems_path_comes_back_whatever_its_bytes(name: bytes, archive: Archive) -> None:
    place = Path(os.fsdecode(b"/problems/" + name)) / "problem.yaml"
    archive.save_run(RunRecord(problem_path=path_text(place)))
    assert archive.run().problem_file == place
    assert RunRecord(problem_path="").problem_file is RunRecord().problem_file is None


@pytest.mark.parametrize("name", [field.name for field in fields(RunRecord)])
def test_a_field_of_another_type_is_refused(name: str, story: SimpleNamespace) -> None:
    stored = _whole(story).to_json()
    strange = "offline" if name == "models" else [3]
    with pytest.raises(TypeError, match=name):
        RunRecord.from_json({**stored, name: strange})


def test_a_change_leaves_the_other_fields_and_those_of_another_version(archive: Archive) -> None:
    archive.save_run(RunRecord(search_id="5e4c", state="running", rng_seed=3))
    with archive.database.write() as rows:
        rows.execute("UPDATE runs SET record = json_set(record, '$.of_another_version', 1)")
    archive.save_run(RunRecord(state="stopped"))
    assert archive.run() == RunRecord(search_id="5e4c", state="stopped", rng_seed=3)
    stored = archive.database.first("SELECT record FROM runs")
    assert stored is not None and json.loads(stored["record"])["of_another_version"] == 1


def test_a_best_id_of_null_says_that_the_search_ended_without_one_and_an_absent_one_nothing(filled: Archive) -> None:
    assert RunRecord.from_json({"best_id": None}).best_id == ""
    assert RunRecord(best_id="").to_json() == {"best_id": None}
    assert RunRecord.from_json({}).best_id is None
    filled.save_run(RunRecord(best_id=""))
    assert filled.run().best_id == ""
    filled.forget_winner()
    assert filled.run().best_id is None
    assert choose_best(filled) is not None


def test_an_older_archives_empty_state_is_none() -> None:
    assert RunRecord.from_json({"state": ""}).state is None


@pytest.mark.parametrize(
    "record", ['{"state": "lost"}', '{"device": {"kind": "cpu"}}', '{"device": "cpu"}', '{"models": 3}', "[]"]
)
def test_a_spoiled_record_is_said_to_be_damaged(archive: Archive, record: str) -> None:
    archive.save_run(RunRecord(state="running"))
    with archive.database.write() as rows:
        rows.execute("UPDATE runs SET record = ?", [record])
    with pytest.raises(StorageError, match="damaged"):
        archive.run()
