"""What the engine failed on: stored apart from evaluations, ended by them, and still told to whoever reads the search."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.engine_failures import EngineFailure
from ridgeline.checkpoints.export import jsonl_lines, merge_archives
from ridgeline.checkpoints.history.lineage import finding
from ridgeline.checkpoints.result import build_result
from ridgeline.tools.errors import EngineError, MachineBusyError
from ridgeline.tools.records.vocabulary import Purpose, ReasonCode, Status

FAILURE = EngineFailure(candidate_id="r1i0v0a0", purpose=Purpose.SEARCH, reason="the judge died")


def test_a_busy_machine_is_worded_apart_from_an_engine_that_failed() -> None:
    busy = EngineFailure.of("r1i0v0a0", Purpose.CERTIFY, MachineBusyError("the machine is too busy"), step="time")
    assert busy.reason == "time: no verdict, the kernel may be sound: the machine is too busy"
    broken = EngineFailure.of("r1i0v0a0", Purpose.SEARCH, EngineError("the judge died"))
    assert broken.reason == "the engine failed, the kernel may be sound: the judge died"
    assert (busy.was_busy, broken.was_busy) == (True, False)
    for told in ("no verdict, the kernel may be sound: too busy", broken.reason):
        assert EngineFailure.of("r1i0v0a0", Purpose.SEARCH, EngineError(told)).reason == told, "a replayed one"


def test_the_last_failure_of_a_candidate_stays_until_it_is_judged(archive: Archive, story: SimpleNamespace) -> None:
    archive.add_engine_failure(EngineFailure(candidate_id="r1i0v0a0", purpose=Purpose.SEARCH, reason="no device"))
    archive.add_engine_failure(FAILURE)
    archive.add_engine_failure(EngineFailure(candidate_id="other", purpose=Purpose.TUNE, reason="x"))
    assert archive.engine_failures("r1i0v0a0") == [FAILURE]
    assert len(archive.engine_failures()) == 2
    archive.add_evaluation(story.ok("r1i0v0a0", 1.5))
    assert [failure.candidate_id for failure in archive.engine_failures()] == ["other"]


def test_a_failure_never_takes_the_place_of_an_evaluation(archive: Archive, story: SimpleNamespace) -> None:
    archive.add_evaluation(story.ok("r1i0v0a0", 1.5))
    archive.add_engine_failure(FAILURE)
    assert archive.engine_failures() == []
    assert archive.evaluation("r1i0v0a0") == story.ok("r1i0v0a0", 1.5)


def test_outputs_show_a_failure_as_refused_and_count_it_nowhere(archive: Archive, story: SimpleNamespace) -> None:
    archive.add_candidate(story.candidate("r1i0v0a0"))
    archive.add_engine_failure(FAILURE)
    shown = finding(archive, "r1i0v0a0")
    assert shown is not None
    assert (shown.status, shown.reason_code, shown.reason) == (
        Status.REFUSED,
        ReasonCode.ENGINE_FAILED,
        "the judge died",
    )
    line = json.loads(jsonl_lines(archive.path.parent)[0])
    assert (line["status"], line["reason_code"], line["reason"]) == ("refused", "engine_failed", "the judge died")
    assert build_result(archive)["best"] is None
    assert archive.evaluations() == []


def test_a_merged_file_drops_a_failure_once_its_search_has_judged_the_candidate(
    tmp_path: Path, archive: Archive, story: SimpleNamespace
) -> None:
    into = tmp_path / "merged.sqlite"
    archive.add_candidate(story.candidate("r1i0v0a0"))
    archive.save_baselines(story.baselines())
    archive.add_engine_failure(FAILURE)
    merge_archives(into, [archive.path])
    with Archive.open_read_only(into) as merged:
        (failure,) = merged.engine_failures()
        assert failure.candidate_id.endswith("/r1i0v0a0")
    archive.add_evaluation(story.ok("r1i0v0a0", 1.5))
    merge_archives(into, [archive.path])
    with Archive.open_read_only(into) as merged:
        assert merged.engine_failures() == []
        assert len(merged.evaluations()) == 1
