"""How one branch writes, repairs and gives up, whatever its siblings do."""

from __future__ import annotations

from typing import Any

from tests.graph.conftest import Search
from tests.graph.scripted_model import ScriptedModel, faster_each_round

from ridgeline.checkpoints.history.idea_results import idea_results
from ridgeline.graph.models.failures import ModelUnavailable
from ridgeline.graph.models.requests import KernelRequest
from ridgeline.graph.search.ideas.memory import tried_ideas
from ridgeline.tools.errors import ModelError
from ridgeline.tools.records.vocabulary import Origin, ReasonCode, Status


def fails_until(attempts: int, how: str) -> Any:
    """Return a kernel function whose first `attempts` tries of each branch fail."""

    def kernel(request: KernelRequest) -> dict[str, Any]:
        tries = int(request.failed_source.rpartition("try ")[2]) + 1 if request.failed_source else 0
        flaw = f"// {how}\n" if tries < attempts else ""
        return {"source": f"// {request.idea.title} {request.variation}\n{flaw}// speed 2.0\n// try {tries}"}

    return kernel


async def test_failure_goes_back_to_the_model_as_an_interpreted_error(search: Search) -> None:
    search.model = ScriptedModel(kernel=fails_until(1, "fails compile"))
    await search.run(search.context(rounds=1, ideas=1, implementations=1))
    repair = search.model.writes[1]
    assert "expected ';'" in repair.failure
    assert repair.failure_code is ReasonCode.COMPILER_FAILED
    assert "k.cpp:3: error" in repair.failure
    assert "fails compile" in repair.failed_source
    assert [c.id for c in search.archive.candidates(origin=Origin.MODEL)] == ["r1i0v0a0", "r1i0v0a1"]
    evaluation = search.archive.evaluation("r1i0v0a1")
    assert evaluation is not None and evaluation.status is Status.OK


async def test_repairs_end_after_the_number_allowed(search: Search) -> None:
    search.model = ScriptedModel(kernel=fails_until(9, "fails verify"))
    output = await search.run(search.context(rounds=1, ideas=1, implementations=1, repairs=2))
    assert len(search.model.writes) == 3
    assert [len(asked.earlier) for asked in search.model.writes] == [0, 0, 1]
    assert search.model.writes[2].earlier[0].startswith("r1i0v0a0: wrong (")
    result = idea_results(search.archive)[0]
    assert result.best is None
    assert "row 3 differs" in result.failure
    assert output["best_id"] == "seed-naive"


async def test_engine_failure_in_one_branch_leaves_its_siblings_running(search: Search) -> None:
    def kernel(request: KernelRequest) -> dict[str, Any]:
        flaw = "// crashes VerifyTask\n" if request.variation == 0 else ""
        return {"source": f"{flaw}// {request.idea.title}\n// speed 1.5\n"}

    search.model = ScriptedModel(kernel=kernel)
    output = await search.run(search.context(rounds=1))
    assert output["outcome"] == "finished"
    assert search.archive.evaluation("r1i0v0a0") is None
    assert "r1i0v0a0" in {failure.candidate_id for failure in search.archive.engine_failures()}
    assert len(search.model.writes) == 4, "an engine's failure is not the model's to repair"
    assert output["best_speedup"] == 1.5


async def test_failure_before_an_engines_failure_is_what_the_models_are_told(search: Search) -> None:
    def kernel(request: KernelRequest) -> dict[str, Any]:
        how = "crashes VerifyTask" if request.failure else "fails compile"
        return {"source": f"// {how}\n// speed 2.0\n"}

    search.model = ScriptedModel(kernel=kernel)
    await search.run(search.context(rounds=1, ideas=1, implementations=1))
    assert [c.id for c in search.archive.candidates(idea_id="r1i0")] == ["r1i0v0a0", "r1i0v0a1"]
    assert "expected ';'" in tried_ideas(search.archive)[0].failure
    assert "expected ';'" in idea_results(search.archive)[0].failure


async def test_silent_model_fails_its_branch_only(search: Search) -> None:
    def kernel(request: KernelRequest) -> Any:
        return ModelUnavailable("scripted did not answer: 503") if request.variation else faster_each_round(request)

    search.model = ScriptedModel(kernel=kernel)
    output = await search.run(search.context(rounds=1))
    assert output["certified"]
    failed = search.archive.evaluation("r1i0v1a0")
    assert failed is not None and "did not answer" in failed.reason
    assert failed.reason_code is ReasonCode.MODEL_FAILED


async def test_unreadable_kernel_is_asked_for_once_more(search: Search) -> None:
    def kernel(request: KernelRequest) -> Any:
        return "// speed 2" if not request.failure else "```cpp\n// speed 2.0\n```"

    search.model = ScriptedModel(kernel=kernel)
    output = await search.run(search.context(rounds=1, ideas=1, implementations=1))
    assert len(search.model.writes) == 2
    assert output["best_speedup"] == 2.0


async def test_model_that_refuses_to_write_costs_its_branches_only(search: Search) -> None:
    silent = ScriptedModel("silent", kernel=lambda r: ModelError("the key was refused"))
    output = await search.run(search.context(silent, search.model, rounds=1, ideas=2, implementations=2))
    assert output["certified"]
    assert {c.model for c in search.archive.candidates(origin=Origin.MODEL) if c.source} == {"scripted"}
    assert len(silent.writes) > 0
