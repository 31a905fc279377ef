"""How an idea ended: its best kernel, its failure, or no verdict at all."""

from __future__ import annotations

from types import SimpleNamespace

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.engine_failures import EngineFailure
from ridgeline.checkpoints.idea_results import IdeaResult, idea_results
from ridgeline.tools.records.vocabulary import Purpose, ReasonCode, Status


def _result(archive: Archive, idea_id: str) -> IdeaResult:
    return next(result for result in idea_results(archive) if result.idea.id == idea_id)


def test_a_result_has_the_best_kernel_or_the_last_failure(filled: Archive) -> None:
    tuned, failed = _result(filled, "r4i1"), _result(filled, "r1i4")
    assert tuned.best is not None
    assert (tuned.best.candidate_id, tuned.best.speedup, tuned.failure) == ("r4i1v0a0t3", 2.31, "")
    assert failed.best is None
    assert failed.failure.startswith("runtime_error (crashed): killed by SIGSEGV")
    entry = failed.to_json()
    assert (entry["id"], entry["best_candidate_id"], entry["best_speedup"], entry["candidates"]) == (
        "r1i4",
        None,
        None,
        2,
    )


def test_an_idea_is_unjudged_when_the_engine_failed_on_every_candidate_that_ended(
    archive: Archive, story: SimpleNamespace
) -> None:
    archive.add_ideas([story.idea(1, 0, "Fuse", None)])
    archive.add_candidates([story.candidate(f"r1i0v{n}a0", idea_id="r1i0") for n in range(3)])
    assert not _result(archive, "r1i0").is_unjudged
    archive.add_engine_failure(EngineFailure(candidate_id="r1i0v1a0", purpose=Purpose.SEARCH, reason="the judge died"))
    unjudged = _result(archive, "r1i0")
    assert unjudged.is_unjudged
    assert unjudged.failure == "refused (engine_failed): the judge died"
    archive.add_evaluation(story.failed("r1i0v0a0", Status.WRONG, ReasonCode.WRONG_VALUES, "row 3 differs"))
    judged = _result(archive, "r1i0")
    assert (judged.is_unjudged, judged.failure) == (False, "wrong (wrong_values): row 3 differs")
