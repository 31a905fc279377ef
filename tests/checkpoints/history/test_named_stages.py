"""Which ideas name the largest stage of the kernel that they start from."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.history.idea_results import idea_results
from ridgeline.checkpoints.history.named_stages import NamedStages, largest_stage, named_stages, names_stage
from ridgeline.checkpoints.result import build_result, show_run
from ridgeline.tools.records.results import Profile, StageTime
from ridgeline.tools.records.vocabulary import Purpose


def profile(**shares: float) -> Profile:
    stages = tuple(StageTime(name=name, ms=share, share=share) for name, share in shares.items())
    return Profile(bound="compute", fraction_of_floor=None, achieved_gbps=None, achieved_gflops=None, stages=stages)


def store(archive: Archive, story: SimpleNamespace, candidate_id: str, found: Profile, purpose: Purpose) -> None:
    evaluation = story.ok(candidate_id, 1.2, purpose)
    archive.add_candidates([story.candidate(candidate_id)])
    archive.add_evaluation(evaluation)
    archive.save("profiles", evaluation.key, candidate_id, found)


@pytest.mark.parametrize(
    ("stage", "mechanism", "is_named"),
    [
        ("scores", "Each score is stored and loaded again.", True),
        ("softmax_loop", "The loop waits for the exponentials of the softmax.", True),
        ("softmax_loop", "The loop waits for the exponentials.", False),
        ("makeV", "make_v is a phase of its own.", True),
        ("pass 2", "Pass 12 is slow.", False),
    ],
)
def test_an_idea_without_a_stage_names_the_one_whose_words_it_holds(
    story: SimpleNamespace, stage: str, mechanism: str, is_named: bool
) -> None:
    idea = replace(story.idea(2, 0, "Reorder", "r1i0v0a0"), mechanism=mechanism)
    assert names_stage(idea, stage) is is_named
    planned = replace(idea, mechanism="Something else.", plans=("by rows", mechanism))
    assert names_stage(planned, stage) is is_named


def test_of_an_idea_that_states_a_stage_that_one_counts_and_not_its_words(story: SimpleNamespace) -> None:
    idea = replace(story.idea(2, 0, "Reorder the scores", "r1i0v0a0"), stage="values")
    assert names_stage(idea, "Values") and not names_stage(idea, "scores")


def test_the_largest_stage_has_the_largest_share() -> None:
    assert largest_stage(profile(load=0.1, scores=0.5, values=0.4)) == "scores"
    assert largest_stage(profile()) == ""


def test_ideas_count_whose_parent_s_stages_the_search_had_timed(archive: Archive, story: SimpleNamespace) -> None:
    store(archive, story, "r1i0v0a0", profile(scores=0.6, values=0.4), Purpose.SEARCH)
    store(archive, story, "r1i0v0a0t1", profile(scores=0.3, values=0.7), Purpose.TUNE)
    store(archive, story, "r1i1v0a0", profile(), Purpose.SEARCH)
    store(archive, story, "r1i2v0a0", profile(scores=1.0), Purpose.CERTIFY)
    titles = {
        "r1i0v0a0": "Keep the scores in registers",
        "r1i0v0a0t1": "Keep the scores anew",
        "r1i1v0a0": "Prefetch the scores",
        "r1i2v0a0": "Unroll the scores",
        None: "Start the scores afresh",
    }
    ideas = [story.idea(2, n, title, parent) for n, (parent, title) in enumerate(titles.items())]
    archive.add_ideas(ideas)
    assert named_stages(archive) == NamedStages(ideas=2, named=1)
    told = [(each.largest_stage, each.to_json()["names_largest_stage"]) for each in idea_results(archive)]
    assert told == [("scores", True), ("values", False), ("", None), ("", None), ("", None)]
    assert build_result(archive)["largest_stage"] == show_run(archive)["largest_stage"] == {"ideas": 2, "named": 1}
