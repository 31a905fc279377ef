"""Kernels of other operations: chosen once, shown to ideation, and to the writer of an idea that names one."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.graph.conftest import Search
from tests.graph.memory_engine import DESCRIPTION
from tests.graph.scripted_model import ScriptedModel, distinct_ideas

from ridgeline.checkpoints.bank import Bank
from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.graph.models.requests import IdeationRequest
from ridgeline.graph.search.ideas.blocks import work_of
from ridgeline.problems.spec import load_problem
from ridgeline.tools.records.baselines import Floor
from ridgeline.tools.records.search import BuildingBlock, KernelWork

FLOOR = Floor(floor_ms=0.1, compute_floor_ms=0.8, bound="compute", bandwidth_gbps=4000.0, gflops=7e5, unit="fp16")


def with_references(search: Search, context: Any) -> None:
    """Give the search's problem one kernel for its device and one for another."""
    path = context.problem.path
    for name in ("gemm.cpp", "gemm.cu"):
        (path.parent / name).write_text(f"// {name}\n")
    data = yaml.safe_load(path.read_text()) | {
        "references": [{"file": "gemm.cpp", "words": "a product of matrices"}, {"file": "gemm.cu"}]
    }
    path.write_text(yaml.safe_dump(data))
    context.problem = load_problem(path)


async def test_the_problems_references_are_shown_and_the_one_that_an_idea_names_is_given_to_its_writer(
    search: Search,
) -> None:
    def ideas(request: IdeationRequest) -> dict[str, Any]:
        first, second = distinct_ideas(request)["ideas"]
        return {"ideas": [first | {"block": "gemm.cpp"}, second | {"block": "made up"}]}

    search.model = ScriptedModel(ideas=ideas)
    context = search.context(rounds=1, ideas=2, implementations=1)
    with_references(search, context)
    await search.run(context)
    shown = search.model.proposals[0].blocks
    assert [(block.name, block.words, block.source) for block in shown] == [
        ("gemm.cpp", "a product of matrices", "// gemm.cpp")
    ]
    assert sorted(request.block.name if request.block else "" for request in search.model.writes) == ["", "gemm.cpp"]
    assert all("gemm" not in candidate.source for candidate in search.archive.candidates())


async def test_a_search_without_blocks_reads_none_and_shows_none_to_its_writers(search: Search) -> None:
    def ideas(request: IdeationRequest) -> dict[str, Any]:
        return {"ideas": [idea | {"block": "gemm.cpp"} for idea in distinct_ideas(request)["ideas"]]}

    search.model = ScriptedModel(ideas=ideas)
    context = search.context(rounds=1, ideas=2, implementations=1, without=["blocks"])
    with_references(search, context)
    for file in context.problem.path.parent.glob("gemm.*"):
        file.unlink()
    await search.run(context)
    assert search.archive.run().blocks is None
    assert [request.blocks for request in search.model.proposals] == [()]
    assert [request.block for request in search.model.writes] == [None, None]


async def test_blocks_that_a_recording_handed_over_are_left_out_of_a_writers_request(search: Search) -> None:
    context = search.context(rounds=1, ideas=1, implementations=1, without=["blocks"])
    stored = BuildingBlock(name="gemm.cpp", words="a product", language="cpp", source="// gemm")
    search.archive.save_run(RunRecord(blocks=(stored,)))
    search.model._ideas = lambda request: {"ideas": [distinct_ideas(request)["ideas"][0] | {"block": "gemm.cpp"}]}
    await search.run(context)
    assert [request.block for request in search.model.writes] == [None]


async def test_the_banks_best_kernel_of_another_family_is_shown_in_words_and_stays(
    search: Search, tmp_path: Path
) -> None:
    with Bank.open(tmp_path / "bank.sqlite") as bank:
        first = search.context(rounds=1, ideas=1, implementations=1)
        first.bank = bank
        await search.run(first)
        (kernel,) = [bank.blocks("matmul", "test-1", 2)[0].candidate]
    with Bank.open(tmp_path / "bank.sqlite") as bank:
        row = bank.database.first("SELECT median_ms FROM kernels WHERE id = ?", [kernel.id])
        with bank.database.write() as rows:
            rows.execute("UPDATE kernels SET family = 'matmul', problem = 'product'")
        found = bank.blocks("rowwise", "test-1", 2)[0]
    assert row is not None and found.work.bound == "memory" and found.work.share is not None

    other = search.model = ScriptedModel()
    with Bank.open(tmp_path / "bank.sqlite") as bank:
        again = search.context(rounds=2, ideas=1, implementations=1)
        again.bank = bank
        search.archive.save_run(dataclasses.replace(search.archive.run(), blocks=None))
        with search.archive.database.write() as rows:
            rows.execute("UPDATE runs SET record = json_remove(record, '$.blocks')")
        await search.run(again, {"max_rounds": 3})
    words = other.proposals[0].blocks[0].words
    assert words.startswith("the fastest matmul kernel known on this device (product), ")
    assert f"{row['median_ms']:.4g} ms" in words and "% of the memory bandwidth" in words
    assert "x: input float32 (4, 8) -> out: output float32 (4, 8)" in words
    assert {request.blocks for request in other.proposals} == {other.proposals[0].blocks}


def test_a_share_beyond_the_peak_is_not_known() -> None:
    assert work_of(DESCRIPTION, FLOOR, 1.0) == KernelWork(
        arguments="x: input float32 (4, 8) -> out: output float32 (4, 8)", bound="compute", share=pytest.approx(0.8)
    )
    assert work_of(DESCRIPTION, FLOOR, 0.5).share is None
