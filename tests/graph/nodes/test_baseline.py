"""What is measured before a model is asked, and the kernels that a search begins with."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from tests.graph.conftest import Search
from tests.graph.memory_engine import MemoryEngine

from ridgeline.checkpoints.bank import Bank
from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.graph.search import device_table
from ridgeline.tools.records.vocabulary import Origin


async def test_nothing_is_asked_when_pytorch_is_at_the_floor(search: Search) -> None:
    search.engine = MemoryEngine(floor_ms=9.9)
    output = await search.run(search.context())
    assert output["round"] == 0
    assert not search.model.proposals
    assert search.events_named("stopped")[0]["outcome"] == "at_floor"


async def test_seed_kernels_are_told_where_there_are_some_and_then_that_ideas_are_asked_for(search: Search) -> None:
    context = search.context(rounds=1)
    for seed in (context.problem.path.parent / "seeds").iterdir():
        seed.unlink()
    context.problem = context.problem.model_copy(update={"seeds": []})
    await search.run(context)
    assert not search.events_named("seeds")
    told = [event["event"] for event in search.events]
    assert told.index("baseline") < told.index("ideation") < told.index("round_started")
    assert (search.events_named("ideation")[0]["round"], search.events_named("ideation")[0]["max_rounds"]) == (1, 1)


async def test_seed_kernels_are_counted_before_they_are_judged(search: Search) -> None:
    await search.run(search.context(rounds=1))
    assert [event["kernels"] for event in search.events_named("seeds")] == [1]


async def test_bank_is_read_again_when_the_search_was_killed_before_all_its_kernels_were_stored(
    search: Search, tmp_path: Any
) -> None:
    with Bank.open(tmp_path / "bank.sqlite") as bank:
        context = search.context(rounds=1, ideas=3)
        context.bank = bank
        await search.run(context)
        seeds = bank.seeds("rowwise", "test-1", 2)
        search.archive.save_run(RunRecord(bank_read=False))
        search.archive.add_candidate(dataclasses.replace(seeds[0], round=0))
        again = search.context(rounds=1)
        again.bank = bank
        await search.run(again)
    assert {seed.id for seed in seeds} <= {c.id for c in search.archive.candidates(origin=Origin.BANK)}
    assert search.archive.run().bank_read is True


async def test_every_request_shows_the_devices_table_that_the_search_began_with(
    search: Search, monkeypatch: pytest.MonkeyPatch
) -> None:
    await search.run(search.context(rounds=1))
    shown = search.model.proposals[0].subject.facts
    assert {"instruction set", "compiler"} <= {fact.name for fact in shown}
    monkeypatch.setattr(device_table, "device_facts", lambda *_, **__: ())  # another machine, or another measurement
    await search.run(search.context(rounds=2))
    assert len(search.model.proposals) > 1
    assert {request.subject.facts for request in (*search.model.proposals, *search.model.writes)} == {shown}
