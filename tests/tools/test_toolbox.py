"""The tool wrappers over a real compiler; the judge's answers come from an engine that counts."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.tools import BaseTool

from ridgeline.tools.engine import BenchmarkTask, CompileTask, ProfileTask, Task, VerifyTask
from ridgeline.tools.engines.local import LocalEngine
from ridgeline.tools.engines.remembering import RememberingEngine
from ridgeline.tools.records.baselines import Baseline, Baselines, Floor
from ridgeline.tools.records.codec import Record
from ridgeline.tools.records.problem import DescribedTarget
from ridgeline.tools.records.reference_mode import ReferenceMode
from ridgeline.tools.records.results import Profile, Timing, Verdict
from ridgeline.tools.records.search import Candidate
from ridgeline.tools.records.vocabulary import PrecisionClass, Purpose, ReasonCode, Status
from ridgeline.tools.toolbox import make_source_toolbox, make_toolbox


class MemoryStore:
    """A candidate store in memory."""

    def __init__(self) -> None:
        self.candidates: dict[str, Candidate] = {}
        self.records: dict[tuple[str, str], dict[str, Any]] = {}
        self.measured: Baselines | None = None

    def candidate(self, candidate_id: str) -> Candidate:
        return self.candidates[candidate_id]

    def find(self, table: str, key: str) -> dict[str, Any] | None:
        return self.records.get((table, key))

    def save(self, table: str, key: str, candidate_id: str, record: Record) -> None:
        self.records[table, key] = record.to_json()

    def baselines(self, *, purpose: Purpose = Purpose.SEARCH) -> Baselines | None:
        return None if purpose is Purpose.CERTIFY else self.measured


class CountingEngine:
    """Builds for real; verifies by the word `wrong` in the source; counts what it is asked."""

    def __init__(self, local: LocalEngine) -> None:
        self._local = local
        self.asked: list[str] = []
        self.profiled: ProfileTask | None = None

    async def submit(self, task: Task[Any]) -> Any:
        self.asked.append(type(task).__name__)
        if isinstance(task, CompileTask):
            return await self._local.submit(task)
        if isinstance(task, VerifyTask):
            return self._verdict(task)
        if isinstance(task, BenchmarkTask):
            return Timing(status=Status.OK, median_ms=0.5, reference_ms=1.0, speedup=2.0, speedup_ci95=(1.9, 2.1))
        assert isinstance(task, ProfileTask)
        self.profiled = task
        return Profile(bound="memory", fraction_of_floor=0.5, achieved_gbps=10.0, achieved_gflops=None)

    def _verdict(self, task: VerifyTask) -> Verdict:
        if "wrong" in task.candidate.source:
            return Verdict(status=Status.WRONG, reason_code=ReasonCode.WRONG_VALUES, reason="off\nby one")
        return Verdict(status=Status.OK, rel_error=1e-7)

    async def aclose(self) -> None:
        await self._local.aclose()


@pytest.fixture
async def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[CountingEngine]:
    monkeypatch.setenv("RIDGELINE_LOCK_DIR", str(tmp_path / "locks"))
    engine = CountingEngine(LocalEngine(cache_dir=tmp_path / "cache"))
    yield engine
    await engine.aclose()


@pytest.fixture
def store(make_candidate: Callable[..., Candidate], exp_source: str) -> MemoryStore:
    store = MemoryStore()
    sources = {"good": exp_source, "wrong": exp_source + "// wrong\n", "broken": "void run(secret_word"}
    store.candidates = {name: make_candidate(source, name=name) for name, source in sources.items()}
    return store


async def call(tools: list[BaseTool], name: str, **arguments: str) -> dict[str, Any]:
    tool = next(tool for tool in tools if tool.name == name)
    text = await tool.ainvoke(arguments)
    result: dict[str, Any] = json.loads(text)
    return result


async def test_a_good_kernel_passes_every_step_and_all_is_stored(
    engine: CountingEngine, store: MemoryStore, make_problem: Callable[..., DescribedTarget]
) -> None:
    tools = make_toolbox(RememberingEngine(engine, store), make_problem())
    results = {tool.name: await call(tools, tool.name, candidate_id="good") for tool in tools}
    assert [result["status"] for result in results.values()] == ["ok"] * 4
    assert results["verify_kernel"]["rel_error"] == 1e-7
    assert results["benchmark_kernel"]["speedup"] == 2.0
    assert results["profile_kernel"]["bound"] == "memory"
    assert [table for table, _ in store.records] == ["builds", "verdicts", "timings", "profiles"]
    assert store.find("timings", results["benchmark_kernel"]["key"]) is not None
    assert engine.asked == ["CompileTask", "VerifyTask", "BenchmarkTask", "CompileTask", "ProfileTask"]


async def test_profile_has_a_build_of_its_own_and_tells_no_raw_counters(
    engine: CountingEngine, store: MemoryStore, make_problem: Callable[..., DescribedTarget]
) -> None:
    tools = make_toolbox(RememberingEngine(engine, store), make_problem())
    told = await call(tools, "profile_kernel", candidate_id="good")
    assert engine.profiled is not None and engine.profiled.profile_build is not None
    assert "-g1" in engine.profiled.profile_build.flags
    assert engine.profiled.profile_build.key != engine.profiled.build.key
    assert "details" not in told and told["bound"] == "memory"
    engine.asked.clear()
    assert await call(tools, "profile_kernel", candidate_id="good") == told
    assert engine.asked == []  # the stored profile needs no build


async def test_a_profile_is_of_the_time_that_a_kernel_takes_at_eager_s_own(
    engine: CountingEngine, store: MemoryStore, make_problem: Callable[..., DescribedTarget]
) -> None:
    """The machine was slower in the kernel's timing: eager took 1 ms there, and 0.4 ms when it was timed."""
    eager = Baseline(name=ReferenceMode.EAGER, precision_class=PrecisionClass.FP32, median_ms=0.4)
    floor = Floor(floor_ms=0.1, compute_floor_ms=0.0, bound="memory", bandwidth_gbps=100.0, gflops=100.0)
    store.measured = Baselines(device=make_problem().device, entries=(eager,), floor=floor)
    tools = make_toolbox(RememberingEngine(engine, store), make_problem())
    await call(tools, "benchmark_kernel", candidate_id="good")
    await call(tools, "profile_kernel", candidate_id="good")
    assert engine.profiled is not None and engine.profiled.timing is not None
    assert engine.profiled.timing.median_ms == pytest.approx(0.2)


async def test_nothing_is_measured_twice_even_by_another_toolbox(
    engine: CountingEngine, store: MemoryStore, make_problem: Callable[..., DescribedTarget]
) -> None:
    first = await call(
        make_toolbox(RememberingEngine(engine, store), make_problem()), "benchmark_kernel", candidate_id="good"
    )
    engine.asked.clear()
    second = await call(
        make_toolbox(RememberingEngine(engine, store), make_problem()), "benchmark_kernel", candidate_id="good"
    )
    assert first == second
    assert engine.asked == ["CompileTask"]  # answered by the build cache


async def test_another_purpose_is_another_measurement(
    engine: CountingEngine, store: MemoryStore, make_problem: Callable[..., DescribedTarget]
) -> None:
    for purpose in (Purpose.SEARCH, Purpose.CERTIFY):
        tools = make_toolbox(RememberingEngine(engine, store), make_problem(), purpose=purpose)
        await call(tools, "verify_kernel", candidate_id="good")
    assert engine.asked.count("VerifyTask") == 2


async def test_a_wrong_kernel_is_not_timed(
    engine: CountingEngine, store: MemoryStore, make_problem: Callable[..., DescribedTarget]
) -> None:
    result = await call(
        make_toolbox(RememberingEngine(engine, store), make_problem()), "benchmark_kernel", candidate_id="wrong"
    )
    assert (result["status"], result["reason_code"], result["reason"]) == ("wrong", "wrong_values", "off by one")
    assert "BenchmarkTask" not in engine.asked


async def test_a_broken_kernel_gives_one_line_and_keeps_its_log_in_the_store(
    engine: CountingEngine, store: MemoryStore, make_problem: Callable[..., DescribedTarget]
) -> None:
    tools = make_toolbox(RememberingEngine(engine, store), make_problem())
    for step in ("compile_kernel", "verify_kernel", "benchmark_kernel", "profile_kernel"):
        result = await call(tools, step, candidate_id="broken")
        assert result["status"] == "compile_error"
        assert "\n" not in result["reason"]
        assert "log" not in result
    stored = store.find("builds", result["key"])
    assert stored is not None
    assert "secret_word" in stored["log"]
    assert engine.asked == ["CompileTask"]


async def test_an_unknown_id_is_an_answer_and_not_an_exception(
    engine: CountingEngine, store: MemoryStore, make_problem: Callable[..., DescribedTarget]
) -> None:
    result = await call(
        make_toolbox(RememberingEngine(engine, store), make_problem()), "compile_kernel", candidate_id="r9i9v9a9"
    )
    assert result["status"] == "refused"
    assert engine.asked == []


async def test_a_models_source_is_stored_before_it_is_compiled(
    engine: CountingEngine,
    store: MemoryStore,
    make_problem: Callable[..., DescribedTarget],
    make_candidate: Callable[..., Candidate],
    exp_source: str,
) -> None:
    def keep(source: str) -> str:
        assert engine.asked == []
        store.candidates["kept"] = make_candidate(source, name="kept")
        return "kept"

    tools = make_source_toolbox(engine, store, make_problem(), keep)
    result = await call(tools, "compile_kernel", source=exp_source)
    assert (result["candidate_id"], result["status"]) == ("kept", "ok")
    assert exp_source not in json.dumps(result)
    assert (await call(tools, "benchmark_kernel", candidate_id="kept"))["speedup"] == 2.0


async def test_message_of_a_tool_carries_the_record_that_its_text_leaves_out(
    engine: CountingEngine, store: MemoryStore, make_problem: Callable[..., DescribedTarget]
) -> None:
    problem = make_problem()
    tools = {tool.name: tool for tool in make_toolbox(RememberingEngine(engine, store), problem)}

    async def artifact(name: str, candidate_id: str) -> Any:
        request = {"type": "tool_call", "id": "1", "name": name, "args": {"candidate_id": candidate_id}}
        return (await tools[name].ainvoke(request)).artifact

    taken = await artifact("benchmark_kernel", "good")
    assert (taken.build.status, taken.verdict.rel_error, taken.timing.speedup) == (Status.OK, 1e-7, 2.0)
    assert store.find("timings", taken.key) == taken.timing.to_json()
    assert "secret_word" in (await artifact("verify_kernel", "broken")).build.log
    assert (await artifact("profile_kernel", "good")).bound == "memory"
    assert await artifact("compile_kernel", "r9i9v9a9") is None


def test_toolboxes_share_the_schemas_of_their_arguments(
    engine: CountingEngine, store: MemoryStore, make_problem: Callable[..., DescribedTarget]
) -> None:
    one, other = (make_toolbox(RememberingEngine(engine, store), make_problem()) for _ in range(2))
    assert [tool.args_schema for tool in one] == [tool.args_schema for tool in other]
    assert [tool.get_input_jsonschema()["title"] for tool in one] == [tool.name for tool in one]
    assert all(tool.args == {"candidate_id": {"title": "Candidate Id", "type": "string"}} for tool in one)
