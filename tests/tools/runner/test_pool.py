"""Runners started ahead, each taken by the next candidate of the same problem and by no other; killed ones once more."""

from __future__ import annotations

import os
import signal
import stat
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.runner_starts import RunnerStart, runner_starts
from tests.tools.conftest import candidate_of, exp_problem, without_tensors

from ridgeline.tools.engine import VerifyTask
from ridgeline.tools.machine.process_use import Threads
from ridgeline.tools.records.results import Build, Timing
from ridgeline.tools.records.vocabulary import DeviceKind, ReasonCode, Status
from ridgeline.tools.runner import pool as runner_pool
from ridgeline.tools.runner.failures import RunnerFailure
from ridgeline.tools.runner.pool import RunnerPool
from ridgeline.tools.runner.start import PythonPlan, RunnerPlan
from ridgeline.tools.runner.wire import PythonSetup
from ridgeline.tools.sandbox.python import python_paths
from ridgeline.tools.sandbox.sandbox import Confined, Sandbox

pytestmark = pytest.mark.sandboxed

HOST = """
import array, socket
notes = array.array("Q", [0])
judge = socket.socket(fileno=3)
judge.sendall(b"imported\\n")
said = b""
while not said.endswith(b"end\\n"):
    said += judge.recv(65536)
judge.sendall(b"mapped %d\\n" % notes.buffer_info()[0])
judge.sendall(b"ready 0 0\\n")
judge.recv(1)
"""
TASK = VerifyTask(
    problem=exp_problem("module"),
    candidate=candidate_of("class ModelNew: ...", language="py", interface="module"),
    build=Build(key="a", status=Status.OK, library_path="/nowhere.zip"),
)


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunnerPlan:
    """Let every candidate's runner be a small program that speaks the first words of the protocol."""
    tmp_path.chmod(0o755)
    confined = Confined(command=(sys.executable, "-c", HOST), readable=python_paths())
    plan = RunnerPlan(
        confined=confined,
        library=Path("library.zip"),
        workspace_bytes=0,
        call_timeout_s=20.0,
        python=PythonPlan(
            starts_in=tmp_path / "tmp", files=(), setup=PythonSetup(device=DeviceKind.CPU, watcher="/nowhere.so")
        ),
    )
    monkeypatch.setattr(runner_pool, "runner_plan", lambda *_, **__: plan)
    monkeypatch.setattr(runner_pool, "kernels_ahead", lambda *_, **__: None)
    return plan


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[RunnerPool]:
    pool = RunnerPool(tmp_path)
    yield pool
    pool.close()


def waiting(pool: RunnerPool) -> list[int]:
    return [start.process.host_pid for start in pool._waiting]


def comes_true(is_so: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 20
    while not is_so():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.001)
    return True


def test_a_runner_started_ahead_is_the_next_candidates(
    sandbox: Sandbox, plan: RunnerPlan, pool: RunnerPool, tmp_path: Path
) -> None:
    problem = without_tensors()
    pool.start_ahead(sandbox, TASK, problem)
    ahead = waiting(pool)
    assert ahead
    pool.start_ahead(sandbox, TASK, problem)
    assert waiting(pool) == ahead  # not more than wait already
    pool.park()
    for pid in ahead:
        assert comes_true(Threads(pid).are_at_rest)  # it takes no core
    with pool.start(sandbox, TASK, problem) as runner:
        assert runner.pid == ahead[0]
        assert waiting(pool) == ahead[1:]
    pool.close()
    with pool.start(sandbox, TASK, problem) as runner:
        assert runner.pid not in ahead
    assert list((tmp_path / "tmp").iterdir()) == []


def test_nobody_can_open_the_tickets_of_a_runner_once_more(
    sandbox: Sandbox, plan: RunnerPlan, pool: RunnerPool
) -> None:
    """As its user could, who may be Ridgeline's."""
    pool.start_ahead(sandbox, TASK, without_tensors())
    assert [stat.S_IMODE(os.fstat(start.tickets).st_mode) for start in pool._waiting] == [0] * len(pool._waiting)
    assert pool._waiting


@pytest.mark.parametrize("change", ["judge", "confinement"])
def test_a_runner_started_for_another_judge_or_confinement_is_ended(
    sandbox: Sandbox, plan: RunnerPlan, pool: RunnerPool, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = without_tensors()
    pool.start_ahead(sandbox, TASK, problem)
    ahead = waiting(pool)
    if change == "judge":
        problem = without_tensors()
    else:
        other = replace(plan, confined=replace(plan.confined, env={"A": "B"}))
        monkeypatch.setattr(runner_pool, "runner_plan", lambda *_, **__: other)
    with pool.start(sandbox, TASK, problem) as runner:
        assert runner.pid not in ahead
        assert waiting(pool) == []


def test_a_runner_that_died_while_it_waited_is_nobodys_failure(
    sandbox: Sandbox, plan: RunnerPlan, pool: RunnerPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = without_tensors()
    importing = replace(plan, confined=replace(plan.confined, command=("/bin/sleep", "60")))
    with monkeypatch.context() as patch:
        patch.setattr(runner_pool, "runner_plan", lambda *_, **__: importing)
        pool.start_ahead(sandbox, TASK, problem)
    for pid in waiting(pool):
        os.kill(pid, signal.SIGKILL)
    pool.park()
    assert waiting(pool) == []
    pool.start_ahead(sandbox, TASK, problem)
    for start in pool._waiting:
        os.kill(start.process.host_pid, signal.SIGKILL)
        assert comes_true(lambda ended=start.process: ended.poll() is not None)
    with pool.start(sandbox, TASK, problem) as runner:
        assert runner.pid


@pytest.mark.parametrize("difference", [{"interface": "c"}, {"call_timeout_s": 1.0}])
def test_nothing_is_started_ahead_of_a_c_kernel_or_beside_a_short_limit(
    sandbox: Sandbox, plan: RunnerPlan, pool: RunnerPool, difference: dict[str, object]
) -> None:
    pool.start_ahead(sandbox, replace(TASK, problem=replace(TASK.problem, **difference)), without_tensors())
    assert waiting(pool) == []


@pytest.mark.parametrize(
    ("number", "runs"), [(signal.SIGKILL, 2), (signal.SIGSEGV, 1)], ids=["killed from outside", "crashed"]
)
def test_a_candidate_whose_runner_was_killed_is_measured_once_more(
    sandbox: Sandbox, plan: RunnerPlan, pool: RunnerPool, number: signal.Signals, runs: int
) -> None:
    measured: list[Timing] = []

    def measure() -> Timing:
        with pool.start(sandbox, TASK, without_tensors()) as runner:
            os.kill(runner.pid, number)
            with pytest.raises(RunnerFailure) as failure:
                runner.run(0)
        measured.append(Timing.failed(failure.value.finding))
        return measured[-1]

    assert pool.again_if_killed(measure) is measured[-1]
    assert len(measured) == runs
    assert measured[0].reason.startswith(f"killed by {number.name}")


def test_a_candidate_that_only_says_that_it_was_killed_is_not_measured_again(pool: RunnerPool) -> None:
    said = "the call of forward raised RuntimeError: killed by SIGKILL during a call"
    results = [Timing(status=Status.RUNTIME_ERROR, reason_code=ReasonCode.CRASHED, reason=said)] * 2
    pool.again_if_killed(results.pop)
    assert len(results) == 1


def test_each_runner_is_told_in_the_log(
    sandbox: Sandbox, plan: RunnerPlan, pool: RunnerPool, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    caplog.set_level("INFO", logger="ridgeline.tools.runner.pool")
    with pool.start(sandbox, TASK, without_tensors()):
        pass
    log = tmp_path / "run.log"
    log.write_text("".join(f"{record.name}: {record.getMessage()}\n" for record in caplog.records))
    start = RunnerStart(evaluator_pid=os.getpid(), candidate_id=TASK.candidate.id, purpose="search", task="VerifyTask")
    assert runner_starts(log) == [start]


def is_over(pid: int) -> bool:
    """Say whether a process, which nobody may have waited for yet, has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_a_candidate_whose_guard_was_killed_is_measured_once_more_and_no_oftener(
    sandbox: Sandbox, plan: RunnerPlan, pool: RunnerPool
) -> None:
    found: list[RunnerFailure] = []

    def measure() -> Timing:
        with pool.start(sandbox, TASK, without_tensors()) as runner:
            guard = int(Path(f"/proc/{runner.pid}/stat").read_text().rpartition(")")[2].split()[1])
            os.kill(runner._process.supervisor_pid, signal.SIGKILL)
            assert comes_true(lambda: is_over(guard))  # the inner guard has reported
            with pytest.raises(RunnerFailure) as failure:
                runner.run(0)
        found.append(failure.value)
        return Timing.failed(failure.value.finding)

    assert pool.again_if_killed(measure).reason_code is ReasonCode.CRASHED
    assert [(failure.was_killed, failure.finding.reason) for failure in found] == [
        (True, "its supervisor was killed during a call")
    ] * 2
