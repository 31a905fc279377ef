"""The local engine over real builds and real child processes that speak the evaluator's protocol."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path

import pytest
from blockbuster import BlockBuster
from tests.tools.conftest import exp_problem
from tests.tools.local.scripted_evaluator import EVALUATOR

from ridgeline.tools.engine import BenchmarkTask, CompileTask, VerifyTask
from ridgeline.tools.engines.local import LocalEngine
from ridgeline.tools.errors import EngineError, EvaluatorKilled, NotBegun, ProblemError
from ridgeline.tools.local import evaluator_process
from ridgeline.tools.machine.locks import DeviceLock
from ridgeline.tools.records import evaluation_limit
from ridgeline.tools.records.problem import DescribedTarget, Device
from ridgeline.tools.records.results import Build, Timing, Verdict
from ridgeline.tools.records.search import Candidate
from ridgeline.tools.records.vocabulary import ReasonCode, Status


@pytest.fixture
def calls(tmp_path: Path) -> Path:
    return tmp_path / "calls.jsonl"


@pytest.fixture
async def engine(tmp_path: Path, calls: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[LocalEngine]:
    monkeypatch.setenv("RIDGELINE_LOCK_DIR", str(tmp_path / "locks"))

    def command(device: Device) -> Sequence[str]:
        return [sys.executable, "-c", EVALUATOR, str(calls)]

    engine = LocalEngine(cache_dir=tmp_path / "cache", log=tmp_path / "evaluator.log", evaluator=command)
    yield engine
    await engine.aclose()


@pytest.fixture
def verify(
    make_problem: Callable[..., DescribedTarget], make_candidate: Callable[..., Candidate]
) -> Callable[..., VerifyTask]:
    def make(behaviour: str = "", **settings: float) -> VerifyTask:
        build = Build(key="k", status=Status.OK)
        return VerifyTask(problem=make_problem(), candidate=make_candidate(behaviour), build=build, **settings)  # type: ignore[arg-type]

    return make


def requests(calls: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in calls.read_text().splitlines()] if calls.exists() else []


def is_alive(pid: object) -> bool:
    return Path(f"/proc/{pid}").exists()


async def test_builds_asked_for_together_come_from_one_batch(
    engine: LocalEngine, make_task: Callable[..., CompileTask], exp_source: str
) -> None:
    sources = [exp_source, exp_source + "// second\n", "void run("]
    builds = await asyncio.gather(*(engine.submit(make_task(source)) for source in sources))
    assert [build.status for build in builds] == [Status.OK, Status.OK, Status.COMPILE_ERROR]


async def test_a_problem_of_ours_fails_only_its_own_build(
    engine: LocalEngine, make_task: Callable[..., CompileTask], exp_source: str
) -> None:
    without_module_facts = make_task("class ModelNew: ...", exp_problem("module"))
    first, second = await asyncio.gather(
        engine.submit(make_task(exp_source)), engine.submit(without_module_facts), return_exceptions=True
    )
    assert isinstance(first, Build)
    assert isinstance(second, EngineError)


async def test_a_compiler_that_is_killed_once_costs_a_second_build_and_no_verdict(
    engine: LocalEngine, make_task: Callable[..., CompileTask], exp_source: str
) -> None:
    building = asyncio.create_task(engine.submit(make_task(exp_source)))
    while not (found := await asyncio.to_thread(pids_below, os.getpid(), "cc1plus")):
        assert not building.done()
    os.kill(found[0], signal.SIGKILL)
    build = await building
    assert (build.status, build.reason) == (Status.OK, "")


def pids_below(pid: int, name: str) -> list[int]:
    """Return the live processes of a name below one, by /proc."""
    found: list[int] = []
    with contextlib.suppress(OSError):  # one that has just ended
        if Path(f"/proc/{pid}/comm").read_text().strip() == name:
            found.append(pid)
        for children in Path(f"/proc/{pid}/task").glob("*/children"):
            found += [one for child in children.read_text().split() for one in pids_below(int(child), name)]
    return found


async def test_a_source_that_is_refused_as_it_stands_waits_for_no_busy_device(
    engine: LocalEngine, make_task: Callable[..., CompileTask], exp_source: str
) -> None:
    async with DeviceLock("cpu").exclusive():
        refused = await asyncio.wait_for(engine.submit(make_task(exp_source + "\0")), 30)
        assert refused.reason_code is ReasonCode.SOURCE_REJECTED
        flagged = await asyncio.wait_for(engine.submit(make_task("// flags: -fplugin=x.so\n" + exp_source)), 30)
        assert flagged.reason_code is ReasonCode.FLAG_NOT_ALLOWED
        compiled = asyncio.create_task(engine.submit(make_task(exp_source)))
        await asyncio.sleep(0.3)
        assert not compiled.done()  # a compiler would disturb what is measured
    assert (await compiled).status is Status.OK


async def test_a_cancelled_build_leaves_its_batch_alone(
    engine: LocalEngine, make_task: Callable[..., CompileTask], exp_source: str
) -> None:
    kept = asyncio.create_task(engine.submit(make_task(exp_source)))
    dropped = asyncio.create_task(engine.submit(make_task(exp_source + "// dropped\n")))
    await asyncio.sleep(0.05)
    dropped.cancel()
    assert (await kept).status is Status.OK
    with pytest.raises(asyncio.CancelledError):
        await dropped


async def test_a_task_comes_back_as_its_own_record(engine: LocalEngine, verify: Callable[..., VerifyTask]) -> None:
    verdict = await engine.submit(verify())
    assert isinstance(verdict, Verdict)
    assert verdict.status is Status.OK


async def test_a_crashed_evaluator_is_started_again_and_the_task_retried(
    engine: LocalEngine, verify: Callable[..., VerifyTask], calls: Path
) -> None:
    assert (await engine.submit(verify("die-once", retries=1))).status is Status.OK
    first, second = requests(calls)
    assert first["pid"] != second["pid"]


async def test_an_evaluator_that_a_reference_stops_goes_on(
    engine: LocalEngine, verify: Callable[..., VerifyTask], calls: Path
) -> None:
    async with asyncio.timeout(30):
        assert (await engine.submit(verify("stopped"))).status is Status.OK
    assert len(requests(calls)) == 1


async def test_an_evaluator_that_keeps_crashing_is_an_engine_error(
    engine: LocalEngine, verify: Callable[..., VerifyTask], calls: Path
) -> None:
    with pytest.raises(EngineError, match="VerifyTask: the evaluator ended with status 3"):
        await engine.submit(verify("die", retries=2))
    assert len(requests(calls)) == 3


async def test_an_evaluator_that_is_killed_time_and_again_is_told_as_that(
    engine: LocalEngine, verify: Callable[..., VerifyTask], calls: Path
) -> None:
    with pytest.raises(EvaluatorKilled, match=r"^the evaluator was killed \(signal 9\): by the kernel"):
        await engine.submit(verify("killed", retries=1))
    assert len(requests(calls)) == 2


async def test_a_users_mistake_is_not_retried(
    engine: LocalEngine, verify: Callable[..., VerifyTask], calls: Path
) -> None:
    with pytest.raises(ProblemError, match="no tensor"):
        await engine.submit(verify("refuse", retries=3))
    assert len(requests(calls)) == 1


async def test_an_evaluator_is_late_and_ended_after_its_own_time_and_its_candidates(
    engine: LocalEngine, verify: Callable[..., VerifyTask], calls: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await engine.submit(verify())  # the evaluator's own start is no part of what is late
    monkeypatch.setattr(evaluation_limit, "CALLS", 0)
    monkeypatch.setattr(evaluation_limit, "LEAST_S", 0.5)
    with pytest.raises(EngineError, match=r"within 6 s"):  # every trial there is, under four secrets
        await engine.submit(verify("sleep", timeout_s=0.5, retries=0))
    assert not is_alive(requests(calls)[0]["pid"])


async def test_a_reply_that_is_no_reply_is_an_engine_error(
    engine: LocalEngine, verify: Callable[..., VerifyTask]
) -> None:
    with pytest.raises(EngineError, match="PASS"):
        await engine.submit(verify("babble", retries=0))


async def test_a_cancelled_measurement_leaves_no_process_and_frees_the_device(
    engine: LocalEngine, verify: Callable[..., VerifyTask], calls: Path, tmp_path: Path
) -> None:
    measuring = asyncio.create_task(engine.submit(verify("sleep")))
    while not requests(calls):
        await asyncio.sleep(0.01)
    measuring.cancel()
    with pytest.raises(asyncio.CancelledError):
        await measuring
    assert not is_alive(requests(calls)[0]["pid"])
    async with asyncio.timeout(60), DeviceLock("cpu", tmp_path / "locks").exclusive():
        pass


async def test_closing_the_engine_ends_every_process(
    engine: LocalEngine, verify: Callable[..., VerifyTask], calls: Path
) -> None:
    await engine.submit(verify())
    pid = requests(calls)[0]["pid"]
    assert is_alive(pid)
    await engine.aclose()
    assert not is_alive(pid)
    with pytest.raises(EngineError, match="closed"):
        await engine.submit(verify())


async def test_closing_the_engine_refuses_a_measurement_that_waits_for_its_turn(
    engine: LocalEngine, verify: Callable[..., VerifyTask], calls: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluator_process, "_CLOSE_GRACE_S", 0.1)
    running, behind = (asyncio.create_task(engine.submit(verify(words))) for words in ("sleep", ""))
    while not requests(calls):
        await asyncio.sleep(0.01)
    await engine.aclose()
    ended = await asyncio.gather(running, behind, return_exceptions=True)
    assert [isinstance(error, EngineError) for error in ended] == [True, True]
    assert len(requests(calls)) == 1  # nobody started another evaluator


async def test_closing_the_engine_refuses_a_build_that_has_no_builder_yet(
    engine: LocalEngine, make_task: Callable[..., CompileTask], exp_source: str
) -> None:
    building = asyncio.create_task(engine.submit(make_task(exp_source)))
    await asyncio.sleep(0)
    await engine.aclose()
    with pytest.raises(EngineError, match="closed"):
        await asyncio.wait_for(building, 30)


async def test_closing_the_engine_answers_a_build_whose_batch_has_not_begun(
    engine: LocalEngine, make_task: Callable[..., CompileTask], exp_source: str
) -> None:
    builder = await engine._builder(make_task(exp_source).problem.device)
    await builder.build(make_task(exp_source + "\0"))  # the compiler is known: the next one is in line at once
    building = asyncio.create_task(builder.build(make_task(exp_source)))
    while not builder._waiting:
        await asyncio.sleep(0)
    await builder.aclose()
    with pytest.raises(EngineError, match="ended before it finished"):
        await asyncio.wait_for(building, 30)


async def test_one_task_at_a_time_runs_on_a_device(engine: LocalEngine, verify: Callable[..., VerifyTask]) -> None:
    verdicts = await asyncio.gather(*(engine.submit(verify("pause")) for _ in range(3)))
    ends = sorted(verdict.verify_s for verdict in verdicts)
    assert min(second - first for first, second in itertools.pairwise(ends)) >= 0.19


async def test_a_measurement_waits_for_the_machine_and_a_verification_does_not(
    engine: LocalEngine, verify: Callable[..., VerifyTask], tmp_path: Path, calls: Path
) -> None:
    task = verify()
    timing = BenchmarkTask(
        problem=task.problem, candidate=task.candidate, build=task.build, verdict=Verdict(status=Status.OK)
    )
    async with DeviceLock("cpu", tmp_path / "locks").shared():
        await engine.submit(task)
        measuring = asyncio.create_task(engine.submit(timing))
        await asyncio.sleep(0.2)
        assert len(requests(calls)) == 1
    assert isinstance(await measuring, Timing)


async def test_a_stop_drops_what_waits_and_lets_what_runs_end(
    make_task: Callable[..., CompileTask],
    verify: Callable[..., VerifyTask],
    exp_source: str,
    calls: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RIDGELINE_LOCK_DIR", str(tmp_path / "locks"))
    stopping = asyncio.Event()
    command = [sys.executable, "-c", EVALUATOR, str(calls)]
    engine = LocalEngine(cache_dir=tmp_path / "cache", evaluator=lambda device: command, is_stopping=stopping.is_set)
    running, behind = (asyncio.create_task(engine.submit(verify(words))) for words in ("wait", ""))
    while not requests(calls):
        await asyncio.sleep(0.01)
    stopping.set()
    calls.with_name("go").touch()
    assert (await running).status is Status.OK
    with pytest.raises(NotBegun):
        await behind
    stopping.clear()
    async with DeviceLock("cpu", tmp_path / "locks").exclusive():  # as another process would
        waiting = [asyncio.create_task(engine.submit(task)) for task in (verify(), make_task(exp_source))]
        await asyncio.sleep(0.2)
        stopping.set()
        assert [type(error) for error in await asyncio.gather(*waiting, return_exceptions=True)] == [NotBegun] * 2
    assert len(requests(calls)) == 1
    await engine.aclose()


async def test_the_evaluator_sees_no_key(
    engine: LocalEngine, verify: Callable[..., VerifyTask], calls: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("RIDGELINE_ANYTHING", "/tmp/x")
    await engine.submit(verify())
    environment = requests(calls)[0]["env"]
    assert isinstance(environment, dict)
    assert "OPENAI_API_KEY" not in environment
    assert environment["RIDGELINE_ANYTHING"] == "/tmp/x"


def test_the_engines_process_never_imports_torch() -> None:
    program = "import sys, ridgeline.tools.engines.local, ridgeline.tools.toolbox; sys.exit('torch' in sys.modules)"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    assert subprocess.run([sys.executable, "-c", program], env=env, check=False).returncode == 0


@pytest.fixture
def watched() -> Iterator[None]:
    """Make each call that waits for a disk, a database or a clock an error while it runs in an event loop's thread."""
    blocking = BlockBuster(excluded_modules=[])
    kinds = ("time.sleep", "sqlite3.", "os.mkdir", "os.rmdir", "os.unlink", "os.re", "os.access", "os.scandir")
    blocking.functions = {name: each for name, each in blocking.functions.items() if name.startswith(kinds)}
    blocking.activate()
    yield
    blocking.deactivate()


@pytest.mark.usefixtures("watched")
async def test_a_build_and_a_measurement_leave_a_hosts_event_loop_free(
    engine: LocalEngine, make_task: Callable[..., CompileTask], exp_source: str, verify: Callable[..., VerifyTask]
) -> None:
    build = await engine.submit(make_task(exp_source))
    assert build.status is Status.OK
    assert (await engine.submit(verify())).status is Status.OK
