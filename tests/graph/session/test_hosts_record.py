"""The end of a host's own graph, as its run's record, its archive and its report hold it."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import time
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from tests.graph.memory_engine import MemoryEngine
from tests.graph.scripted_model import ScriptedModel, distinct_ideas
from tests.graph.session.test_interrupts import THREAD, host
from tests.graph.session.test_last_record import ONE_ROUND, page_of, record_of
from tests.graph.session.test_session import options
from tests.graph.session.test_steering import stopped_after_one_round

from ridgeline import open_context
from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.graph.models.requests import IdeationRequest
from ridgeline.graph.session.last_record import SessionRecord
from ridgeline.graph.session.options import SearchRequest
from ridgeline.tools.errors import EngineError
from ridgeline.tools.records.vocabulary import RunState

pytestmark = pytest.mark.long


async def test_the_end_of_a_hosts_own_graph_is_stored_and_ends_its_report(tmp_path: Path) -> None:
    await stopped_after_one_round(tmp_path)

    def fails(request: IdeationRequest) -> dict[str, Any]:
        assert "was going on" in page_of(tmp_path), "a node works"
        raise EngineError("scripted: the machine failed")

    model, resumed = ScriptedModel(ideas=fails), options(tmp_path, resume=True)
    with pytest.raises(EngineError, match="the machine failed"):
        await hosted(resumed, model, rounds=[2])
    assert record_of(tmp_path).ended_by == "scripted: the machine failed"
    assert "interrupted, resumable; ended by: scripted: the machine failed" in page_of(tmp_path)
    async with open_context(resumed, engine=MemoryEngine(), models=[model]) as context:
        assert "interrupted, resumable; ended by: " in page_of(tmp_path), "no node works yet"
        with pytest.raises(EngineError):
            await host(context, InMemorySaver()).ainvoke({"max_rounds": 2}, THREAD)
    assert record_of(tmp_path).ended_by == "", "its host took it"
    assert "interrupted, resumable" in page_of(tmp_path) and "was going on" not in page_of(tmp_path)


async def test_nodes_that_begin_side_by_side_store_once_that_their_search_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stopped_after_one_round(tmp_path)
    stored, save_run = list[RunRecord](), Archive.save_run

    def slow(archive: Archive, changes: RunRecord) -> None:
        stored.append(changes)
        time.sleep(0.2)
        save_run(archive, changes)

    async with open_context(options(tmp_path, resume=True), engine=MemoryEngine(), models=[ScriptedModel()]) as context:
        monkeypatch.setattr(Archive, "save_run", slow)
        assert context.go_on is not None
        await asyncio.gather(*(asyncio.to_thread(context.go_on) for _ in range(4)))
        assert stored == [RunRecord(state=RunState.RUNNING)]


@pytest.mark.parametrize("is_cancelled", [True, False])
async def test_a_hosts_graph_that_works_on_after_its_session_was_left_changes_nothing_of_its_end(
    is_cancelled: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stopped_after_one_round(tmp_path)
    leave, stored = SessionRecord.leave, list[tuple[RunRecord, str]]()

    def leave_before_the_last_node(record: SessionRecord, left: RunRecord) -> None:
        leave(record, left)
        stored.append((record_of(tmp_path), page_of(tmp_path)))
        record.go_on()
        record.renew_report()

    monkeypatch.setattr(SessionRecord, "leave", leave_before_the_last_node)
    asked = options(tmp_path, resume=True)
    with contextlib.suppress(asyncio.CancelledError):
        async with open_context(asked, engine=MemoryEngine(), models=[ScriptedModel()]) as context:
            assert context.go_on is not None and context.renew_report is not None
            context.go_on()
            context.renew_report()
            assert "was going on" in page_of(tmp_path)
            if is_cancelled:
                raise asyncio.CancelledError
    assert record_of(tmp_path).state is (RunState.STOPPED if is_cancelled else RunState.RUNNING)
    assert "was going on" not in page_of(tmp_path)
    assert stored == [(record_of(tmp_path), page_of(tmp_path))]


async def test_the_late_end_of_a_hosts_graph_is_the_last_that_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stopped_after_one_round(tmp_path)
    leave = SessionRecord.leave

    def leave_before_the_end(record: SessionRecord, left: RunRecord) -> None:
        leave(record, left)
        record.end(RunState.FINISHED)
        record.go_on()

    monkeypatch.setattr(SessionRecord, "leave", leave_before_the_end)
    asked = options(tmp_path, resume=True)
    async with open_context(asked, engine=MemoryEngine(), models=[ScriptedModel()]) as context:
        assert context.go_on is not None
        context.go_on()
    assert record_of(tmp_path).state is RunState.FINISHED


async def hosted(asked: SearchRequest, model: ScriptedModel, *, rounds: list[int]) -> None:
    """Run a search in a host's graph, to one number of rounds after another, with one context."""
    async with open_context(asked, engine=MemoryEngine(), models=[model]) as context:
        graph = host(context, InMemorySaver())
        for number in rounds:
            await graph.ainvoke({"max_rounds": number}, THREAD)


async def test_a_host_that_opens_a_search_which_is_over_and_runs_nothing_leaves_it_over(tmp_path: Path) -> None:
    asked = options(tmp_path, search=ONE_ROUND)
    await hosted(asked, ScriptedModel(), rounds=[1])
    page = page_of(tmp_path)
    assert record_of(tmp_path).state is RunState.FINISHED
    resumed = dataclasses.replace(asked, resume=True)
    async with open_context(resumed, engine=MemoryEngine(), models=[ScriptedModel()]):
        pass
    assert record_of(tmp_path).state is RunState.FINISHED and page_of(tmp_path) == page


async def test_a_host_that_extends_its_search_in_one_block_has_it_running_until_it_ends_again(tmp_path: Path) -> None:
    states: list[tuple[str | None, bool]] = []

    def ideas(request: IdeationRequest) -> dict[str, Any]:
        states.append((record_of(tmp_path).state, (tmp_path / "run" / "result.json").exists()))
        if len(states) == 2:
            raise EngineError("scripted: the machine failed")
        return distinct_ideas(request)

    with pytest.raises(EngineError):
        await hosted(options(tmp_path, search=ONE_ROUND), ScriptedModel(ideas=ideas), rounds=[1, 2])
    assert states == [("running", False), ("running", True)]
    assert (record_of(tmp_path).state, record_of(tmp_path).ended_by) == ("running", "scripted: the machine failed")
