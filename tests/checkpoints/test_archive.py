"""What an archive stores, and how it is found again."""

from __future__ import annotations

import math
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.round_record import RoundRecord
from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.checkpoints.stored_certificate import CertifiedKernel, StoredCertificate
from ridgeline.tools.errors import RunError
from ridgeline.tools.records.results import Trial, Verdict
from ridgeline.tools.records.vocabulary import Origin, Purpose, ReasonCode, Status


def test_every_record_comes_back_as_it_was_stored(archive: Archive, story: SimpleNamespace) -> None:
    idea, candidate = story.idea(1, 1, "Fuse", None), story.candidate("r1i1v0a0", idea_id="r1i1", tunables={"B": "64"})
    evaluation = story.ok("r1i1v0a0", 1.5)
    archive.add_ideas([idea])
    archive.add_candidate(candidate)
    archive.add_evaluation(evaluation)
    archive.save("builds", "k", "r1i1v0a0", evaluation.build)
    archive.save_baselines(story.baselines())
    archive.save_description(story.description())
    assert archive.idea("r1i1") == idea
    assert archive.candidate("r1i1v0a0") == candidate
    assert archive.evaluation("r1i1v0a0") == evaluation
    assert archive.find("builds", "k") == evaluation.build.to_json()
    assert archive.baselines() == story.baselines()
    assert archive.description() == story.description()
    assert archive.evaluation("r1i1v0a0", Purpose.CERTIFY) is None
    assert archive.find("timings", "k") is None


def test_a_record_is_decoded_once_and_anew_when_another_process_replaces_it(
    filled: Archive, story: SimpleNamespace
) -> None:
    before = filled.candidates()
    assert all(first is second for first, second in zip(before, filled.candidates(), strict=True))
    assert filled.candidate(before[0].id) is before[0]
    assert filled.evaluations()[0] is filled.evaluations()[0]
    changed = replace(before[0], tunables={"B": "128"})
    with Archive.open(filled.path) as other:
        other.add_candidate(changed)
    assert filled.candidate(changed.id) == changed != before[0]


def test_an_unknown_id_is_a_key_error(archive: Archive) -> None:
    with pytest.raises(KeyError, match="r9i9v0a0"):
        archive.candidate("r9i9v0a0")
    with pytest.raises(ValueError, match="none of"):
        archive.find("candidates; DROP TABLE ideas", "k")


def test_filling_twice_changes_nothing(filled: Archive, story: SimpleNamespace) -> None:
    before = _dump(filled.path)
    story.fill(filled)
    assert _dump(filled.path) == before


def test_candidates_are_stored_in_order_and_all_or_none(archive: Archive, story: SimpleNamespace) -> None:
    batch = [story.candidate(f"r1i1v0a0t{n}", tunables={"B": str(n)}) for n in (2, 0, 1)]
    archive.add_candidates(batch)
    assert archive.candidates() == batch
    unwritable = story.candidate("r1i1v0a0t4", tunables={"B": object()})
    with pytest.raises(TypeError):
        archive.add_candidates([story.candidate("r1i1v0a0t3"), unwritable])
    assert archive.candidates() == batch


def test_infinite_error_of_a_trial_comes_back_infinite(archive: Archive) -> None:
    trials = (Trial(name="nominal_0", rel_error=math.inf, gate=1e-5, passed=False),)
    verdict = Verdict(
        status=Status.WRONG, reason_code=ReasonCode.WRONG_VALUES, rel_error=math.inf, trials=trials, reason='a "-" b'
    )
    archive.save("verdicts", "k", "c", verdict)
    assert Verdict.from_json(archive.find("verdicts", "k") or {}) == verdict
    archive.save("verdicts", "n", "c", replace(verdict, rel_error=math.nan))
    assert (archive.find("verdicts", "n") or {})["rel_error"] == "nan"
    row = archive.database.first("SELECT rel_error FROM verdicts WHERE key = 'k'")
    assert row == {"rel_error": "inf"}


def test_a_certificate_of_an_earlier_version_tells_the_trials_that_ran_from_those_that_did_not(filled: Archive) -> None:
    certificate = filled.certificate_json()
    assert certificate is not None
    ran = certificate["verification"]["trials"]
    not_run = {"name": "not_varied mask", "rel_error": 0.0, "gate": 0.0, "passed": True, "skipped": "always these"}
    earlier = {**certificate["verification"], "trials": [*ran, not_run]}
    del earlier["skipped"]
    verdicts = {"verification": earlier, "sanitizer": {"build": "address", "verdict": earlier}}
    filled.save_certificate(certificate | verdicts)
    stored, content = filled.certificate(), filled.certificate_json()
    assert stored is not None and stored.verification is not None and content is not None
    assert [each.name for each in stored.verification.skipped] == ["not_varied mask"]
    for written in (content["verification"], content["sanitizer"]["verdict"]):
        assert written["trials"] == ran
        assert written["skipped"] == [{"name": "not_varied mask", "reason": "always these", "label": "not_varied"}]


def test_candidates_are_found_by_round_idea_and_origin(filled: Archive) -> None:
    assert [c.id for c in filled.candidates(round=2, idea_id="r2i1")] == ["r2i1v0a0", "r2i1v1a0"]
    assert [c.id for c in filled.candidates(origin=Origin.SEED)] == ["seed-naive", "seed-fused"]
    assert len(filled.ideas()) == 16
    assert [i.id for i in filled.ideas(round=3)] == ["r3i1", "r3i2", "r3i3", "r3i4"]


def test_save_run_merges_and_a_search_id_given_late_replaces_the_first(archive: Archive) -> None:
    archive.save_certificate({"passed": True})
    first = archive.run().search_id
    archive.save_run(RunRecord(state="running"))
    assert archive.run() == RunRecord(search_id=first, state="running")
    archive.save_run(RunRecord(search_id="mine", state="finished"))
    assert archive.run() == RunRecord(search_id="mine", state="finished")
    assert archive.certificate_json() == {"passed": True}


def test_a_round_and_a_certificate_are_read_as_records(archive: Archive) -> None:
    stored = RoundRecord(round=1, best_speedup_ci95=(1.4, 1.6), elites=("r1i0v0a0",))
    archive.save_round(stored)
    assert archive.rounds() == [stored]
    archive.save_certificate({"passed": True, "candidate": {"id": "r1i0v0a0"}, "of_a_later_version": 1})
    assert archive.certificate() == StoredCertificate(passed=True, candidate=CertifiedKernel(id="r1i0v0a0"))
    assert (archive.certificate_json() or {})["of_a_later_version"] == 1


def test_a_cost_is_charged_once(archive: Archive) -> None:
    for _ in range(3):
        archive.charge("r1i1v0a0:measure", cpu_s=2.5, wall_s=1.0, what="evaluation")
    archive.charge("r1i1v1a0:measure", gpu_s=4.0, what="evaluation")
    assert archive.ledger_totals() == {"cpu_s": 2.5, "gpu_s": 4.0, "wall_s": 1.0}


def test_columns_are_readable_in_any_sqlite_browser(filled: Archive) -> None:
    with sqlite3.connect(filled.path) as browser:
        row = browser.execute(
            "SELECT status, reason_code, speedup, median_ms FROM evaluations WHERE candidate_id = 'r3i1v1a0'"
        ).fetchone()
        assert row[:3] == ("ok", "none", 2.18)
        top = browser.execute("SELECT candidate_id, idea FROM leaderboard LIMIT 1").fetchone()
        assert top == ("r4i1v0a0t3", "Align the row buffer and unroll by four")
        assert browser.execute("SELECT title, category FROM ideas WHERE id = 'r3i1'").fetchone()[0].startswith("Stream")
    browser.close()


def test_many_threads_write_and_read_at_once(archive: Archive, story: SimpleNamespace) -> None:
    def work(n: int) -> str:
        candidate_id = f"r1i{n}v0a0"
        archive.add_candidate(story.candidate(candidate_id))
        archive.add_evaluation(story.ok(candidate_id, 1 + n / 100))
        return archive.candidate(candidate_id).id

    with ThreadPoolExecutor(16) as threads:
        assert len(list(threads.map(work, range(64)))) == 64
    assert len(archive.candidates()) == 64
    assert archive.ranking(limit=1)[0].candidate_id == "r1i63v0a0"


def test_run_of_a_file_with_several_searches_asks_for_one(archive: Archive) -> None:
    with archive.database.write() as rows:
        rows.table("runs").insert_all([{"search_id": s, "record": "{}"} for s in "ab"])
    with pytest.raises(RunError, match="several searches"):
        archive.run()
    assert archive.runs() == [RunRecord(), RunRecord()]


def _dump(path: Path) -> list[str]:
    with sqlite3.connect(path) as connection:
        tables = [r[0] for r in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
        rows = [f"{t}: {r}" for t in tables for r in connection.execute(f"SELECT * FROM {t} ORDER BY rowid")]
    connection.close()
    return rows
