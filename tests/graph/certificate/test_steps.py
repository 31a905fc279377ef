"""The steps of a certificate that look beyond the kernel itself, on the engine in memory."""

from __future__ import annotations

import dataclasses
from typing import Any

import jsonschema
import pytest
from tests.graph.conftest import Search
from tests.graph.memory_engine import MemoryEngine
from tests.graph.scripted_model import ScriptedModel
from tests.graph.search.judging.test_judging import in_a_node

from ridgeline.checkpoints.engine_failures import EngineFailure
from ridgeline.checkpoints.report.certificate_rows import certificate_rows
from ridgeline.checkpoints.result import build_result, read_schema
from ridgeline.checkpoints.stored_certificate import StoredCertificate
from ridgeline.graph.certificate.audit import UNCONFIRMED
from ridgeline.graph.nodes.certify import certify
from ridgeline.tools.errors import EngineError
from ridgeline.tools.records.finding import Finding
from ridgeline.tools.records.results import Build, OwnWork
from ridgeline.tools.records.vocabulary import DeviceKind, Label, Purpose, ReasonCode, Status


async def certificate_of(search: Search, engine: MemoryEngine | None = None, **settings: Any) -> dict[str, Any]:
    search.engine = engine or search.engine
    await search.run(search.context(**({"rounds": 1, "ideas": 1, "implementations": 1} | settings)))
    certificate = search.archive.certificate_json()
    assert certificate is not None
    return certificate


async def test_certificate_keeps_to_its_schema_and_names_what_it_rests_on(search: Search) -> None:
    certificate = await certificate_of(search)
    jsonschema.validate(certificate, read_schema("certificate"), cls=jsonschema.Draft202012Validator)
    assert {len(sha256) for sha256 in certificate["hashes"].values()} == {64}
    assert certificate["versions"]["torch"] == "2.13"
    assert certificate["device"]["name"] == "Test CPU"
    steps = {"build", "verify", "sanitize", "time", "baselines", "audit", "compare", "own_work", "other_shapes"}
    assert set(certificate["seconds"]) == steps


async def test_certificate_made_again_measures_nothing_again(search: Search) -> None:
    await certificate_of(search)
    before = search.engine.counts.copy()
    search.archive.save_certificate({"schema_version": 1})
    await in_a_node(certify, {"outcome": "finished"}, search.context(rounds=1))
    certificate = search.archive.certificate_json()
    assert certificate is not None and certificate["passed"] and certificate["own_work"] is not None
    asked_again = search.engine.counts - before
    assert asked_again and all(name.startswith("CompileTask") or name == "DescribeTask" for name in asked_again)


async def test_certificate_that_fails_at_its_first_step_keeps_to_the_schema_too(search: Search) -> None:
    search.model = ScriptedModel(kernel=lambda r: {"source": "// fails sanitizer\n// speed 2\n"})
    context = search.context(rounds=1, ideas=1, implementations=1)
    (context.problem.path.parent / "seeds" / "naive.cpp").write_text("// speed 0.7\n")
    await search.run(context)
    certificate = search.archive.certificate_json()
    assert certificate is not None and not certificate["passed"]
    jsonschema.validate(certificate, read_schema("certificate"), cls=jsonschema.Draft202012Validator)
    assert certificate["own_work"] is None


class Drifted(MemoryEngine):
    """A machine on which torch.compile takes half as long as it did when the search began."""

    def _nextbaseline(self, task: Any) -> Any:
        measured = super()._nextbaseline(task)
        if task.purpose is not Purpose.CERTIFY:
            return measured
        faster = [dataclasses.replace(b, median_ms=4.0) if b.name == "compile" else b for b in measured.entries]
        return dataclasses.replace(measured, entries=tuple(faster))


async def test_gain_over_the_best_baseline_is_over_its_time_as_measured_again(search: Search) -> None:
    search.model = ScriptedModel(kernel=lambda r: {"source": "// speed 3\n"})
    certificate = await certificate_of(search, Drifted())
    assert {b["name"]: b["median_ms"] for b in certificate["baselines"]} == {"eager": 10.0, "compile": 4.0}
    assert certificate["speedup_vs_best"] == 3.0 * 4.0 / 10.0


async def test_baselines_are_measured_again_once_for_all_elites(search: Search) -> None:
    def kernel(request: Any) -> dict[str, str]:
        return {"source": f"// {request.idea.title}\n// speed 12\n" if request.variation else "// speed 2\n"}

    class Unconfirmed(MemoryEngine):
        def _benchmark(self, task: Any) -> Any:
            timing = super()._benchmark(task)
            if self.counts[f"BenchmarkTask:{task.candidate.id}"] < 5:
                return timing
            return dataclasses.replace(timing, speedup=1.5, speedup_ci95=(1.4, 1.6))

    search.model = ScriptedModel(kernel=kernel)
    certificate = await certificate_of(search, Unconfirmed(), implementations=2)
    assert certificate["passed"]
    assert certificate["failed_before"][0]["reason"].startswith(UNCONFIRMED)
    counts = search.engine.counts
    assert (counts["BaselineTask"], counts["NextBaselineTask"]) == (2, 2)  # eager and compile: the search's, then again


async def test_time_in_a_library_s_kernels_is_labelled_and_named(search: Search) -> None:
    class Borrowed(MemoryEngine):
        def _profile(self, task: Any) -> Any:
            work = OwnWork(share=0.1, how="a profile", kernels_ns={"nvjet_tst": 9e4}, others=("nvjet_tst",))
            return dataclasses.replace(super()._profile(task), own_work=work)

    certificate = await certificate_of(search, Borrowed())
    assert certificate["passed"] and certificate["labels"] == ["vendor_library"]
    assert certificate["own_work"]["others"] == ["nvjet_tst"]


async def test_seed_that_fails_where_it_is_compared_costs_only_the_comparison(search: Search) -> None:
    search.engine, search.model = MemoryEngine(), ScriptedModel(kernel=lambda r: {"source": "// speed 2\n"})
    context = search.context(rounds=1, ideas=1, implementations=1)
    (context.problem.path.parent / "seeds" / "naive.cpp").write_text("// fails compare\n// speed 0.7\n")
    await search.run(context)
    certificate = search.archive.certificate_json()
    assert certificate is not None and certificate["passed"] and certificate["versus_seed"] is None
    assert any("seed-naive failed: killed by SIGSEGV" in e.get("message", "") for e in search.events)


@pytest.mark.parametrize(
    ("seed", "kernel", "said"),
    [
        ("", "// speed 2\n", "there was no seed kernel"),
        ("// fails verify\n", "// speed 2\n", "no other seed kernel was right"),
        ("// speed 3\n", "// fails verify\n", "there is no other seed kernel"),
    ],
)
async def test_a_winner_without_a_seed_to_compare_it_with_says_why(
    search: Search, seed: str, kernel: str, said: str
) -> None:
    search.model = ScriptedModel(kernel=lambda r: {"source": kernel})
    context = search.context(rounds=1, ideas=1, implementations=1)
    if seed:
        (context.problem.path.parent / "seeds" / "naive.cpp").write_text(seed)
    else:
        context.problem = context.problem.model_copy(update={"seeds": []})
    await search.run(context)
    told = [event["detail"] for event in search.events_named("certify") if event["step"] == "compare"]
    assert told[-1] == said


async def test_profile_that_fails_costs_only_itself(search: Search) -> None:
    class NoProfile(MemoryEngine):
        def _profile(self, task: Any) -> Any:
            raise EngineError("ncu hung")

    certificate = await certificate_of(search, NoProfile())
    assert certificate["passed"] and certificate["own_work"] is None
    assert any("certified without own_work: ncu hung" in e.get("message", "") for e in search.events)
    assert certificate["not_done"] == {"own_work": "ncu hung"}
    jsonschema.validate(certificate, read_schema("certificate"), cls=jsonschema.Draft202012Validator)
    told = [(e["passed"], e["detail"]) for e in search.events_named("certify") if e["step"] == "own_work"]
    assert told == [(None, ""), (None, "ncu hung")]
    assert ("not done: own work", "ncu hung") in certificate_rows(StoredCertificate.from_json(certificate))


class LosesItsCompiler(MemoryEngine):
    """An engine that builds a model's kernel once: `again` answers or raises when it is asked for it again."""

    def __init__(self, again: Any) -> None:
        super().__init__()
        self.again = again

    def _compile(self, task: Any) -> Any:
        is_again = task.candidate.id == "r1i0v0a0" and self.counts["CompileTask:r1i0v0a0"] > 1
        return self.again() if is_again else super()._compile(task)


async def test_certificate_names_the_build_that_its_steps_measured(search: Search) -> None:
    def built() -> Build:
        return Build(key="made again", status=Status.OK, library_path="/nowhere.so", flags=("-O3",), toolchain="g++ 14")

    certificate = await certificate_of(search, LosesItsCompiler(built))
    assert certificate["candidate"]["id"] == "r1i0v0a0"
    assert certificate["build"] == {"key": "made again", "flags": ["-O3"], "toolchain": "g++ 14"}


async def test_kernel_that_does_not_build_again_is_not_certified(search: Search) -> None:
    def refused() -> Build:
        return Build.failed(Finding(code=ReasonCode.COMPILER_FAILED, reason="no such instruction"), key="another")

    certificate = await certificate_of(search, LosesItsCompiler(refused))
    assert certificate["failed_before"] == [
        {"candidate_id": "r1i0v0a0", "reason": "does not build again: no such instruction"}
    ]
    evaluation = search.archive.evaluation("r1i0v0a0", Purpose.CERTIFY)
    assert evaluation is not None and evaluation.status is Status.COMPILE_ERROR


async def test_engine_that_fails_to_build_again_leaves_the_certificate_to_another_session(search: Search) -> None:
    def broken() -> Build:
        raise EngineError("the disk is full")

    certificate = await certificate_of(search, LosesItsCompiler(broken))
    reason = "build: the engine failed, the kernel may be sound: the disk is full"
    assert certificate["failed_before"] == [{"candidate_id": "r1i0v0a0", "reason": reason}]
    assert search.archive.engine_failures() == [
        EngineFailure(candidate_id="r1i0v0a0", purpose=Purpose.CERTIFY, reason=reason)
    ]
    assert search.archive.evaluation("r1i0v0a0", Purpose.CERTIFY) is None
    told = [(e["step"], e["passed"]) for e in search.events_named("certify") if e["candidate_id"] == "r1i0v0a0"]
    assert told == [("build", None), ("build", False)]


async def test_gpu_re_timings_that_spread_more_than_three_percent_fail(search: Search) -> None:
    class Wandering(MemoryEngine):
        def _benchmark(self, task: Any) -> Any:
            timing = super()._benchmark(task)
            if self.counts[f"BenchmarkTask:{task.candidate.id}"] != 3:
                return timing
            return dataclasses.replace(timing, median_ms=1.04 * (timing.median_ms or 0.0))

    search.engine = Wandering()
    context = search.context(rounds=1, ideas=1, implementations=1)
    (context.problem.path.parent / "seeds" / "naive.cpp").write_text("// speed 0.7\n")
    device = dataclasses.replace(context.target.device, kind=DeviceKind.CUDA, arch="sm_90a", uuid="GPU-1")
    context.target = dataclasses.replace(context.target, device=device)
    await search.run(context)
    certificate = search.archive.certificate_json()
    assert certificate is not None and not certificate["passed"]
    assert "spread more than 3%" in certificate["reason"]
    assert certificate["reason_code"] == "timings_spread"


async def test_interval_of_a_certified_kernel_spans_its_three_re_timings(search: Search) -> None:
    told = {2: (1.38, (1.30, 1.45)), 3: (1.41, (1.39, 1.50)), 4: (1.73, (1.44, 1.93))}  # by the count of its timings

    class Shaky(MemoryEngine):
        def _benchmark(self, task: Any) -> Any:
            timing = super()._benchmark(task)
            speedup, interval = told.get(self.counts[f"BenchmarkTask:{task.candidate.id}"], (1.5, (1.4, 1.6)))
            return dataclasses.replace(timing, speedup=speedup, speedup_ci95=interval)

    certificate = await certificate_of(search, Shaky())
    assert certificate["passed"]
    assert [timing["speedup"] for timing in certificate["timings"]] == [1.38, 1.41, 1.73]
    best = build_result(search.archive)["best"]
    assert (best["speedup"], best["speedup_ci95"]) == (1.41, [1.30, 1.93])


async def test_engine_that_fails_in_the_comparison_costs_only_the_comparison(search: Search) -> None:
    class Engine(MemoryEngine):
        def _compare(self, task: Any) -> Any:
            raise EngineError("the seed's runner died")

    search.engine = Engine()
    output = await search.run(search.context(rounds=1))
    assert output["certified"]
    certificate = search.archive.certificate_json()
    assert certificate is not None and certificate["versus_seed"] is None
    assert "runner died" in search.events_named("warning")[-1]["message"]


class NoSanitizers(MemoryEngine):
    """An engine of an interface that has no sanitizer build."""

    def _compile(self, task: Any) -> Any:
        build = super()._compile(task)
        if not task.sanitized:
            return build
        code, reason = ReasonCode.INTERFACE_UNSUPPORTED, "an extension of torch has no sanitizer build"
        return dataclasses.replace(build, status=Status.REFUSED, reason_code=code, reason=reason)


async def test_sanitizer_step_that_an_interface_does_not_have_is_skipped_and_said(search: Search) -> None:
    search.engine = NoSanitizers()
    output = await search.run(search.context(rounds=1))
    assert output["certified"]
    certificate = search.archive.certificate_json()
    assert certificate is not None and certificate["sanitizer"]["verdict"] is None
    assert certificate["sanitizer"]["skipped"] == "an extension of torch has no sanitizer build"
    assert certificate["labels"] == [Label.NOT_SANITIZED]
    jsonschema.validate(certificate, read_schema("certificate"), cls=jsonschema.Draft202012Validator)
    told = [(e["passed"], e["skipped"], e["detail"]) for e in search.events_named("certify") if e["step"] == "sanitize"]
    assert told == [(None, False, ""), (None, True, "an extension of torch has no sanitizer build")]
    assert build_result(search.archive)["best"]["labels"] == [Label.NOT_SANITIZED]
    rows = dict(certificate_rows(StoredCertificate.from_json(certificate)))
    assert rows["memory checks (address, undefined)"] == "skipped: an extension of torch has no sanitizer build"


async def test_gpu_winner_is_sanitized_in_its_own_build(search: Search) -> None:
    search.engine = MemoryEngine()
    context = search.context(rounds=1)
    device = dataclasses.replace(context.target.device, kind=DeviceKind.CUDA, arch="sm_90a", uuid="GPU-1")
    context.target = dataclasses.replace(context.target, device=device)
    assert (await search.run(context))["certified"]
    certificate = search.archive.certificate_json()
    assert certificate is not None and certificate["sanitizer"]["build"] == "compute-sanitizer"
    assert certificate["sanitizer"]["verdict"]["status"] == "ok"


async def test_sanitizers_of_which_some_were_left_out_name_them(search: Search) -> None:
    class Partly(MemoryEngine):
        def _verify(self, task: Any) -> Any:
            verdict = super()._verify(task)
            return dataclasses.replace(verdict, reason="without racecheck: timed out") if task.sanitized else verdict

    search.engine = Partly()
    assert (await search.run(search.context(rounds=1)))["certified"]
    ends = [e for e in search.events_named("certify") if e["step"] == "sanitize"]
    assert (ends[-1]["passed"], ends[-1]["detail"]) == (True, "without racecheck: timed out")
    certificate = search.archive.certificate_json()
    assert certificate is not None and certificate["labels"] == []


async def test_seed_that_does_not_build_again_costs_only_the_comparison(search: Search) -> None:
    builds = []

    class Engine(MemoryEngine):
        def _compile(self, task: Any) -> Any:
            build = super()._compile(task)
            if task.candidate.id != "seed-naive" or task.profiled:
                return build
            builds.append(build)
            if len(builds) == 1:
                return build
            code = ReasonCode.COMPILER_TIMEOUT
            return dataclasses.replace(build, status=Status.COMPILE_ERROR, reason_code=code, reason="too slow")

    search.engine = Engine()
    output = await search.run(search.context(rounds=1))
    assert output["certified"]
    assert "seed-naive, which does not build: too slow" in search.events_named("warning")[-1]["message"]
    certificate = search.archive.certificate_json()
    assert certificate is not None and certificate["versus_seed"] is None


async def test_interval_that_does_not_exclude_one_is_no_gain(search: Search) -> None:
    search.model = ScriptedModel(kernel=lambda r: {"source": f"// {r.idea.title}\n// speed 1.005\n"})
    context = search.context(rounds=1)
    (context.problem.path.parent / "seeds" / "naive.cpp").write_text("// speed 0.7\n")
    output = await search.run(context)
    assert output["outcome"] == "no_gain"
    evaluation = search.archive.evaluation("r1i0v0a0", Purpose.CERTIFY)
    assert evaluation is not None and evaluation.reason_code is ReasonCode.NO_GAIN
