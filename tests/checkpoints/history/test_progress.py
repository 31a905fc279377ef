"""What a search does now, by its archive."""

from __future__ import annotations

from types import SimpleNamespace

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.calls.journal import Journal
from ridgeline.checkpoints.engine_failures import EngineFailure
from ridgeline.checkpoints.history.progress import progress
from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.tools.records.vocabulary import Purpose


def test_open_calls_and_kernels_without_a_verdict_are_told(archive: Archive, story: SimpleNamespace) -> None:
    archive.save_run(RunRecord(settings={"rounds": 3}))
    archive.add_candidate(story.candidate("r1i0v0a0"))
    archive.add_candidate(story.candidate("r2i0v0a0", round=2))
    archive.add_candidate(story.candidate("r2i0v1a0", round=2))
    archive.add_evaluation(story.ok("r1i0v0a0", 2.0))
    archive.add_engine_failure(EngineFailure(candidate_id="r2i0v1a0", purpose=Purpose.SEARCH, reason="the judge died"))
    journal = Journal(archive)
    for call_id in ("r2:ideate:0", "r2i1v0a0:write", "r2i1v0a1:write"):
        journal.begin(call_id, model="m", prompt_sha256="ab", request={}, waiting=call_id.endswith("0"))
    journal.begin("r1i0v0a0:write", model="m", prompt_sha256="ab", request={})
    journal.finish("r1i0v0a0:write", {"text": "", "input_tokens": 1, "output_tokens": 1})
    found = progress(archive)
    assert (found.round, found.rounds, found.unjudged, found.candidates) == (2, 3, ("r2i0v0a0",), 3)
    archive.add_ideas([story.idea(3, 0, "Fuse", None)])
    assert progress(archive).round == 3 and not progress(archive).is_certifying
    journal.begin("r4:ideate:0", model="m", prompt_sha256="ab", request={})
    archive.save_run(RunRecord(max_rounds=5))
    assert (progress(archive).round, progress(archive).rounds) == (4, 5), "a round begins with its ideas' call"
    archive.save_run(RunRecord(stop_reason="3 rounds done"))
    assert progress(archive).is_certifying
    archive.save_run(RunRecord(stop_reason=""))
    assert not progress(archive).is_certifying
    assert sorted((call.what, call.is_waiting) for call in found.calls) == [
        ("a kernel for r2i1", False),
        ("a repair for r2i1", False),
        ("ideas of round 2", True),
    ]
