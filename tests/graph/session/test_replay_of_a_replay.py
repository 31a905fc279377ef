"""A recording of a search that was a replay itself: its answers name kernels as the search before did."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from tests.graph.memory_engine import MemoryEngine
from tests.graph.scripted_model import ScriptedModel, distinct_ideas
from tests.graph.session.test_replay_measured import Elsewhere, kernel, options

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.recording.file import write_recording
from ridgeline.graph.session.options import SearchRequest
from ridgeline.graph.session.session import run_search
from ridgeline.tools.records.results import Build, Verdict

pytestmark = pytest.mark.long

MADE_UP = "r9i9v9a9"


class OtherTimes(Elsewhere):
    """A machine where other kernels lead, and each builds and passes: what would be repaired is the first search's alone."""

    def _compile(self, task: Any) -> Build:
        return MemoryEngine._compile(self, task)  # past Elsewhere's

    def _verify(self, task: Any) -> Verdict:
        fit = task.candidate.source.replace("unfit for verify", "fit")
        return super()._verify(dataclasses.replace(task, candidate=dataclasses.replace(task.candidate, source=fit)))


def ideas(request: Any) -> Any:
    """Return ideas that start from the two fastest kernels shown; the second idea from one that its model made up."""
    answer = distinct_ideas(request)
    elites = [elite.candidate_id for elite in request.elites if elite.idea_id]
    for idea in answer["ideas"]:
        idea |= dict(zip(("parent_id", "second_parent_id"), elites, strict=False))
    if elites:
        answer["ideas"][1]["parent_id"] = MADE_UP
    return answer


def parents(run: Path) -> dict[str, tuple[str | None, str | None]]:
    """Return the two parents of each idea by the idea's id."""
    with Archive.open_read_only(run) as archive:
        return {idea.id: (idea.parent_id, idea.second_parent_id) for idea in archive.ideas()}


@pytest.fixture
async def of_a_replay(tmp_path: Path) -> Path:
    """A recording whose search replayed another one on a machine where other kernels led; the first one is in `first/run`."""
    (tmp_path / "first").mkdir()
    asked = options(tmp_path / "first", search={"rounds": 3, "tune_trials": 6}, rng_seed=3)
    await run_search(asked, engine=MemoryEngine(), models=[ScriptedModel(ideas=ideas, kernel=kernel)])
    again = SearchRequest(replay=tmp_path / "first" / "run", run_dir=tmp_path / "second")
    await run_search(again, engine=OtherTimes())
    write_recording(tmp_path / "second", tmp_path / "second.jsonl")
    return tmp_path / "second.jsonl"


@pytest.mark.first_case
@pytest.mark.parametrize("is_strict", [False, True])
async def test_ideas_start_from_the_parents_that_they_were_recorded_with(
    of_a_replay: Path, tmp_path: Path, is_strict: bool
) -> None:
    named, recorded = parents(tmp_path / "first" / "run"), parents(tmp_path / "second")
    both = [pair for idea in named for pair in zip(named[idea], recorded[idea], strict=True)]
    assert any(one and two and one != two for one, two in both)  # stood in for by another kernel of its branch
    asked = SearchRequest(replay=of_a_replay, replay_timings=True, replay_strict=is_strict, run_dir=tmp_path / "third")
    counts = (await run_search(asked)).report["replay"]
    assert parents(tmp_path / "third") == recorded
    assert (counts["other_questions"], counts["not_recorded"]) == (0, 0)
    assert [recorded[f"r{round_}i1"][0] for round_ in (2, 3)] == [None, None]  # what the model made up stays left out
