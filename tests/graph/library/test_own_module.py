"""A module of the caller's own process, all the way: a problem, a search without a key, the winner with its weights."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from langgraph.runtime import RunControl
from tests.graph.memory_engine import MemoryEngine
from tests.graph.scripted_model import ScriptedModel

from ridgeline import ProblemSpec, SearchOptions, load, run_search
from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.recording.file import write_recording
from ridgeline.graph.search.events import SearchEvent
from ridgeline.tools.records.vocabulary import Origin, Status

pytestmark = pytest.mark.usefixtures("warm_judge")
ROWS, COLS = 64, 96
SMALL = {"rounds": 1, "ideas": 1, "implementations": 1, "tune_trials": 0, "floor_margin": None}


class WithTable(torch.nn.Module):
    """A layer norm beside a table that no `state_dict` has."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(COLS)
        self.register_buffer("table", torch.randn(COLS), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x) + self.table


async def test_a_run_carries_the_whole_reference_into_a_replay_elsewhere(tmp_path: Path) -> None:
    module, folder = WithTable(), tmp_path / "block"
    problem = ProblemSpec.from_module(module, (torch.randn(ROWS, COLS),), name="block", folder=folder)
    text = problem.reference_source("cpu")
    request = SearchOptions(problem=problem, run_dir=tmp_path / "run", settings=SMALL)
    await run_search(request, engine=MemoryEngine(), models=[ScriptedModel()])
    write_recording(tmp_path / "run", tmp_path / "got.jsonl")
    shutil.rmtree(folder)
    shutil.rmtree(tmp_path / "run")
    again = SearchOptions(replay=tmp_path / "got.jsonl", replay_timings=True, run_dir=tmp_path / "again")
    await run_search(again)
    with Archive.open(tmp_path / "again", create=False) as archive:
        assert archive.run().reference_source == text
    reference: dict[str, Any] = {}
    exec(text, reference)
    assert torch.equal(reference["Model"]().table, module.table)


@pytest.mark.thorough
@pytest.mark.long
@pytest.mark.any_tier
async def test_a_live_module_is_searched_without_a_key_and_its_winner_takes_its_weights(tmp_path: Path) -> None:
    model = torch.nn.Sequential(torch.nn.LayerNorm(COLS), torch.nn.GELU())
    torch.nn.init.normal_(model[0].weight)
    problem = ProblemSpec.from_module(
        model, (torch.randn(ROWS, COLS),), name="block", folder=tmp_path / "block", search=SMALL, models=["offline"]
    )
    stop = RunControl()

    def stop_before_the_certificate(event: SearchEvent) -> None:
        if event["event"] == "certification":
            stop.request_drain()

    request = SearchOptions(problem=problem, run_dir=tmp_path / "run")
    await run_search(request, on_event=stop_before_the_certificate, stop=stop)
    with Archive.open(tmp_path / "run", create=False) as archive:
        (written,) = archive.candidates(origin=Origin.MODEL)
        evaluation = archive.evaluation(written.id)
    assert evaluation is not None and evaluation.verdict is not None
    assert evaluation.verdict.status is Status.OK, evaluation.reason
    kernel, x = load(tmp_path / "run", model, uncertified=True), torch.randn(ROWS, COLS)
    with torch.no_grad():
        torch.testing.assert_close(kernel(x), model(x), rtol=1e-4, atol=1e-5)
