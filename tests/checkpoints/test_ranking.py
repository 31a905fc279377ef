"""Which of the kernels that passed is the fastest, on a machine whose speed drifts."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

from ridgeline.checkpoints.archive import Archive
from ridgeline.tools.records.vocabulary import Purpose, ReasonCode, Status


def test_ranking_prefers_what_is_surely_faster_to_a_wide_interval(archive: Archive, story: SimpleNamespace) -> None:
    for name, speedup, low in (("lucky", 2.7, 1.9), ("steady", 2.5, 2.4)):
        evaluation = story.ok(name, speedup)
        archive.add_candidate(story.candidate(name))
        timing = replace(evaluation.timing, speedup_ci95=(low, 2 * speedup - low))
        archive.add_evaluation(replace(evaluation, timing=timing))
    assert [e.candidate_id for e in archive.ranking()] == ["steady", "lucky"]


def test_ranking_is_not_fooled_by_a_machine_that_was_slow_for_a_while(archive: Archive, story: SimpleNamespace) -> None:
    archive.add_evaluation(story.ok("steady", 2.0))
    archive.add_evaluation(story.ok("during-a-slow-minute", 2.2, drift=1.4))
    archive.add_evaluation(story.failed("wrong", Status.WRONG, ReasonCode.WRONG_VALUES, "no"))
    assert [e.candidate_id for e in archive.ranking()] == ["during-a-slow-minute", "steady"]
    assert [e.candidate_id for e in archive.ranking(limit=1)] == ["during-a-slow-minute"]
    assert archive.ranking(Purpose.TUNE) == []


def test_ranking_of_equals_does_not_depend_on_which_was_stored_first(archive: Archive, story: SimpleNamespace) -> None:
    for name in ("b", "c", "a"):
        archive.add_evaluation(story.ok(name, 2.0))
    assert [e.candidate_id for e in archive.ranking()] == ["a", "b", "c"]
