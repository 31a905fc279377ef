"""What tuning finds among a kernel's declared values."""

from __future__ import annotations

import asyncio
import dataclasses
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from tests.graph.conftest import Search
from tests.graph.memory_engine import MemoryEngine
from tests.graph.scripted_model import ScriptedModel, own_structure
from tests.graph.search.judging.test_judging import in_a_node

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.history.repeated_sources import repeated_sources
from ridgeline.graph.nodes.tune import BATCH, tune
from ridgeline.graph.search.context import SearchContext
from ridgeline.graph.search.events import telling
from ridgeline.graph.search.sources.tuning import root_id
from ridgeline.problems.spec import Budget
from ridgeline.tools.engine import BenchmarkTask, CompileTask, Task
from ridgeline.tools.errors import EngineError, NotBegun
from ridgeline.tools.records.results import Timing
from ridgeline.tools.records.vocabulary import Origin, Purpose

TUNED = """// {title}
constexpr int BLOCK = 64;  // tune: BLOCK = 32 | 64 | 128 | 256
#define UNROLL 1  // tune: UNROLL = 1 | 2 | 4
// speed 1.5
// factor BLOCK 128 1.2
// factor UNROLL 4 1.1
"""


async def test_tune_finds_the_declared_values_that_are_fastest_without_a_token(search: Search) -> None:
    search.model = ScriptedModel(kernel=lambda r: {"source": TUNED.format(title=r.idea.title)})
    output = await search.run(search.context(rounds=1, ideas=1, implementations=1, tune_trials=11))
    best = search.archive.candidate(output["best_id"])
    assert best.tunables == {"BLOCK": "128", "UNROLL": "4"}
    assert "constexpr int BLOCK = 128;  // tune: BLOCK = 32" in best.source
    assert "#define UNROLL 4  // tune" in best.source
    assert best.idea_id == "r1i0"
    tuned = search.archive.candidates(origin=Origin.TUNE)
    assert len({tuple(c.tunables.items()) for c in tuned}) == len(tuned) <= 11
    assert len(search.model.writes) == 1


async def test_tune_keeps_to_its_trials_over_all_elites(search: Search) -> None:
    search.model = ScriptedModel(kernel=lambda r: {"source": TUNED.format(title=r.idea.title)})
    await search.run(search.context(rounds=2, ideas=2, implementations=1, tune_trials=6))
    for round_ in (1, 2):
        assert 0 < len(search.archive.candidates(round=round_, origin=Origin.TUNE)) <= 6


class FailsOnPoints(MemoryEngine):
    """An engine that breaks whenever it times a tuned point, until it is mended."""

    is_broken = True

    async def submit(self, task: Task[Any]) -> Any:
        if self.is_broken and isinstance(task, BenchmarkTask) and task.candidate.origin is Origin.TUNE:
            raise EngineError("the judge died")
        return await super().submit(task)


async def test_points_that_the_engine_failed_on_end_a_sweep_and_are_measured_in_the_next_session(
    search: Search,
) -> None:
    search.model = ScriptedModel(kernel=lambda r: {"source": TUNED.format(title=r.idea.title)})
    search.engine = FailsOnPoints()
    await search.run(search.context(rounds=1, ideas=1, implementations=1, tune_trials=6))
    points = [candidate.id for candidate in search.archive.candidates(origin=Origin.TUNE)]
    assert 0 < len(points) <= 6
    assert {failure.candidate_id for failure in search.archive.engine_failures()} == set(points)
    assert search.archive.evaluations(purpose=Purpose.TUNE) == []
    search.engine.is_broken = False
    context = search.context(rounds=1, ideas=1, implementations=1, tune_trials=len(points))
    await in_a_node(tune, {"round": 1, "elites": ["r1i0v0a0"]}, context)
    assert search.archive.engine_failures() == []
    assert {e.candidate_id for e in search.archive.evaluations(purpose=Purpose.TUNE)} == set(points)
    assert {c.id for c in search.archive.candidates(origin=Origin.TUNE)} == set(points)


async def test_seed_named_like_a_tuned_kernel_is_tuned_as_any_other(search: Search) -> None:
    context = search.context(rounds=1, ideas=1, implementations=1, tune_trials=8)
    seeds = context.problem.path.parent / "seeds"
    (seeds / "float4.cpp").write_text(TUNED.format(title="float4"))
    (seeds / "float4t0.cpp").write_text("// speed 0.6\n")
    context.problem = context.problem.model_copy(update={"seeds": ["seeds/*.cpp"]})
    output = await search.run(context)
    best = search.archive.candidate(output["best_id"])
    assert (best.parent_id, best.origin) == ("seed-float4", Origin.TUNE)
    assert search.archive.candidate("seed-float4t0").origin is Origin.SEED


NARROW = """// {title}
constexpr int BLOCK = 64;  // tune: BLOCK = 32 | 64
// speed 1.6
"""


async def test_what_one_kernel_leaves_of_its_share_another_gets(search: Search) -> None:
    search.model = ScriptedModel(
        kernel=lambda r: {"source": (TUNED if r.variation else NARROW).format(title=r.idea.title)}
    )
    await search.run(search.context(rounds=1, ideas=1, implementations=2, tune_trials=10))
    points = search.archive.candidates(origin=Origin.TUNE)
    assert sorted(len([p for p in points if root_id(p) == root]) for root in {root_id(p) for p in points}) == [1, 9]
    told = [(event["trial"], event["trials"]) for event in search.events_named("tune")]
    assert told == [(number, 10) for number in range(1, 11)]


def siblings(request: Any) -> dict[str, Any]:
    """Return the kernel of an idea with other values in each implementation."""
    source = TUNED.format(title=request.idea.title)
    return {"source": source.replace("BLOCK = 64", "BLOCK = 128", request.variation)}


async def test_point_whose_source_another_kernel_has_is_not_measured_again(search: Search) -> None:
    search.model = ScriptedModel(kernel=siblings)
    await search.run(search.context(rounds=1, ideas=1, implementations=2, tune_trials=20))
    points = search.archive.candidates(origin=Origin.TUNE)
    assert {root_id(point) for point in points} == {"r1i0v1a0"}
    assert len(points) > BATCH
    assert repeated_sources(search.archive.candidates()) == {}
    told = [(event["trial"], event["trials"]) for event in search.events_named("tune")]
    assert told == [(number, 20) for number in range(1, len(points) + 1)]


async def test_point_of_an_older_session_that_another_kernel_has_is_measured_and_not_chosen_again(
    search: Search,
) -> None:
    search.model = ScriptedModel(kernel=siblings)
    await search.run(search.context(rounds=1, ideas=1, implementations=2, tune_trials=0))
    root, sibling = search.archive.candidate("r1i0v1a0"), search.archive.candidate("r1i0v0a0")
    values = {"BLOCK": "64", "UNROLL": "1"}
    search.archive.add_candidate(
        dataclasses.replace(
            sibling, id=f"{root.id}t0", origin=Origin.TUNE, parent_id=root.id, variation=1, tunables=values
        )
    )
    await in_a_node(
        tune,
        {"round": 1, "elites": [root.id]},
        search.context(rounds=1, ideas=1, implementations=2, tune_trials=4),
    )
    points = [candidate.tunables for candidate in search.archive.candidates(origin=Origin.TUNE)]
    assert len(points) == len({tuple(point.items()) for point in points}) == 4
    assert points[0] == values and search.archive.evaluation(f"{root.id}t0", Purpose.TUNE) is not None


class Meeting(MemoryEngine):
    """Builds no tuned kernel before those of two roots are asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.roots: set[str] = set()
        self.both = asyncio.Event()

    async def submit(self, task: Task[Any]) -> Any:
        if isinstance(task, CompileTask) and task.candidate.origin is Origin.TUNE:
            self.roots.add(root_id(task.candidate))
            if len(self.roots) == 2:
                self.both.set()
            await asyncio.wait_for(self.both.wait(), timeout=30)
        return await super().submit(task)


def all_tunable(request: Any) -> dict[str, Any]:
    structure = own_structure(request.idea.title, request.variation)
    return {"source": TUNED.format(title=f"{request.idea.title} {request.variation}") + structure}


@pytest.mark.parametrize(("budget", "trials"), [(Budget(), 4), (Budget(wall_s=3600), 16)])
async def test_kernels_are_tuned_side_by_side(search: Search, budget: Budget, trials: int) -> None:
    search.engine = Meeting()
    search.model = ScriptedModel(kernel=all_tunable)
    await search.run(search.context(rounds=1, ideas=1, implementations=2, tune_trials=trials, budget=budget))
    assert len(search.engine.roots) == 2
    assert len(search.archive.candidates(origin=Origin.TUNE)) == trials


class Hours(MemoryEngine):
    """Lets an hour of the search's clock pass at each timing of a tuned kernel."""

    context: SearchContext

    def _benchmark(self, task: BenchmarkTask) -> Timing:
        if task.purpose is Purpose.TUNE:
            self.context.working.started_s -= 3600
        return super()._benchmark(task)


async def test_tuning_overshoots_its_budget_by_a_few_points_whatever_the_number_of_elites(search: Search) -> None:
    search.engine, search.model = Hours(), ScriptedModel(kernel=all_tunable)
    shape = {"rounds": 1, "ideas": 1, "implementations": 6, "elites": 6, "tune_trials": 36}
    search.engine.context = search.context(budget=Budget(wall_s=3 * 3600), **shape)
    output = await search.run(search.engine.context)
    assert output["outcome"] == "finished"  # in its last round, which a larger budget would not go on with
    points = search.archive.candidates(origin=Origin.TUNE)
    measured = search.archive.evaluations(purpose=Purpose.TUNE)
    assert len({root_id(point) for point in points}) == 6
    assert 3 <= len(measured) <= 3 + BATCH
    assert [each.tuned for each in search.archive.rounds()] == [len(measured)]

    search.engine.context = search.context(**shape)
    await in_a_node(tune, {"round": 1, "elites": sorted({root_id(p) for p in points})}, search.engine.context)
    judged = {evaluation.candidate_id for evaluation in search.archive.evaluations(purpose=Purpose.TUNE)}
    assert {point.id for point in points} <= judged


class Stopping(MemoryEngine):
    """Drops the first build of a tuned kernel as a stop does, and builds what begins later."""

    def __init__(self) -> None:
        super().__init__()
        self.is_stopping = False
        self.begun_after = 0

    async def submit(self, task: Task[Any]) -> Any:
        if isinstance(task, CompileTask) and task.candidate.origin is Origin.TUNE:
            if not self.is_stopping:
                self.is_stopping = True
                raise NotBegun("a stop was asked for")
            self.begun_after += 1
        return await super().submit(task)


async def test_points_that_wait_for_their_turn_do_not_begin_after_a_stop(search: Search) -> None:
    search.engine, search.model = Stopping(), ScriptedModel(kernel=all_tunable)
    shape = {"rounds": 1, "ideas": 1, "implementations": 4, "elites": 4, "tune_trials": 40}
    with pytest.raises(NotBegun):
        await search.run(search.context(budget=Budget(wall_s=3600), **shape))
    assert len(search.archive.candidates(origin=Origin.TUNE)) > 1 + BATCH
    assert search.engine.begun_after <= BATCH


FULL = (
    "CREATE TRIGGER full BEFORE INSERT ON {table} WHEN NEW.{column} = '{value}' BEGIN SELECT RAISE(ABORT, 'full'); END"
)


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("candidates", "id", "r1i0v0a0t2"),
        ("evaluations", "candidate_id", "r1i0v0a0t1"),
        ("evaluations", "candidate_id", "r1i0v1a0t5"),
    ],
)
async def test_interrupted_sweep_measures_the_points_of_one_that_was_not(
    search: Search, tmp_path: Path, table: str, column: str, value: str
) -> None:
    """The disk is full while a batch is stored, or while it is measured."""
    shape = {"rounds": 1, "ideas": 1, "implementations": 2, "elites": 2, "tune_trials": 18}
    search.model = ScriptedModel(kernel=all_tunable)
    with Archive.open(tmp_path / "whole.sqlite") as archive:
        whole = Search(tmp_path / "whole", archive)
        whole.model = search.model
        await whole.run(whole.context(**shape))
        expected = {c.id: c.tunables for c in archive.candidates(origin=Origin.TUNE)}
    with search.archive.database.write() as rows:
        rows.execute(FULL.format(table=table, column=column, value=value))
    with pytest.raises(sqlite3.IntegrityError, match="full"):
        await search.run(search.context(**shape))
    with search.archive.database.write() as rows:
        rows.execute("DROP TRIGGER full")
    await in_a_node(tune, {"round": 1, "elites": ["r1i0v0a0", "r1i0v1a0"]}, search.context(**shape))
    points = {c.id: c.tunables for c in search.archive.candidates(origin=Origin.TUNE)}
    assert points == expected
    assert len(search.archive.evaluations(purpose=Purpose.TUNE)) == len(points) == 18


async def test_a_viewer_that_changes_a_point_it_is_told_of_changes_no_stored_kernel(search: Search) -> None:
    shape = {"rounds": 1, "ideas": 1, "implementations": 1, "tune_trials": 4}
    search.model = ScriptedModel(kernel=all_tunable)
    with search.archive.database.write() as rows:
        rows.execute(FULL.format(table="evaluations", column="candidate_id", value="r1i0v0a0t1"))
    with pytest.raises(sqlite3.IntegrityError, match="full"):
        await search.run(search.context(**shape))
    with search.archive.database.write() as rows:
        rows.execute("DROP TRIGGER full")
    with telling(lambda event: event["values"].clear() if event["event"] == "tune" else None):
        await in_a_node(tune, {"round": 1, "elites": ["r1i0v0a0"]}, search.context(**shape))
    assert all(point.tunables for point in search.archive.candidates(origin=Origin.TUNE))


async def test_kernel_far_behind_the_fastest_gets_no_trials(search: Search) -> None:
    def kernel(request: Any) -> dict[str, Any]:
        source = all_tunable(request)["source"]
        return {"source": source.replace("speed 1.5", "speed 3.0") if request.variation else source}

    search.model = ScriptedModel(kernel=kernel)
    await search.run(search.context(rounds=1, ideas=1, implementations=2, tune_trials=8))
    assert {root_id(point) for point in search.archive.candidates(origin=Origin.TUNE)} == {"r1i0v1a0"}


async def test_kernels_far_behind_one_that_is_not_tunable_get_none(search: Search) -> None:
    search.model = ScriptedModel(kernel=lambda r: {"source": "// speed 3.0\n"} if r.variation else all_tunable(r))
    await search.run(search.context(rounds=1, ideas=1, implementations=2, tune_trials=8))
    assert search.archive.candidates(origin=Origin.TUNE) == []
