"""A search that is asked to stop, by another process or before its first round."""

from __future__ import annotations

import asyncio
import dataclasses
from pathlib import Path
from typing import Any

import pytest
from langgraph.runtime import RunControl
from tests.graph.conftest import write_problem
from tests.graph.memory_engine import MemoryEngine
from tests.graph.scripted_model import ScriptedModel

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.steering import Steer, Steering, SteerKind
from ridgeline.graph.search.events import ignore
from ridgeline.graph.session import stopping
from ridgeline.graph.session.options import SearchRequest
from ridgeline.graph.session.session import run_search
from ridgeline.tools.engine import BaselineTask, BenchmarkTask, CompileTask, DescribeTask, Task, VerifyTask
from ridgeline.tools.errors import StorageError
from ridgeline.tools.records.vocabulary import Status


async def test_a_stop_is_obeyed_although_the_archive_could_not_be_looked_into_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusals, told = 2, Steering.told

    def refused_at_first(steering: Steering, *given: Any, **more: Any) -> list[Steer]:
        nonlocal refusals
        if not refusals:
            return told(steering, *given, **more)
        refusals -= 1
        raise StorageError("database is locked")

    monkeypatch.setattr(stopping, "LOOK_EVERY_S", 0.01)
    control = RunControl()
    with Archive.open(tmp_path / "archive.sqlite") as archive:
        async with stopping.obeying_stop(archive, control, since=stopping.now_in_utc(), on_event=ignore):
            Steering(archive).add_stop()
            monkeypatch.setattr(Steering, "told", refused_at_first)
            for _ in range(500):
                if control.drain_requested:
                    break
                await asyncio.sleep(0.01)
            assert control.drain_requested and not refusals
            assert Steering(archive).told(SteerKind.STOP), "others see that the search was told"
        assert not Steering(archive).told(SteerKind.STOP)


class _OneThatTakesLong(MemoryEngine):
    """A stop is asked for during the first task of a kind, which would take a minute more."""

    def __init__(self, stop: RunControl, kind: type[Task[Any]]) -> None:
        super().__init__()
        self.stop, self.kind = stop, kind

    async def submit(self, task: Task[Any]) -> Any:
        if isinstance(task, self.kind):
            self.stop.request_drain("test")
            await asyncio.sleep(60.0)
        return await super().submit(task)


@pytest.mark.parametrize("kind", [DescribeTask, BaselineTask, CompileTask, VerifyTask, BenchmarkTask])
async def test_a_stop_before_the_first_round_leaves_what_is_in_flight_to_a_resumed_search(
    tmp_path: Path, kind: type[Task[Any]]
) -> None:
    settings = {"rounds": 1, "ideas": 2, "implementations": 1, "tune_trials": 0, "floor_margin": None}
    problem = write_problem(tmp_path / "problem", search=settings)
    asked = SearchRequest(problem=problem, run_dir=tmp_path / "run")
    stop, model = RunControl(), ScriptedModel()
    running = run_search(asked, engine=_OneThatTakesLong(stop, kind), models=[model], stop=stop)
    first = await asyncio.wait_for(running, timeout=30.0)
    assert (first.state, first.certified, model.writes) == ("stopped", False, [])
    second = await run_search(dataclasses.replace(asked, resume=True), engine=MemoryEngine(), models=[model])
    assert (second.state, second.certified) == ("finished", True)
    with Archive.open_read_only(tmp_path / "run") as archive:
        assert {found.status for found in archive.evaluations()} == {Status.OK}
