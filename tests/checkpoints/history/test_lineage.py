"""How each candidate of a search ended, read for one and for all."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.engine_failures import EngineFailure
from ridgeline.checkpoints.history.lineage import finding, findings, lineage
from ridgeline.tools.records.vocabulary import Purpose, ReasonCode, Status


def test_the_findings_of_all_candidates_are_those_of_each(filled: Archive, story: SimpleNamespace) -> None:
    judged = {
        "in-every-way": (Purpose.CERTIFY, Purpose.EVALUATE, Purpose.SEARCH, Purpose.TUNE),
        "searched-and-evaluated": (Purpose.EVALUATE, Purpose.SEARCH),
        "evaluated": (Purpose.EVALUATE,),
        "certified": (Purpose.CERTIFY,),
        "open": (),
    }
    for name, purposes in judged.items():
        filled.add_candidate(story.candidate(name))
        for place, purpose in enumerate(purposes):
            filled.add_evaluation(story.ok(name, 1.0 + place, purpose))
    for name in ("open", "failed-twice", "evaluated"):
        filled.add_candidate(story.candidate(name))
        for purpose in (Purpose.CERTIFY, Purpose.SEARCH):
            filled.add_engine_failure(EngineFailure(candidate_id=name, purpose=purpose, reason=f"died: {purpose}"))
    filled.add_candidate(story.candidate("wrong"))
    filled.add_evaluation(story.failed("wrong", Status.WRONG, ReasonCode.WRONG_VALUES, "row 3"))
    found = findings(filled)
    ids = [candidate.id for candidate in filled.candidates()]
    assert {name: found.get(name) for name in ids} == {name: finding(filled, name) for name in ids}
    assert (found["in-every-way"].speedup, found["evaluated"].speedup, found["open"].status) == (4.0, 1.0, "refused")
    assert found.keys() <= set(ids) - {"certified"}


def test_what_is_changed_in_a_lineage_changes_no_record_of_the_archive(filled: Archive, story: SimpleNamespace) -> None:
    filled.add_candidate(replace(story.candidate("tuned"), tunables={"B": "64"}))
    lineage(filled, "tuned")[0]["tunables"]["B"] = "128"
    assert filled.candidate("tuned").tunables == {"B": "64"}
