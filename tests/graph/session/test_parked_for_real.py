"""A parked search with nothing stood in for but the agent, which answers from each request's document alone.

PyTorch is timed in eager mode only, and the search is stopped before its certificate: neither is part of what is parked,
and both take minutes.
"""

from __future__ import annotations

import json
import re
import shutil
from contextlib import aclosing
from pathlib import Path

import pytest
from langgraph.runtime import RunControl
from tests.eager_engine import EagerOnlyEngine
from tests.graph.mailbox_agent import requests_in

from ridgeline import SearchOptions, SearchResult, run_search
from ridgeline.checkpoints.archive import Archive
from ridgeline.graph.search.events import SearchEvent
from ridgeline.graph.session.problem import find_problem
from ridgeline.tools.records.vocabulary import Origin, Status

pytestmark = [pytest.mark.sandboxed, pytest.mark.timing]


def answer(run_dir: Path) -> int:
    """Answer every request: with ideas that start from the kernel shown, or with the parent's source and a line more."""
    requests = requests_in(run_dir)
    for path in requests:
        document, stem = path.read_text(), path.name.removesuffix(".request.md")
        if 'purpose: "ideas"' in document:
            parent = re.search(r"### `(seed-\w+)`", document)
            assert parent is not None
            idea = {"title": "Unroll the fused pass", "mechanism": "more loads in flight", "category": "memory_access"}
            path.with_name(f"{stem}.answer.json").write_text(json.dumps({"ideas": [idea | {"parent_id": parent[1]}]}))
        else:
            source = re.search(r"## Start from this kernel.*?```cpp\n(.*?)```", document, re.DOTALL)
            assert source is not None
            path.with_name(f"{stem}.answer.md").write_text(f"```cpp\n// unrolled\n{source[1]}```\n")
    return len(requests)


async def searched(options: SearchOptions) -> SearchResult:
    """Run a search with processes of its own, as one session does, until its round is over."""
    control = RunControl()

    def stop_after_round(event: SearchEvent) -> None:
        if event["event"] == "round_done":
            control.request_drain()

    async with aclosing(EagerOnlyEngine()) as engine:
        return await run_search(options, engine=engine, stop=control, on_event=stop_after_round)


@pytest.mark.slow
async def test_a_parked_search_is_moved_and_answered_and_judges_real_kernels(tmp_path: Path) -> None:
    problem = find_problem("quickstart")
    changes = {"rounds": 1, "ideas": 1, "implementations": 2, "tune_trials": 0, "floor_margin": None}
    settings = problem.search.model_copy(update=changes)
    run = tmp_path / "run"
    given = SearchOptions(problem=problem, run_dir=run, settings=settings, models=("mailbox",), park=True)
    assert (await searched(given)).state == "waiting"
    assert answer(run) == 1
    moved = tmp_path / "moved"
    shutil.copytree(run, moved)
    shutil.rmtree(run)
    resumed = SearchOptions(run_dir=moved, resume=True, park=True)
    assert (await searched(resumed)).waiting == 2
    assert answer(moved) == 2
    assert (await searched(resumed)).state == "stopped"
    with Archive.open(moved, create=False) as archive:
        written = archive.candidates(origin=Origin.MODEL)
        evaluations = [archive.evaluation(candidate.id) for candidate in written]
    assert len(written) == 2
    assert all(found is not None and found.status is Status.OK for found in evaluations)
