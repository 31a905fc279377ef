"""How a branch's build error is mended without a call, or by one call for all branches that have it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.graph.conftest import Search
from tests.graph.scripted_model import ScriptedModel

from ridgeline.checkpoints.result import show_run
from ridgeline.graph.models.requests import KernelRequest
from ridgeline.tools.records.vocabulary import Mender, Origin, ReasonCode, Status


def source_of(request: KernelRequest, *lines: str) -> str:
    """Return a kernel that no other branch of a search writes."""
    return "\n".join([f"// {request.idea.title} {request.variation}", *lines, "// speed 2.0", ""])


def ids(search: Search) -> list[str]:
    return sorted(c.id for c in search.archive.candidates(origin=Origin.MODEL))


async def test_a_missing_include_is_mended_without_a_call_and_takes_no_repair(search: Search) -> None:
    search.model = ScriptedModel(kernel=lambda request: {"source": source_of(request, "// needs cmath")})
    output = await search.run(search.context(rounds=1, ideas=1, implementations=1, repairs=0))
    assert len(search.model.writes) == 1
    assert ids(search) == ["r1i0v0a0", "r1i0v0a0f1"]
    assert output["best_id"] == "r1i0v0a0f1" and output["certified"]
    mended = search.archive.candidate("r1i0v0a0f1")
    assert mended.mending is not None and mended.source.startswith("#include <cmath>\n")
    assert (mended.mending.by, mended.mending.failed_id) == (Mender.FIX_ITS, "r1i0v0a0")
    assert mended.mending.changes == ("line 1: #include <cmath> is inserted",)
    assert [e["stage"] for e in search.events_named("branch_stage")][:4] == ["write", "compile", "mend", "compile"]


async def test_a_repair_starts_from_what_the_fix_its_left_and_says_so(search: Search) -> None:
    def kernel(request: KernelRequest) -> dict[str, Any]:
        if request.failed_source:
            return {"source": f"{request.failed_source}// has rest\n"}
        return {"source": source_of(request, "// needs cmath", "// lacks rest")}

    search.model = ScriptedModel(kernel=kernel)
    await search.run(search.context(rounds=1, ideas=1, implementations=1, repairs=1))
    assert ids(search) == ["r1i0v0a0", "r1i0v0a0f1", "r1i0v0a1"]
    repair = search.model.writes[1]
    assert repair.failed_source.startswith("#include <cmath>")
    assert "'rest' was not declared" in repair.failure and "cmath' was" not in repair.failure
    assert "by the compiler's own fix-its:\n- line 1: #include <cmath> is inserted" in repair.failure
    assert repair.failure_code is ReasonCode.COMPILER_FAILED
    assert search.archive.candidate("r1i0v0a1").mending is None


async def test_fix_its_that_leave_as_many_errors_end_and_the_model_repairs_its_own_source(search: Search) -> None:
    class Stubborn(type(search.engine)):  # type: ignore[misc]
        def _compile(self, task: Any) -> Any:
            build = super()._compile(task)
            return build if "mended" in task.candidate.source else super()._compile(_without_includes(task))

    search.engine = Stubborn()

    def kernel(request: KernelRequest) -> dict[str, Any]:
        return {"source": source_of(request, "// mended" if request.failed_source else "// needs cmath")}

    search.model = ScriptedModel(kernel=kernel)
    await search.run(search.context(rounds=1, ideas=1, implementations=1, repairs=1))
    assert ids(search) == ["r1i0v0a0", "r1i0v0a0f1", "r1i0v0a1"]
    assert "#include" not in search.model.writes[1].failed_source


def _without_includes(task: Any) -> Any:
    import dataclasses

    source = "".join(line for line in task.candidate.source.splitlines(keepends=True) if "#include" not in line)
    return dataclasses.replace(task, candidate=dataclasses.replace(task.candidate, source=source))


def repairs_once(request: KernelRequest) -> dict[str, Any]:
    """Return a kernel that lacks what one line mends."""
    if request.failed_source:
        return {"source": request.failed_source.replace("int lost;", "int lost; // has lost")}
    return {"source": source_of(request, "// lacks lost", "int lost;")}


async def test_the_same_error_in_four_branches_is_repaired_by_one_call(search: Search) -> None:
    search.model = ScriptedModel(kernel=repairs_once, delay_s=0.05)
    output = await search.run(search.context(rounds=1, ideas=2, implementations=2, repairs=2))
    assert output["certified"]
    assert len(search.model.writes) == 4 + 1
    built = [c for c in search.archive.candidates(origin=Origin.MODEL) if "has lost" in c.source]
    own = [c for c in built if c.mending is None]
    assert len(built) == 4 and len(own) == 1
    for candidate in built:
        evaluation = search.archive.evaluation(candidate.id)
        assert evaluation is not None and evaluation.status is Status.OK
        if candidate.mending is not None:
            assert (candidate.mending.by, candidate.mending.sibling_id) == (Mender.SIBLING, own[0].id)
            assert candidate.source.splitlines()[0] != own[0].source.splitlines()[0], "only the edit is taken"
    cost = show_run(search.archive)["cost"]
    assert cost["repair_share"] == pytest.approx(1 / 6), "one call of six, for ideas, kernels and the repair"


async def test_the_same_error_in_branches_of_a_batch_is_repaired_by_each_in_one_batch(search: Search) -> None:
    search.model = ScriptedModel("scripted?batch", kernel=repairs_once, delay_s=0.05)
    await search.run(search.context(rounds=1, ideas=1, implementations=2, repairs=1))
    assert ids(search) == ["r1i0v0a0", "r1i0v0a1", "r1i0v1a0", "r1i0v1a1"]
    assert all(c.mending is None for c in search.archive.candidates(origin=Origin.MODEL))


@pytest.mark.parametrize("cut", [0, 1, 2])
async def test_a_resumed_search_goes_the_same_way_and_repeats_no_call(search: Search, cut: int) -> None:
    search.model = ScriptedModel(kernel=repairs_once, delay_s=0.02)
    await search.run(search.context(rounds=1, ideas=2, implementations=2, repairs=2))
    before = ids(search)
    mended = [name for name in before if "f" in name]
    with search.archive.database.write() as rows:  # as a kill leaves it that came before these were stored
        for name in mended[:cut]:
            rows.execute("DELETE FROM candidates WHERE id = ?", [name])
            rows.execute("DELETE FROM evaluations WHERE candidate_id = ?", [name])
    again = ScriptedModel()
    await search.run(search.context(again, rounds=1, ideas=2, implementations=2, repairs=2))
    assert not again.writes and not again.proposals
    assert search.context().journal.mismatches == [], "each repair is asked for in the same words"
    assert ids(search) == before


async def test_branches_whose_error_is_another_wait_for_nobody(search: Search) -> None:
    def kernel(request: KernelRequest) -> dict[str, Any]:
        name = f"lost_{'ab'[request.variation]}"
        if request.failed_source:
            return {"source": f"{request.failed_source}// has {name}\n"}
        return {"source": source_of(request, f"// lacks {name}")}

    search.model = ScriptedModel(kernel=kernel)
    await search.run(search.context(rounds=1, ideas=1, implementations=2, repairs=1))
    assert len(search.model.writes) == 2 + 2
    assert ids(search) == ["r1i0v0a0", "r1i0v0a1", "r1i0v1a0", "r1i0v1a1"]


async def test_an_edit_that_does_not_fit_or_does_not_help_costs_each_branch_its_own_call(search: Search) -> None:
    def kernel(request: KernelRequest) -> dict[str, Any]:
        own = f"int lost{request.variation};"
        if request.failed_source:
            return {"source": request.failed_source.replace(own, f"{own} // has lost")}
        return {"source": source_of(request, "// lacks lost", own)}

    search.model = ScriptedModel(kernel=kernel, delay_s=0.02)
    await search.run(search.context(rounds=1, ideas=1, implementations=3, repairs=1))
    assert len(search.model.writes) == 3 + 3
    assert not [c for c in search.archive.candidates(origin=Origin.MODEL) if c.mending]


async def test_a_first_repair_that_fails_leaves_the_others_to_ask(search: Search) -> None:
    tried: list[str] = []

    def kernel(request: KernelRequest) -> dict[str, Any]:
        if not request.failed_source:
            return {"source": source_of(request, "// lacks lost")}
        tried.append(request.idea.title)
        return {"source": request.failed_source + ("// still\n" if len(tried) == 1 else "// has lost\n")}

    search.model = ScriptedModel(kernel=kernel, delay_s=0.02)
    output = await asyncio.wait_for(search.run(search.context(rounds=1, ideas=2, implementations=2, repairs=1)), 30)
    assert output["certified"]
    assert 2 <= len(tried) <= 4
