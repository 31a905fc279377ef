"""Every judge of a problem begins with a secret of its own; what its reference refuses stays known."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ridgeline.tools.engine import DescribeTask
from ridgeline.tools.errors import EngineError, JudgeShortError, RunnerNotReadyError
from ridgeline.tools.judge.messages import MakeRoom, TimeRenewals, Wipe
from ridgeline.tools.judge.replies import PaceAlone
from ridgeline.tools.local import evaluator as evaluator_module
from ridgeline.tools.local import problem_session
from ridgeline.tools.local.evaluator import Evaluator
from ridgeline.tools.local.problem_session import ProblemSession
from ridgeline.tools.machine.devices import detect_device
from ridgeline.tools.measure.benchmark import NO_COST
from ridgeline.tools.measure.distrust import SlowRenewals
from ridgeline.tools.measure.timing_settings import TimingSettings
from ridgeline.tools.records.problem import Target
from ridgeline.tools.records.results import Comparison, FailedComparison, Timing, Verdict
from ridgeline.tools.records.vocabulary import Interface, PrecisionClass, Purpose, ReasonCode, Status
from ridgeline.tools.runner.deadline import Deadline
from ridgeline.tools.runner.pool import RunnerPool


class NoProcess:
    """In the judge's place: what a session hands to one, without a process."""

    started: list[NoProcess]

    def __init__(
        self, problem: Target, secret: bytes, cache_dir: Path, *, fatal_attempts: set[str], has_candidates: bool
    ) -> None:
        self.secret, self.fatal_attempts, self.is_closed = secret, fatal_attempts, False
        self.has_candidates = has_candidates
        NoProcess.started.append(self)
        self.problem: Any = type("Loaded", (), {"description": None, "left_out": ()})
        self.asked: list[Any] = []
        self.is_short = False
        self.slowdown_alone = 1.0

    def ask(self, request: Any) -> PaceAlone | None:
        self.asked.append(request)
        if self.is_short:
            raise short(request)
        return PaceAlone(slowdown=self.slowdown_alone) if isinstance(request, TimeRenewals) else None

    def close(self) -> None:
        self.is_closed = True


def short(request: Any) -> JudgeShortError:
    return JudgeShortError("prepare: CUDA out of memory", request)


@pytest.fixture
def judges(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[NoProcess]]:
    NoProcess.started = []
    monkeypatch.setattr(problem_session, "JudgeProcess", NoProcess)
    return NoProcess.started


def problem_of(source: str) -> Target:
    return Target(
        name="p",
        reference_source=source,
        interface=Interface.C,
        tolerance=PrecisionClass.FP32,
        device=detect_device("cpu"),
    )


def test_every_judge_of_a_problem_has_a_secret_of_its_own_and_leaves_out_what_was_refused(
    judges: list[NoProcess], tmp_path: Path
) -> None:
    evaluator = Evaluator(detect_device("cpu"), cache_dir=tmp_path)
    for source in ("a", "a", "b", "a"):
        evaluator.describe(DescribeTask(problem=problem_of(source)))
    evaluator.forget_judge()
    evaluator.describe(DescribeTask(problem=problem_of("a")))
    evaluator.close()
    a, b, _, restarted = judges  # the second task found the first one's judge
    assert len({judge.secret for judge in judges}) == 4
    assert a.fatal_attempts is restarted.fatal_attempts is not b.fatal_attempts
    assert all(judge.is_closed for judge in judges)


def test_a_judge_beside_the_sessions_own_has_another_secret_and_looks_for_no_trials(
    judges: list[NoProcess], tmp_path: Path
) -> None:
    session = ProblemSession(tmp_path, lambda: None)
    session.open(problem_of("a"))
    session.start_another_judge(problem_of("a"))
    first, beside = judges
    assert first.secret != beside.secret
    assert first.fatal_attempts is beside.fatal_attempts
    assert first.has_candidates
    assert not beside.has_candidates, "it times PyTorch's own ways"


def test_a_closed_session_has_no_judge(judges: list[NoProcess], tmp_path: Path) -> None:
    session = ProblemSession(tmp_path, lambda: None)
    with pytest.raises(EngineError):
        _ = session.judge
    session.open(problem_of("a"))
    assert session.judge is judges[0]
    session.close()
    with pytest.raises(EngineError):
        _ = session.judge


def hoard() -> Verdict:
    raise short("prepare")


def test_memory_that_is_there_again_without_the_candidate_was_held_by_it(
    judges: list[NoProcess], tmp_path: Path
) -> None:
    session = ProblemSession(tmp_path, lambda: None)
    session.open(problem_of("a"))
    verdict = session.measured(hoard, Verdict.failed)
    assert (verdict.status, verdict.reason_code) == (Status.RUNTIME_ERROR, ReasonCode.OUT_OF_MEMORY)
    assert "left no room on the GPU" in verdict.reason
    assert judges[0].asked == ["prepare"], "what failed beside the candidate is asked again"


def test_memory_that_is_short_without_the_candidate_is_the_machines_fault(
    judges: list[NoProcess], tmp_path: Path
) -> None:
    session = ProblemSession(tmp_path, lambda: None)
    session.open(problem_of("a"))
    judges[0].is_short = True
    with pytest.raises(JudgeShortError):
        session.measured(hoard, Verdict.failed)


@pytest.mark.parametrize("failures", [1, 2])
def test_a_runner_that_found_no_room_is_started_once_more_without_what_the_judge_keeps(
    judges: list[NoProcess], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failures: int
) -> None:
    """Else a problem that all but fills a GPU is an engine failure, though the judge's kept cases can be made again."""
    left = failures

    def start(*_: Any) -> str:
        nonlocal left
        left -= 1
        if left >= 0:
            raise RunnerNotReadyError("a runner could not be made ready: making a context failed")
        return "runner"

    session = ProblemSession(tmp_path, lambda: None)
    session.open(problem_of("a"))
    monkeypatch.setattr(RunnerPool, "start", start)
    task: Any = None
    if failures == 1:
        assert session.runner(task, Deadline(60.0, "verification")) == "runner"
    else:
        with pytest.raises(RunnerNotReadyError):
            session.runner(task, Deadline(60.0, "verification"))
    assert judges[0].asked == [Wipe(), MakeRoom()]


@pytest.mark.parametrize(
    ("alone", "slowdowns", "given"),
    [
        (1.9, [2.0], [1.0, 1.9]),  # the machine became as slow: that is what the second measurement is held against
        (1.1, [2.0], [1.0]),
        (1.9, [2.0, 2.0], [1.0, 1.9]),
    ],
)
def test_slow_renewals_are_the_candidates_where_they_are_faster_without_it(
    judges: list[NoProcess], tmp_path: Path, alone: float, slowdowns: list[float], given: list[float]
) -> None:
    session = ProblemSession(tmp_path, lambda: None)
    session.open(problem_of("a"))
    judges[0].slowdown_alone = alone
    left, asked = iter(slowdowns), list[float]()

    def measure(slowdown_alone: float) -> str:
        asked.append(slowdown_alone)
        for slowdown in left:
            raise SlowRenewals(slowdown)
        return "measured"

    if len(given) > len(slowdowns):
        assert session.again_if_machine_slowed(measure) == "measured"
    else:
        with pytest.raises(SlowRenewals, match="2 x as slow as when it is alone"):
            session.again_if_machine_slowed(measure)
    assert asked == given
    assert judges[0].asked == [TimeRenewals()], "once"


def test_a_judge_without_memory_to_renew_alone_blames_no_candidate_for_that(
    judges: list[NoProcess], tmp_path: Path
) -> None:
    session = ProblemSession(tmp_path, lambda: None)
    session.open(problem_of("a"))
    judges[0].is_short = True

    def measure(_: float) -> Timing:
        raise SlowRenewals(2.0)

    with pytest.raises(SlowRenewals):
        session.measured(lambda: session.again_if_machine_slowed(measure), Timing.failed)


@pytest.mark.parametrize(("alone", "attempts"), [(1.0, 1), (1.9, 2)])
def test_a_candidate_beside_which_renewals_stay_slow_has_no_time_and_a_reason_and_is_charged_for_each_attempt(
    judges: list[NoProcess], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alone: float, attempts: int
) -> None:
    def time_once(*_: Any) -> Timing:
        time.sleep(0.02)
        raise SlowRenewals(2.0)

    evaluator = Evaluator(detect_device("cpu"), cache_dir=tmp_path)
    monkeypatch.setattr(Evaluator, "_time_once", time_once)
    monkeypatch.setattr(ProblemSession, "start_ahead", lambda *_: None)
    task: Any = SimpleNamespace(problem=problem_of("a"), candidate_s=60.0)
    evaluator.describe(DescribeTask(problem=task.problem))
    judges[0].slowdown_alone = alone
    timing = evaluator.benchmark(task)
    assert (timing.status, timing.reason_code) == (Status.UNTRUSTED, ReasonCode.BACKGROUND_WORK)
    assert timing.reason.endswith("2 x as slow as when it is alone: work goes on between calls")
    assert attempts * 0.02 <= timing.benchmark_s < attempts * 0.02 + 1
    assert judges[0].asked == [TimeRenewals()]


def test_a_second_attempt_is_charged_beside_the_first(
    judges: list[NoProcess], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = iter([2.0])

    def time_once(*_: Any) -> Timing:
        time.sleep(0.02)
        for slowdown in left:
            raise SlowRenewals(slowdown)
        return Timing(status=Status.OK, median_ms=1.0, benchmark_s=5.0)

    evaluator = Evaluator(detect_device("cpu"), cache_dir=tmp_path)
    monkeypatch.setattr(Evaluator, "_time_once", time_once)
    monkeypatch.setattr(ProblemSession, "start_ahead", lambda *_: None)
    task: Any = SimpleNamespace(problem=problem_of("a"), candidate_s=60.0)
    evaluator.describe(DescribeTask(problem=task.problem))
    judges[0].slowdown_alone = 1.9
    assert 5.02 <= evaluator.benchmark(task).benchmark_s < 6


def test_two_candidates_are_compared_once_more_where_the_machine_slowed(
    judges: list[NoProcess], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = []

    def compare_sides(*_: Any, settings: TimingSettings, **__: Any) -> Comparison:
        given.append(settings.slowdown_alone)
        raise SlowRenewals(2.0)

    monkeypatch.setattr(evaluator_module, "compare_sides", compare_sides)
    monkeypatch.setattr(evaluator_module, "_entered", lambda *_, **__: None)
    monkeypatch.setattr(evaluator_module, "collector_for", lambda *_: None)
    monkeypatch.setattr(ProblemSession, "loop_cost", lambda *_: NO_COST)
    evaluator = Evaluator(detect_device("cpu"), cache_dir=tmp_path)
    problem = problem_of("a")
    evaluator.describe(DescribeTask(problem=problem))
    judges[0].slowdown_alone = 1.9
    task: Any = SimpleNamespace(
        problem=problem,
        first=None,
        first_build=None,
        contenders=(None, None),
        purpose=Purpose.SEARCH,
        candidate_s=60.0,
    )
    compared = evaluator.compare(task)
    assert isinstance(compared, FailedComparison)
    assert (compared.finding.code, compared.at_fault) == (ReasonCode.BACKGROUND_WORK, None)
    assert given == [1.0, 1.9]
