"""What was measured once is found again, as long as it was measured by the same judge on the same builds."""

from __future__ import annotations

import dataclasses

import pytest
from tests.candidates import candidate_of
from tests.graph.conftest import Search
from tests.graph.memory_engine import DESCRIPTION

from ridgeline.graph.search.step_memory import compare_once
from ridgeline.tools.records import keys
from ridgeline.tools.records.results import Build
from ridgeline.tools.records.search import Candidate
from ridgeline.tools.records.vocabulary import Origin, Status


def candidate(name: str) -> Candidate:
    return candidate_of(f"// speed {len(name)}\n", name=name, origin=Origin.SEED)


async def test_a_comparison_is_measured_again_by_another_judge_or_on_another_build(
    search: Search, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = search.context()
    search.archive.save_description(DESCRIPTION)
    one, two = candidate("one"), candidate("other")
    for c in (one, two):
        search.archive.add_candidate(c)
    builds = {c.id: Build(key=c.id, status=Status.OK, library_path="/nowhere.so") for c in (one, two)}

    async def measured() -> int:
        await compare_once(context, (one, builds["one"]), (two, builds["other"]), of=one)
        return search.engine.counts["CompareTask"]

    assert [await measured(), await measured()] == [1, 1]
    builds["one"] = dataclasses.replace(builds["one"], key="another compiler")
    assert [await measured(), await measured()] == [2, 2]
    monkeypatch.setattr(keys, "JUDGE_VERSION", keys.JUDGE_VERSION + 1)
    assert [await measured(), await measured()] == [3, 3]
