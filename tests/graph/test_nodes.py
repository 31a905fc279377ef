"""What the nodes do with failures, duplicates, budgets and stops."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from langgraph.graph import START, StateGraph

from ridgeline.checkpoints.bank import Bank
from ridgeline.graph.elites import read_standings
from ridgeline.graph.history import model_outcomes, tried_ideas
from ridgeline.graph.measuring import measure_again, run_step
from ridgeline.graph.pool import ModelPool
from ridgeline.graph.requests import IdeationRequest, KernelRequest
from ridgeline.graph.retry import ModelUnavailable
from ridgeline.problems.spec import Budget
from ridgeline.tools.errors import EngineError, ModelError
from ridgeline.tools.records import DeviceKind, Origin, Purpose, ReasonCode, Status

from .conftest import Search
from .memory_engine import MemoryEngine
from .scripted_model import ScriptedModel, distinct_ideas, faster_each_round


def events(search: Search, name: str) -> list[dict[str, Any]]:
    return [event for event in search.events if event["event"] == name]


async def in_a_node(function: Any, *given: Any) -> Any:
    """Return what `function` returns inside a graph's node: the tool node works nowhere else."""
    found = []

    async def node(_: Any) -> dict[str, Any]:
        found.append(await function(*given))
        return {}

    graph = StateGraph(dict)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    await graph.compile().ainvoke({})
    return found[0]


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
    assert "k.cpp:3: error" in repair.failure
    assert "fails compile" in repair.failed_source
    assert [c.id for c in search.archive.candidates(origin=Origin.MODEL)] == ["r1i0v0a0", "r1i0v0a1"]
    evaluation = search.archive.evaluation("r1i0v0a1")
    assert evaluation is not None and evaluation.status is Status.OK


@pytest.mark.parametrize(("keyless", "is_profiled"), [("offline", True), ("scripted", False)])
async def test_elites_are_profiled_only_for_models_that_read_it(
    search: Search, monkeypatch: pytest.MonkeyPatch, keyless: str, is_profiled: bool
) -> None:
    monkeypatch.setattr("ridgeline.graph.profiling.OFFLINE", keyless)
    await search.run(search.context(rounds=2, ideas=1, implementations=1))
    standing = read_standings(search.archive)[-1]
    assert (search.archive.find("profiles", standing.evaluation.key) is not None) == is_profiled


async def test_repairs_end_after_the_number_allowed(search: Search) -> None:
    search.model = ScriptedModel(kernel=fails_until(9, "fails verify"))
    output = await search.run(search.context(rounds=1, ideas=1, implementations=1, repairs=2))
    assert len(search.model.writes) == 3
    tried = search.archive.tried_ideas()
    assert tried[0]["best_speedup"] is None
    assert "row 3 differs" in tried[0]["failure"]
    assert output["best_id"] == "seed-naive"


async def test_engine_failure_in_one_branch_leaves_its_siblings_running(search: Search) -> None:
    def kernel(request: KernelRequest) -> dict[str, Any]:
        flaw = "// crashes VerifyTask\n" if request.variation == 0 else ""
        return {"source": f"{flaw}// {request.idea.title}\n// speed 1.5\n"}

    search.model = ScriptedModel(kernel=kernel)
    output = await search.run(search.context(rounds=1))
    assert output["outcome"] == "finished"
    failed = search.archive.evaluation("r1i0v0a0")
    assert failed is not None and failed.reason_code is ReasonCode.ENGINE_FAILED
    assert len(search.model.writes) == 4, "an engine's failure is not the model's to repair"
    assert output["best_speedup"] == 1.5


class FailsOnce(MemoryEngine):
    """An engine that breaks at the first verification of each kernel."""

    def _verify(self, task: Any) -> Any:
        if self.counts[f"VerifyTask:{task.candidate.id}"] == 1:
            raise EngineError("the judge died")
        return super()._verify(task)


async def test_engine_failure_is_no_verdict_on_an_idea_and_is_measured_again_in_the_next_session(
    search: Search,
) -> None:
    search.engine = FailsOnce()
    await search.run(search.context(rounds=1, ideas=2, implementations=1))
    assert tried_ideas(search.archive) == ()
    assert model_outcomes(search.archive, 2) == []
    await in_a_node(measure_again, search.context())
    evaluation = search.archive.evaluation("r1i0v0a0")
    assert evaluation is not None and evaluation.status is Status.OK
    assert [idea.id for idea in tried_ideas(search.archive)] == ["r1i0", "r1i1"]
    assert len(model_outcomes(search.archive, 2)) == 2
    assert search.archive.ledger_totals()["cpu_s"] >= evaluation.total_s * 3


async def test_engine_that_fails_is_not_tried_again_in_the_same_session(search: Search) -> None:
    search.model = ScriptedModel(kernel=lambda r: {"source": "// crashes VerifyTask\n// speed 2.0\n"})
    await search.run(search.context(rounds=2, ideas=1, implementations=1))
    assert search.engine.counts["VerifyTask:r1i0v0a0"] == 1


async def test_failure_before_an_engines_failure_is_what_the_models_are_told(search: Search) -> None:
    def kernel(request: KernelRequest) -> dict[str, Any]:
        how = "crashes VerifyTask" if request.failure else "fails compile"
        return {"source": f"// {how}\n// speed 2.0\n"}

    search.model = ScriptedModel(kernel=kernel)
    await search.run(search.context(rounds=1, ideas=1, implementations=1))
    assert [c.id for c in search.archive.candidates(idea_id="r1i0")] == ["r1i0v0a0", "r1i0v0a1"]
    assert "expected ';'" in tried_ideas(search.archive)[0].failure


async def test_build_is_the_one_of_the_step_at_hand(search: Search) -> None:
    """Between two steps the compiler changes, so that the second one makes another build."""
    context = search.context(rounds=1, ideas=1, implementations=1)
    await search.run(context)
    candidate = search.archive.candidate("seed-naive")
    evaluations = []
    for compiler in ("old", "new"):

        class Engine(MemoryEngine):
            def _compile(self, task: Any, compiler: str = compiler) -> Any:
                return dataclasses.replace(super()._compile(task), key=f"{compiler}-{task.candidate.id}")

        search.engine = Engine()
        context = search.context()
        step = "compile" if compiler == "old" else "benchmark"
        evaluations.append(await in_a_node(run_step, context, step, candidate.id, Purpose.EVALUATE))
    assert evaluations[0] is None
    assert evaluations[1] is not None and evaluations[1].build is not None
    assert evaluations[1].build.key == "new-seed-naive"


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


async def test_malformed_ideas_get_one_repair_request_and_then_the_search_stalls(search: Search) -> None:
    search.model = ScriptedModel(ideas=lambda request: "I have many ideas!")
    output = await search.run(search.context())
    assert (output["outcome"], output["round"]) == ("no_gain" if not output["certified"] else "stalled", 0)
    assert len(search.model.proposals) == 2
    assert "no JSON object" in search.model.proposals[1].unreadable


async def test_duplicates_are_refused_and_asked_for_once_more(search: Search) -> None:
    def ideas(request: IdeationRequest) -> dict[str, Any]:
        fresh = distinct_ideas(request)
        if request.round == 2 and not request.refused:
            first = request.tried[0]
            fresh["ideas"][0] |= {"title": first.title, "mechanism": first.mechanism, "parent_id": first.parent_id}
        return fresh

    search.model = ScriptedModel(ideas=ideas)
    await search.run(search.context(rounds=2, ideas=2, implementations=1))
    assert [len(p.refused) for p in search.model.proposals] == [0, 0, 1]
    assert len(search.archive.ideas(2)) == 2


async def test_duplicate_under_an_invented_parent_is_refused(search: Search) -> None:
    def ideas(request: IdeationRequest) -> dict[str, Any]:
        fresh = distinct_ideas(request)["ideas"]
        if request.refused:
            return {"ideas": [fresh[0]]}
        words = {"mechanism": "something else entirely is told of it here", "parent_id": "an invented one"}
        return {"ideas": [fresh[1] | {"parent_id": None}, fresh[1] | words]}

    search.model = ScriptedModel(ideas=ideas)
    await search.run(search.context(rounds=1, ideas=2, implementations=1))
    assert [len(p.refused) for p in search.model.proposals] == [0, 1]
    assert len({idea.title for idea in search.archive.ideas(1)}) == 2


@pytest.mark.parametrize("error", [ModelUnavailable("no answer: 503"), ModelError("the key was refused")])
async def test_unanswered_request_for_more_ideas_leaves_the_accepted_ones(search: Search, error: Exception) -> None:
    def ideas(request: IdeationRequest) -> Any:
        fresh = distinct_ideas(request)["ideas"]
        return error if request.refused else {"ideas": [fresh[0], fresh[0]]}

    search.model = ScriptedModel(ideas=ideas)
    output = await search.run(search.context(rounds=1, ideas=2, implementations=1))
    assert (output["outcome"], len(search.archive.ideas(1))) == ("finished", 1)
    assert str(error) in " ".join(event["message"] for event in events(search, "warning"))


def new_ideas(request: IdeationRequest) -> dict[str, Any]:
    """Return ideas that share no word with those of another request of the round."""
    return distinct_ideas(dataclasses.replace(request, round=request.rng_seed % 100_003))


async def test_model_that_does_not_cover_the_problem_is_dropped_and_the_others_take_its_share(search: Search) -> None:
    narrow = ScriptedModel("narrow", ideas=lambda r: ModelError("toy: not covered"), kernel=lambda r: ModelError("no"))
    search.model = ScriptedModel(ideas=new_ideas)
    await search.run(search.context(narrow, search.model, rounds=2, ideas=3, implementations=2))
    assert [len(search.archive.ideas(n)) for n in (1, 2)] == [3, 3]
    assert {idea.model for idea in search.archive.ideas()} == {"scripted"}
    assert len(narrow.proposals) == 1 and not narrow.writes
    assert "goes on without it" in events(search, "warning")[0]["message"]


async def test_search_whose_models_all_refuse_ends_with_the_refusal(search: Search) -> None:
    refusing = [ScriptedModel(name, ideas=lambda r: ModelError("not covered")) for name in ("a", "b")]
    with pytest.raises(ModelError, match="not covered"):
        await search.run(search.context(*refusing))


async def test_model_that_refuses_to_write_costs_its_branches_only(search: Search) -> None:
    silent = ScriptedModel("silent", kernel=lambda r: ModelError("the key was refused"))
    output = await search.run(search.context(silent, search.model, rounds=1, ideas=2, implementations=2))
    assert output["certified"]
    assert {c.model for c in search.archive.candidates(origin=Origin.MODEL) if c.source} == {"scripted"}
    assert len(silent.writes) > 0


async def test_ideation_sees_results_failures_and_diagnosed_elites(search: Search) -> None:
    def kernel(request: KernelRequest) -> dict[str, Any]:
        broken = request.idea.title.startswith("golf")
        return {"source": f"// {request.idea.title}{' fails verify' if broken else ''}\n// speed 1.7\n"}

    search.model = ScriptedModel(kernel=kernel)
    await search.run(search.context(rounds=2, implementations=1, repairs=0))
    second = search.model.proposals[1]
    by_id = {idea.id: idea for idea in second.tried}
    assert by_id["r1i0"].best_speedup == 1.7
    assert by_id["r1i1"].best_speedup is None and "row 3 differs" in by_id["r1i1"].failure
    assert second.elites[0].candidate_id == "r1i0v0a0"
    assert "memory-bound" in second.elites[0].diagnosis


async def test_user_ideas_come_first_and_once(search: Search) -> None:
    context = search.context(rounds=2, implementations=1)
    context.problem = context.problem.model_copy(update={"ideas": ["keep the row in registers"]})
    await search.run(context)
    models = [(idea.id, idea.model) for idea in search.archive.ideas()]
    assert models == [("r1i0", "user"), ("r1i1", "scripted"), ("r2i0", "scripted"), ("r2i1", "scripted")]
    assert search.archive.idea("r1i0").parent_id == "seed-naive"


async def test_token_budget_stops_the_search(search: Search) -> None:
    output = await search.run(search.context(rounds=9, budget=Budget(tokens=100)))
    assert output["outcome"] == "budget"
    assert output["round"] < 9


async def test_kernel_within_the_margin_of_the_floor_ends_the_search(search: Search) -> None:
    search.engine = MemoryEngine(floor_ms=7.0)
    output = await search.run(search.context(rounds=9))
    assert output["outcome"] == "at_floor"
    assert output["round"] < 3


async def test_nothing_is_asked_when_pytorch_is_at_the_floor(search: Search) -> None:
    search.engine = MemoryEngine(floor_ms=7.9)
    output = await search.run(search.context())
    assert output["round"] == 0
    assert not search.model.proposals
    assert events(search, "stopped")[0]["outcome"] == "at_floor"


async def test_rounds_without_gain_stall_the_search(search: Search) -> None:
    search.model = ScriptedModel(kernel=lambda r: {"source": f"// {r.idea.title} {r.variation}\n// speed 1.21\n"})
    output = await search.run(search.context(rounds=9, stall_rounds=2))
    assert (output["outcome"], output["round"]) == ("stalled", 2)


async def test_search_without_a_faster_kernel_ends_without_gain(search: Search) -> None:
    context = search.context(rounds=1)
    (context.problem.path.parent / "seeds" / "naive.cpp").write_text("// speed 0.7\n")
    search.model = ScriptedModel(kernel=lambda r: {"source": f"// {r.idea.title} {r.variation}\n// speed 0.9\n"})
    output = await search.run(context)
    assert output["outcome"] == "no_gain"
    assert not output["certified"]
    assert search.archive.run()["state"] == "no_gain"


async def test_search_that_its_budget_ended_says_so_without_a_gain_too(search: Search) -> None:
    context = search.context(rounds=9, budget=Budget(tokens=100))
    (context.problem.path.parent / "seeds" / "naive.cpp").write_text("// speed 0.7\n")
    search.model = ScriptedModel(kernel=lambda r: {"source": f"// {r.idea.title} {r.variation}\n// speed 0.9\n"})
    context.models = ModelPool([search.model])
    output = await search.run(context)
    assert (output["outcome"], output["certified"]) == ("budget", False)
    assert search.archive.run()["state"] == "budget"


async def test_winner_that_fails_its_certificate_gives_way_to_the_next_elite(search: Search) -> None:
    def kernel(request: KernelRequest) -> dict[str, Any]:
        first = request.variation == 0 and request.idea.title.startswith("foxtrot")
        return {"source": "// fails sanitizer\n// speed 3\n" if first else f"// {request.idea.title}\n// speed 2.0\n"}

    search.model = ScriptedModel(kernel=kernel)
    output = await search.run(search.context(rounds=1))
    assert output["certified"] and output["best_speedup"] == 2.0
    certificate = search.archive.certificate()
    assert certificate is not None
    assert certificate["failed_before"][0]["reason"].startswith("sanitizers")
    assert len(certificate["timings"]) == 3
    assert certificate["versus_seed"]["ratio"] < 1


async def test_search_whose_elites_all_fail_their_certificate_has_no_best_kernel(search: Search) -> None:
    context = search.context(rounds=1)
    (context.problem.path.parent / "seeds" / "naive.cpp").write_text("// speed 0.7\n")
    search.model = ScriptedModel(kernel=lambda r: {"source": f"// {r.idea.title}\n// fails sanitizer\n// speed 2\n"})
    context.models = ModelPool([search.model])
    output = await search.run(context)
    assert (output["outcome"], output["best_id"]) == ("no_gain", None)
    certificate = search.archive.certificate()
    assert certificate is not None and not certificate["passed"]


async def test_engine_that_fails_in_the_comparison_costs_only_the_comparison(search: Search) -> None:
    class Engine(MemoryEngine):
        def _compare(self, task: Any) -> Any:
            raise EngineError("the seed's runner died")

    search.engine = Engine()
    output = await search.run(search.context(rounds=1))
    assert output["certified"]
    certificate = search.archive.certificate()
    assert certificate is not None and certificate["versus_seed"] is None
    assert "runner died" in events(search, "warning")[-1]["message"]


async def test_gains_beyond_three_times_the_best_baseline_are_audited(search: Search) -> None:
    search.model = ScriptedModel(kernel=lambda r: {"source": f"// {r.idea.title} {r.variation}\n// speed 4.5\n"})
    output = await search.run(search.context(rounds=1))
    evaluation = search.archive.evaluation(output["best_id"], Purpose.CERTIFY)
    assert evaluation is not None and evaluation.timing is not None
    assert evaluation.timing.labels == ("audited",)
    certificate = search.archive.certificate()
    assert certificate is not None and certificate["audit"]["passed"]
    assert len(certificate["audit"]["timings"]) == 1
    # the search's own timing, three re-timings, one of the audit; the search's, the certificate's, the sanitizer's and
    # the audit's verification
    assert search.engine.counts[f"BenchmarkTask:{output['best_id']}"] == 5
    assert search.engine.counts[f"VerifyTask:{output['best_id']}"] == 4


async def test_ordinary_gain_is_not_audited(search: Search) -> None:
    await search.run(search.context(rounds=1))
    certificate = search.archive.certificate()
    assert certificate is not None and certificate["passed"]
    assert certificate["audit"] is None and certificate["labels"] == []


class Slackens(MemoryEngine):
    """An engine in which kernels lose half their speed from a candidate's fifth timing on: the audit's."""

    def _benchmark(self, task: Any) -> Any:
        timing = super()._benchmark(task)
        if self.counts[f"BenchmarkTask:{task.candidate.id}"] < 5:
            return timing
        low, high = timing.speedup_ci95
        return dataclasses.replace(timing, speedup=timing.speedup / 2, speedup_ci95=(low / 2, high / 2))


async def test_gain_that_its_audit_does_not_confirm_is_not_certified(search: Search) -> None:
    search.engine = Slackens()
    search.model = ScriptedModel(kernel=lambda r: {"source": "// speed 4.5\n"})
    output = await search.run(search.context(rounds=1, ideas=1, implementations=1))
    certificate = search.archive.certificate()
    assert certificate is not None and output["best_id"] == "seed-naive"
    assert certificate["failed_before"][0]["reason"].startswith("audit: one timing gives")
    evaluation = search.archive.evaluation("r1i0v0a0", Purpose.CERTIFY)
    assert evaluation is not None and evaluation.timing is not None
    assert evaluation.reason_code is ReasonCode.TIMINGS_SPREAD
    assert "audited" not in evaluation.timing.labels


async def test_gain_beyond_ten_times_is_quarantined_and_stays_out_of_the_bank(search: Search, tmp_path: Any) -> None:
    context = search.context(rounds=1, ideas=1, implementations=1)
    (context.problem.path.parent / "seeds" / "naive.cpp").write_text("// speed 0.7\n")
    context.engine = search.engine = Slackens()
    search.model = ScriptedModel(kernel=lambda r: {"source": "// speed 12\n"})
    context.models = ModelPool([search.model])
    with Bank.open(tmp_path / "bank.sqlite") as bank:
        context.bank = bank
        output = await search.run(context)
        assert bank.seeds("rowwise", "test-1", 5) == []
    certificate = search.archive.certificate()
    assert certificate is not None and not output["certified"]
    assert (certificate["passed"], certificate["quarantined"]) == (False, True)
    assert certificate["reason"].startswith("needs a second machine or a longer protocol")
    assert certificate["labels"] == ["quarantined"]


async def test_longer_protocol_that_agrees_lifts_the_quarantine(search: Search) -> None:
    search.model = ScriptedModel(kernel=lambda r: {"source": f"// {r.idea.title} {r.variation}\n// speed 12\n"})
    output = await search.run(search.context(rounds=1, ideas=1, implementations=1))
    certificate = search.archive.certificate()
    assert certificate is not None and output["certified"]
    assert (certificate["quarantined"], certificate["labels"]) == (False, ["audited"])
    assert len(certificate["audit"]["timings"]) == 2


class NoSanitizers(MemoryEngine):
    """An engine of an interface that has no sanitizer build."""

    def _compile(self, task: Any) -> Any:
        build = super()._compile(task)
        if not task.sanitize:
            return build
        code, reason = ReasonCode.INTERFACE_UNSUPPORTED, "an extension of torch has no sanitizer build"
        return dataclasses.replace(build, status=Status.REFUSED, reason_code=code, reason=reason)


async def test_sanitizer_step_that_an_interface_does_not_have_is_skipped_and_said(search: Search) -> None:
    search.engine = NoSanitizers()
    output = await search.run(search.context(rounds=1))
    assert output["certified"]
    certificate = search.archive.certificate()
    assert certificate is not None and certificate["sanitizer"]["verdict"] is None
    assert certificate["sanitizer"]["skipped"] == "an extension of torch has no sanitizer build"


async def test_gpu_winner_is_sanitized_in_its_own_build(search: Search) -> None:
    search.engine = MemoryEngine()
    context = search.context(rounds=1)
    device = dataclasses.replace(context.target.device, kind=DeviceKind.CUDA, arch="sm_90a", uuid="GPU-1")
    context.target = dataclasses.replace(context.target, device=device)
    assert (await search.run(context))["certified"]
    certificate = search.archive.certificate()
    assert certificate is not None and certificate["sanitizer"]["build"] == "compute-sanitizer"
    assert certificate["sanitizer"]["verdict"]["status"] == "ok"


async def test_seed_that_does_not_build_again_costs_only_the_comparison(search: Search) -> None:
    class Engine(MemoryEngine):
        def _compile(self, task: Any) -> Any:
            build = super()._compile(task)
            if self.counts["CompileTask:seed-naive"] == 1:
                return build
            code = ReasonCode.COMPILER_TIMEOUT
            return dataclasses.replace(build, status=Status.COMPILE_ERROR, reason_code=code, reason="too slow")

    search.engine = Engine()
    output = await search.run(search.context(rounds=1))
    assert output["certified"]
    assert "seed-naive, which does not build: too slow" in events(search, "warning")[-1]["message"]
    certificate = search.archive.certificate()
    assert certificate is not None and certificate["versus_seed"] is None


async def test_interval_that_does_not_exclude_one_is_no_gain(search: Search) -> None:
    search.model = ScriptedModel(kernel=lambda r: {"source": f"// {r.idea.title}\n// speed 1.005\n"})
    context = search.context(rounds=1)
    (context.problem.path.parent / "seeds" / "naive.cpp").write_text("// speed 0.7\n")
    output = await search.run(context)
    assert output["outcome"] == "no_gain"
    evaluation = search.archive.evaluation("r1i0v0a0", Purpose.CERTIFY)
    assert evaluation is not None and evaluation.reason_code is ReasonCode.NO_GAIN


async def test_search_that_had_nothing_to_gain_over_pytorch_stays_at_the_floor(search: Search) -> None:
    search.engine = MemoryEngine(floor_ms=7.9)
    context = search.context()
    (context.problem.path.parent / "seeds" / "naive.cpp").write_text("// speed 0.9\n")
    output = await search.run(context)
    assert (output["outcome"], output["certified"]) == ("at_floor", False)
    assert search.archive.run()["state"] == "at_floor"


async def test_elite_that_fails_its_certificate_does_not_go_to_the_bank(search: Search, tmp_path: Any) -> None:
    def kernel(request: KernelRequest) -> dict[str, Any]:
        first = request.idea.title.startswith("foxtrot")
        return {"source": "// fails sanitizer\n// speed 3\n" if first else f"// {request.idea.title}\n// speed 2.0\n"}

    search.model = ScriptedModel(kernel=kernel)
    context = search.context(rounds=1)
    (context.problem.path.parent / "seeds" / "naive.cpp").write_text("// speed 0.7\n")
    with Bank.open(tmp_path / "bank.sqlite") as bank:
        context.bank = bank
        output = await search.run(context)
        sources = [seed.source for seed in bank.seeds("rowwise", "test-1", 9)]
    assert output["certified"]
    assert len(sources) == 1
    assert "speed 2.0" in sources[0]


async def test_revision_is_one_lineage_without_idea_memory_at_an_equal_budget(search: Search) -> None:
    await search.run(search.context(rounds=2, ideas=2, implementations=2, strategy="revision"))
    assert len(search.model.writes) == 8
    assert all(not p.tried and len(p.elites) <= 1 and p.count == 1 for p in search.model.proposals)


async def test_elites_go_to_the_bank_and_seed_the_next_search(search: Search, tmp_path: Any) -> None:
    with Bank.open(tmp_path / "bank.sqlite") as bank:
        context = search.context(rounds=1)
        context.bank = bank
        await search.run(context)
        seeds = bank.seeds("rowwise", "test-1", 5)
    assert seeds
    assert all(seed.origin is Origin.BANK for seed in seeds)


async def test_bank_is_read_again_when_the_search_was_killed_before_all_its_kernels_were_stored(
    search: Search, tmp_path: Any
) -> None:
    with Bank.open(tmp_path / "bank.sqlite") as bank:
        context = search.context(rounds=1, ideas=3)
        context.bank = bank
        await search.run(context)
        seeds = bank.seeds("rowwise", "test-1", 2)
        search.archive.save_run({"bank_read": False})
        search.archive.add_candidate(dataclasses.replace(seeds[0], round=0))
        again = search.context(rounds=1)
        again.bank = bank
        await search.run(again)
    assert {seed.id for seed in seeds} <= {c.id for c in search.archive.candidates(origin=Origin.BANK)}
    assert search.archive.run()["bank_read"] is True


async def test_models_share_the_work_by_a_seeded_bandit(search: Search) -> None:
    good, bad = ScriptedModel("good"), ScriptedModel("bad", kernel=lambda r: {"source": f"// {r} fails verify"})
    await search.run(search.context(good, bad, rounds=4, ideas=3, implementations=2, repairs=0))
    assert good.proposals and bad.proposals
    assert len(good.writes) > len(bad.writes) > 0


TUNED = """// {title}
constexpr int BLOCK = 64;  // tune: BLOCK = 32 | 64 | 128 | 256
#define UNROLL 1  // tune: UNROLL = 1 | 2 | 4
// speed 1.5
// factor BLOCK 128 1.2
// factor UNROLL 4 1.1
"""


async def test_tune_finds_the_declared_values_that_are_fastest_without_a_token(search: Search) -> None:
    search.model = ScriptedModel(kernel=lambda r: {"source": TUNED.format(title=r.idea.title)})
    output = await search.run(search.context(rounds=1, ideas=1, implementations=1, tune_trials=11))
    best = search.archive.candidate(output["best_id"])
    assert best.tunables == {"BLOCK": "128", "UNROLL": "4"}
    assert "constexpr int BLOCK = 128;  // tune: BLOCK = 32" in best.source
    assert "#define UNROLL 4  // tune" in best.source
    assert best.idea_id == "r1i0"
    tuned = search.archive.candidates(origin=Origin.TUNE)
    assert len({tuple(c.tunables.items()) for c in tuned}) == len(tuned) <= 11
    assert len(search.model.writes) == 1


async def test_tune_keeps_to_its_trials_over_all_elites(search: Search) -> None:
    search.model = ScriptedModel(kernel=lambda r: {"source": TUNED.format(title=r.idea.title)})
    await search.run(search.context(rounds=2, ideas=2, implementations=1, tune_trials=6))
    for round_ in (1, 2):
        assert 0 < len(search.archive.candidates(round=round_, origin=Origin.TUNE)) <= 6


async def test_seed_named_like_a_tuned_kernel_is_tuned_as_any_other(search: Search) -> None:
    context = search.context(rounds=1, ideas=1, implementations=1, tune_trials=8)
    seeds = context.problem.path.parent / "seeds"
    (seeds / "float4.cpp").write_text(TUNED.format(title="float4"))
    (seeds / "float4t0.cpp").write_text("// speed 0.6\n")
    context.problem = context.problem.model_copy(update={"seeds": ["seeds/*.cpp"]})
    output = await search.run(context)
    best = search.archive.candidate(output["best_id"])
    assert (best.parent_id, best.origin) == ("seed-float4", Origin.TUNE)
    assert search.archive.candidate("seed-float4t0").origin is Origin.SEED
