"""One search with nothing stood in for: the local engine, the offline model, the shipped problem's own files."""

from __future__ import annotations

from pathlib import Path

import pytest

from ridgeline import SearchOptions, run_search
from ridgeline.checkpoints.archive import Archive
from ridgeline.graph.session.problem import find_problem
from ridgeline.tools.records.vocabulary import Origin, Status

pytestmark = [pytest.mark.sandboxed, pytest.mark.timing]


@pytest.mark.slow
async def test_offline_search_compiles_verifies_and_times_real_kernels(tmp_path: Path) -> None:
    problem = find_problem("quickstart")
    changes = {"rounds": 1, "ideas": 1, "implementations": 1, "tune_trials": 1, "floor_margin": None}
    settings = problem.search.model_copy(update=changes)
    events: list[str] = []
    result = await run_search(
        SearchOptions(problem=problem, run_dir=tmp_path / "run", settings=settings),
        on_event=lambda event: events.append(event["event"]),
    )
    assert result.state in ("finished", "no_gain")  # a gain depends on how quiet the machine is
    assert {"baseline", "idea", "candidate_done", "round_done"} <= set(events)
    with Archive.open(tmp_path / "run", create=False) as archive:
        (written,) = archive.candidates(origin=Origin.MODEL)
        evaluation = archive.evaluation(written.id)
    assert evaluation is not None and evaluation.verdict is not None
    assert evaluation.verdict.status is Status.OK
    assert evaluation.build is not None and evaluation.build.library_path
    assert (tmp_path / "run" / "result.json").exists()
    assert (tmp_path / "run" / "report.html").exists()
