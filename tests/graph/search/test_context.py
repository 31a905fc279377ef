"""What a context knows of its target before and after the reference was described."""

from __future__ import annotations

import dataclasses

import pytest
from tests.graph.conftest import Search
from tests.graph.memory_engine import DESCRIPTION, target

from ridgeline.graph.search.context import EndedBy, stored_target
from ridgeline.tools.errors import EngineError


async def test_new_search_has_no_described_target_and_no_baselines(search: Search) -> None:
    context = search.context()
    assert stored_target(search.archive, target()) is None
    with pytest.raises(EngineError, match="not described yet"):
        _ = context.described
    with pytest.raises(EngineError, match="not measured yet"):
        await context.baselines()


async def test_resumed_search_has_the_target_that_the_baseline_node_described(search: Search) -> None:
    first = search.context(rounds=1, ideas=1, implementations=1)
    await search.run(first)
    resumed = search.context()
    assert resumed.described == first.described == target().described(DESCRIPTION)
    assert resumed.family == "rowwise"


async def test_first_round_s_models_are_told_of_eager_alone(search: Search) -> None:
    context = search.context(rounds=1, ideas=1, implementations=1)
    await search.run(context)
    names = {r: [b.name for b in (await context.told_baselines(r)).entries] for r in (1, 2)}
    assert names == {1: ["eager"], 2: ["eager", "compile"]}


async def test_no_other_field_is_set_during_a_search(search: Search) -> None:
    context = search.context(rounds=1, ideas=1, implementations=1)
    before = {each.name: getattr(context, each.name) for each in dataclasses.fields(context)}
    await search.run(context)
    changed = {name for name, value in before.items() if getattr(context, name) is not value}
    assert changed <= {"described_target", "facts", "compiled", "thread_id"}


@pytest.mark.parametrize("ended_by", [EndedBy.SESSION, EndedBy.NOBODY])
def test_what_a_host_ends_its_search_by_belongs_to_a_search_of_a_host(search: Search, ended_by: EndedBy) -> None:
    context = search.context()
    with pytest.raises(ValueError, match=f"ended by {ended_by.value} has finish=<"):
        dataclasses.replace(context, ended_by=ended_by, finish=lambda *_: None)
    with pytest.raises(ValueError, match="ended by host has finish=None"):
        dataclasses.replace(context, ended_by=EndedBy.HOST)
