"""When two lineages are to be joined, and which."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.candidates import candidate_of

from ridgeline.checkpoints.archive import Archive
from ridgeline.graph.models.requests import Elite, TriedIdea
from ridgeline.graph.search.ideas.recombination import named_as_shown, pair_to_recombine
from ridgeline.tools.records.search import Idea
from ridgeline.tools.records.vocabulary import Category, IdeaOutcome, Origin


class Story:
    """Ideas of a search with one kernel each, as they are told."""

    def __init__(self, archive: Archive) -> None:
        self.archive = archive
        self.tried: list[TriedIdea] = []

    def add(
        self, idea_id: str, speedup: float, parent: str | None = None, second: str | None = None, improved: bool = True
    ) -> None:
        """Add an idea whose kernel has the idea's id and a k behind it."""
        round_ = int(idea_id[1])
        fields = {"title": idea_id, "mechanism": idea_id, "category": Category.COMPUTE, "predicted_gain": 1.2}
        self.archive.add_ideas([Idea(id=idea_id, round=round_, parent_id=parent, second_parent_id=second, **fields)])
        kernel = candidate_of(
            "", name=f"{idea_id}k", origin=Origin.MODEL, round=round_, idea_id=idea_id, parent_id=parent
        )
        self.archive.add_candidate(kernel)
        result = {"best_candidate_id": f"{idea_id}k", "best_speedup": speedup, "parent_id": parent, "round": round_}
        outcome = IdeaOutcome.IMPROVED if improved else IdeaOutcome.REFUTED
        told = {name: fields[name] for name in ("title", "mechanism", "category")}
        self.tried.append(TriedIdea(id=idea_id, outcome=outcome, **told, **result))

    def pair(self) -> tuple[str, str] | None:
        """Return the kernels to join."""
        return pair_to_recombine(self.archive, self.tried)


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(Archive.open(tmp_path / "archive.sqlite"))


def test_two_fastest_ideas_that_improved_apart_are_joined(story: Story) -> None:
    story.add("r1i0", 1.5)
    story.add("r1i1", 1.8)
    story.add("r1i2", 1.7)
    assert story.pair() == ("r1i1k", "r1i2k")


def test_kernels_of_one_line_of_descent_are_not_joined(story: Story) -> None:
    story.add("r1i0", 1.5)
    story.add("r2i0", 1.8, parent="r1i0k")
    assert story.pair() is None
    story.add("r2i1", 1.6)
    assert story.pair() == ("r2i0k", "r2i1k")


def test_idea_that_did_not_improve_and_kernel_far_behind_are_no_lineages_to_join(story: Story) -> None:
    story.add("r1i0", 2.0)
    story.add("r1i1", 1.9, improved=False)
    story.add("r1i2", 1.1)
    assert story.pair() is None


def test_what_was_joined_waits_for_two_further_improvements(story: Story) -> None:
    story.add("r1i0", 1.5)
    story.add("r1i1", 1.6)
    story.add("r2i0", 1.9, parent="r1i1k", second="r1i0k")
    assert story.pair() is None
    story.add("r3i0", 2.0, parent="r2i0k")
    assert story.pair() is None
    story.add("r3i1", 1.7, parent="r1i1k")
    assert story.pair() == ("r3i0k", "r3i1k")


def test_a_pair_is_named_by_the_points_of_sweeps_that_are_shown() -> None:
    points = {"r2i2v1a0t1": "r2i2v1a0", "r2i0v1a0": "", "r2i2v1a0t4": "r2i2v1a0", "r2i0v1a0t5": "r2i0v1a0"}
    elites = [
        Elite(candidate_id=name, idea_title="", source="", median_ms=1.0, speedup=1.2, tuned_from=written)
        for name, written in points.items()
    ]
    assert named_as_shown(("r2i2v1a0t4", "r2i0v1a0t5"), elites) == ("r2i2v1a0t1", "r2i0v1a0")
    assert named_as_shown(("r2i2v1a0t4", "r1i3v0a0"), elites) == ("r2i2v1a0t1", "r1i3v0a0")
