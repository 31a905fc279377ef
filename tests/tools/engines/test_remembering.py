"""A measurement that is stored is not made again; a build is always asked for, and what an engine fails on is not stored."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.candidates import candidate_of
from tests.graph.memory_engine import DESCRIPTION, MemoryEngine, target

from ridgeline.checkpoints.archive import Archive
from ridgeline.tools.engine import (
    BaselineTask,
    BenchmarkTask,
    CompareTask,
    CompileTask,
    DescribeTask,
    Engine,
    NextBaselineTask,
    ProfileTask,
    Task,
    VerifyTask,
)
from ridgeline.tools.engines.remembering import RememberingEngine
from ridgeline.tools.errors import EngineError
from ridgeline.tools.records import keys
from ridgeline.tools.records.baselines import Baselines
from ridgeline.tools.records.codec import Record
from ridgeline.tools.records.problem import Description
from ridgeline.tools.records.results import Build, Comparison, FailedComparison, Profile, Timing, Verdict
from ridgeline.tools.records.vocabulary import Purpose, Status

PROBLEM = target().described(DESCRIPTION)
KERNEL, OTHER = candidate_of("// speed 2\n", name="r1i0v0a0"), candidate_of("// speed 1\n", name="seed-naive")
BUILD, OTHER_BUILD = (Build(key=f"build-{n}", status=Status.OK, library_path="/nowhere.so") for n in (1, 2))
VERDICT = Verdict(status=Status.OK, rel_error=1e-7)
TIMING = Timing(status=Status.OK, median_ms=5.0, reference_ms=10.0, speedup=2.0)
PROFILE = Profile(bound="memory", fraction_of_floor=0.5, achieved_gbps=5.0, achieved_gflops=None)
COMPARISON = Comparison(ratio=0.5, ratio_ci95=(0.4, 0.6), first_ms=1.0, second_ms=2.0, blocks=5)

SEARCH = "e81aecb520e17e147e3ba7d5031d449d6c8ce42f638b84eea87b5e887aa64ddd"
TUNE = "72d16015d08228d455297ac109fe40fb8848a2fd76526382f61ddf53b2c941b1"
CERTIFY = "db65e4cc84ffac51231958a70b317f8333e1d5c9dacb438d8366120e4192c8f3"


def of_kernel(purpose: Purpose = Purpose.SEARCH, step: str = "") -> dict[str, Any]:
    return {"problem": PROBLEM, "candidate": KERNEL, "build": BUILD, "purpose": purpose, "step": step}


def verify(purpose: Purpose = Purpose.SEARCH, step: str = "") -> VerifyTask:
    return VerifyTask(**of_kernel(purpose, step))


def benchmark(purpose: Purpose = Purpose.SEARCH, step: str = "") -> BenchmarkTask:
    return BenchmarkTask(**of_kernel(purpose, step), verdict=VERDICT)


EAGER = BaselineTask(problem=PROBLEM, eager_only=True)
COMPARE = CompareTask(problem=PROBLEM, first=KERNEL, first_build=BUILD, second=OTHER, second_build=OTHER_BUILD)

STORED: list[tuple[Task[Any], str, str, Record]] = [
    (verify(), "verdicts", SEARCH, VERDICT),
    (verify(Purpose.TUNE), "verdicts", TUNE, VERDICT),
    (verify(Purpose.CERTIFY, "verify"), "verdicts", f"{CERTIFY}:verify", VERDICT),
    (verify(Purpose.CERTIFY, "sanitize"), "verdicts", f"{CERTIFY}:sanitize", VERDICT),
    (verify(Purpose.CERTIFY, "audit verify"), "verdicts", f"{CERTIFY}:audit verify", VERDICT),
    (verify(Purpose.CERTIFY, "other shape"), "verdicts", f"{CERTIFY}:other shape", VERDICT),
    (benchmark(), "timings", SEARCH, TIMING),
    (benchmark(Purpose.CERTIFY, "time 2"), "timings", f"{CERTIFY}:time 2", TIMING),
    (benchmark(Purpose.CERTIFY, "audit time 1"), "timings", f"{CERTIFY}:audit time 1", TIMING),
    (ProfileTask(**of_kernel()), "profiles", SEARCH, PROFILE),
    (COMPARE, "comparisons", "r1i0v0a0:seed-naive:db65e4cc84ffac51+e79c5b048713e94d", COMPARISON),
]
"""Tasks, and where archives on disk hold their results: table, key, record."""

IDS = [f"{table} {key.partition(':')[2]}" for _, table, key, _ in STORED]


@pytest.fixture(autouse=True)
def judge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "JUDGE_VERSION", 3)


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    with Archive.open(tmp_path / "archive.sqlite") as archive:
        yield archive


class Refusing:
    """An engine that may not be asked."""

    async def submit(self, task: Task[Any]) -> Any:
        raise AssertionError(f"{type(task).__name__} is measured again")

    async def aclose(self) -> None:
        """Nothing runs."""


@pytest.mark.parametrize(("task", "table", "key", "record"), STORED, ids=IDS)
async def test_measurement_in_an_archive_on_disk_is_found_and_not_made_again(
    archive: Archive, task: Task[Any], table: str, key: str, record: Record
) -> None:
    archive.save(table, key, KERNEL.id, record)
    assert await RememberingEngine(Refusing(), archive).submit(task) == record


@pytest.mark.parametrize(("task", "table", "key", "record"), STORED, ids=IDS)
async def test_new_measurement_is_stored_under_its_key_before_it_is_returned(
    archive: Archive, task: Task[Any], table: str, key: str, record: Record
) -> None:
    measured = await RememberingEngine(MemoryEngine(), archive).submit(task)
    assert archive.records(table) == [(key, measured.to_json())]
    assert await RememberingEngine(Refusing(), archive).submit(task) == measured


class Slow(MemoryEngine):
    """An engine that fails or is cancelled where `first` says so, and lets others ask meanwhile."""

    def __init__(self, first: BaseException | None = None) -> None:
        super().__init__()
        self.first = first

    async def submit(self, task: Task[Any]) -> Any:
        await asyncio.sleep(0.05)
        if error := self.first:
            self.first = None
            raise error
        return await super().submit(task)


@pytest.mark.parametrize("task", [verify(), benchmark()], ids=["verify", "benchmark"])
async def test_of_one_source_in_two_branches_at_the_same_time_one_is_measured(archive: Archive, task: Any) -> None:
    slow = Slow()
    engine = RememberingEngine(slow, archive)
    twin = dataclasses.replace(task, candidate=dataclasses.replace(KERNEL, id="r1i1v0a0"))
    first, second = await asyncio.gather(engine.submit(task), engine.submit(twin))
    assert first == second and slow.counts.total() == 1


@pytest.mark.parametrize("error", [EngineError("the machine failed"), asyncio.CancelledError()])
async def test_a_task_that_waits_for_its_like_is_measured_where_that_fails(
    archive: Archive, error: BaseException
) -> None:
    engine = RememberingEngine(Slow(error), archive)
    lost, measured = await asyncio.gather(engine.submit(verify()), engine.submit(verify()), return_exceptions=True)
    assert isinstance(lost, type(error)) and isinstance(measured, Verdict)


async def test_comparison_is_made_again_by_another_judge_and_on_another_build(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    counting = MemoryEngine()
    engine = RememberingEngine(counting, archive)

    async def measured(task: CompareTask) -> int:
        await engine.submit(task)
        return counting.counts["CompareTask"]

    assert [await measured(COMPARE), await measured(COMPARE)] == [1, 1]
    rebuilt = dataclasses.replace(COMPARE, first_build=dataclasses.replace(BUILD, key="another compiler"))
    assert [await measured(rebuilt), await measured(rebuilt)] == [2, 2]
    monkeypatch.setattr(keys, "JUDGE_VERSION", 4)
    assert [await measured(rebuilt), await measured(rebuilt)] == [3, 3]


async def test_candidate_s_fault_in_a_comparison_is_remembered(archive: Archive) -> None:
    task = dataclasses.replace(COMPARE, second=dataclasses.replace(OTHER, source="// fails compare\n"))
    found = await RememberingEngine(MemoryEngine(), archive).submit(task)
    assert isinstance(found, FailedComparison) and found.at_fault == 1
    assert await RememberingEngine(Refusing(), archive).submit(task) == found


async def test_failure_of_the_engine_is_not_remembered(archive: Archive) -> None:
    task = dataclasses.replace(verify(), candidate=candidate_of("// crashes VerifyTask\n"))
    with pytest.raises(EngineError):
        await RememberingEngine(MemoryEngine(), archive).submit(task)
    assert archive.records("verdicts") == []


class Compiler(MemoryEngine):
    """An engine whose second build of a source comes from its cache."""

    def _compile(self, task: CompileTask) -> Build:
        build = super()._compile(task)
        is_first = self.counts[f"CompileTask:{task.candidate.id}"] == 1
        return dataclasses.replace(build, build_s=2.0 if is_first else 0.0, cached=not is_first)


async def test_build_is_always_asked_for_and_its_making_is_what_stays_stored(archive: Archive) -> None:
    compiler = Compiler()
    engine = RememberingEngine(compiler, archive)
    task = CompileTask(problem=PROBLEM, candidate=KERNEL)
    assert [(await engine.submit(task)).cached for _ in range(2)] == [False, True]
    assert compiler.counts["CompileTask:r1i0v0a0"] == 2
    ((_, stored),) = archive.records("builds")
    assert (stored["build_s"], stored["cached"]) == (2.0, False)


async def test_build_that_another_search_left_in_the_cache_is_stored_too(archive: Archive) -> None:
    compiler = Compiler()
    compiler.counts["CompileTask:r1i0v0a0"] = 1
    build = await RememberingEngine(compiler, archive).submit(CompileTask(problem=PROBLEM, candidate=KERNEL))
    assert archive.records("builds") == [(build.key, build.to_json())]


def of_search(engine: Engine, archive: Archive) -> RememberingEngine:
    return RememberingEngine(engine, archive, target=target())


async def test_description_of_the_search_s_reference_is_asked_for_once(archive: Archive) -> None:
    assert await of_search(MemoryEngine(), archive).submit(DescribeTask(problem=target())) == DESCRIPTION
    assert archive.description() == DESCRIPTION
    assert await of_search(Refusing(), archive).submit(DescribeTask(problem=target())) == DESCRIPTION


async def test_description_of_another_reference_is_neither_stored_nor_answered_by_the_search_s(
    archive: Archive,
) -> None:
    other = dataclasses.replace(target(), reference_source="class Model: pass")
    smaller = dataclasses.replace(DESCRIPTION, compulsory_bytes=64)

    class Shapes(MemoryEngine):
        def _describe(self, task: DescribeTask) -> Description:
            return smaller if task.problem == other else DESCRIPTION

    engine = of_search(Shapes(), archive)
    assert await engine.submit(DescribeTask(problem=other)) == smaller
    assert archive.description() is None
    await engine.submit(DescribeTask(problem=target()))
    assert await engine.submit(DescribeTask(problem=other)) == smaller
    assert archive.description() == DESCRIPTION


async def test_pytorch_s_times_are_measured_in_parts_each_once(archive: Archive) -> None:
    eager = await of_search(MemoryEngine(), archive).submit(EAGER)
    assert (archive.baselines(), eager.pending) == (eager, ("compile",))
    assert await of_search(Refusing(), archive).submit(EAGER) == eager
    after = NextBaselineTask(problem=PROBLEM, after=eager)
    measured = await of_search(MemoryEngine(), archive).submit(after)
    assert (archive.baselines(), measured.pending) == (measured, ())
    for task in (EAGER, after, BaselineTask(problem=PROBLEM)):
        assert await of_search(Refusing(), archive).submit(task) == measured


async def test_all_of_pytorch_s_times_are_measured_where_the_search_has_eager_alone(archive: Archive) -> None:
    await of_search(MemoryEngine(), archive).submit(EAGER)
    measured = await of_search(MemoryEngine(), archive).submit(BaselineTask(problem=PROBLEM))
    assert [entry.name for entry in measured.entries] == ["eager", "compile"]
    assert archive.baselines() == measured


async def test_times_measured_again_are_kept_apart_from_the_search_s_and_measured_once(archive: Archive) -> None:
    again = BaselineTask(problem=PROBLEM, purpose=Purpose.CERTIFY)
    counting = MemoryEngine()
    engine = of_search(counting, archive)
    search_s = await engine.submit(BaselineTask(problem=PROBLEM))
    counting.floor_ms = 0.2
    certificate_s = await engine.submit(again)
    assert certificate_s != search_s
    assert (archive.baselines(), archive.baselines(purpose=Purpose.CERTIFY)) == (search_s, certificate_s)
    assert await of_search(Refusing(), archive).submit(again) == certificate_s
    assert await of_search(Refusing(), archive).submit(BaselineTask(problem=PROBLEM)) == search_s


async def test_without_a_target_descriptions_and_baselines_pass_through(archive: Archive) -> None:
    counting = MemoryEngine()
    engine = RememberingEngine(counting, archive)
    for _ in range(2):
        assert await engine.submit(DescribeTask(problem=target())) == DESCRIPTION
        await engine.submit(BaselineTask(problem=PROBLEM))
    assert (counting.counts["DescribeTask"], counting.counts["BaselineTask"]) == (2, 2)
    assert (archive.description(), archive.baselines()) == (None, None)


class Killing(MemoryEngine):
    """An engine on which every mode that comes after eager is killed."""

    def _baseline(self, task: BaselineTask) -> Baselines:
        measured = super()._baseline(task)
        entries = [dataclasses.replace(e, median_ms=None, was_killed=True) for e in measured.entries[1:]]
        return dataclasses.replace(measured, entries=(measured.entries[0], *entries))


@pytest.mark.parametrize("purpose", [Purpose.SEARCH, Purpose.CERTIFY])
async def test_times_that_were_killed_stay_for_the_session_and_are_asked_for_by_the_next(
    archive: Archive, purpose: Purpose
) -> None:
    task = BaselineTask(problem=PROBLEM, purpose=purpose)
    engine = RememberingEngine(Killing(), archive, target=target())
    killed = await engine.submit(task)
    await engine.reopen_baselines(purpose=purpose)
    assert archive.baselines(purpose=purpose) == killed and killed.pending == ()
    await RememberingEngine(Refusing(), archive, target=target()).reopen_baselines(purpose=purpose)
    reopened = archive.baselines(purpose=purpose)
    assert reopened is not None
    assert (reopened.entries, reopened.pending) == (killed.entries[:1], tuple(e.name for e in killed.entries[1:]))
