"""The measuring parent of one device: it owns the clock, one judge at a time, and the runners (no torch here).

A candidate is loaded in a runner, a reference in a judge; this process drives both and decides.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from ridgeline.tools.engine import (
    BaselineTask,
    BenchmarkTask,
    CompareTask,
    Contender,
    DescribeTask,
    NextBaselineTask,
    ProfileTask,
    VerifyTask,
)
from ridgeline.tools.judge.process import JudgeProcess
from ridgeline.tools.local.measured_device import measured
from ridgeline.tools.local.problem_session import ProblemSession
from ridgeline.tools.machine.mapped_code import mapped_code
from ridgeline.tools.machine.places import default_cache_dir
from ridgeline.tools.measure.baselines import measure_baselines, measure_next
from ridgeline.tools.measure.benchmark import NO_COST, compare_sides, time_candidate
from ridgeline.tools.measure.ceilings import ceilings
from ridgeline.tools.measure.distrust import SlowRenewals
from ridgeline.tools.measure.graph_timing import with_graph_time
from ridgeline.tools.measure.late_outputs import collector_for
from ridgeline.tools.measure.refused_contents import with_left_out
from ridgeline.tools.measure.sides import ReferenceSide, eager_mode
from ridgeline.tools.measure.timed_device import TIMED_DEVICES
from ridgeline.tools.measure.timing_settings import TimingSettings
from ridgeline.tools.measure.verify import verify_candidate
from ridgeline.tools.profile.profiler import profile_candidate
from ridgeline.tools.profile.sanitizer import examine
from ridgeline.tools.profile.vendor_code import foreign_code
from ridgeline.tools.records.baselines import Baselines
from ridgeline.tools.records.finding import CandidateFault, faults_of
from ridgeline.tools.records.problem import Description, Device, Target
from ridgeline.tools.records.results import Comparison, FailedComparison, Profile, Timing, Verdict
from ridgeline.tools.records.vocabulary import Label, Purpose, ReasonCode, Sanitizers, Status
from ridgeline.tools.runner.deadline import Deadline
from ridgeline.tools.runner.failures import RunnerFailure
from ridgeline.tools.runner.plan import alone
from ridgeline.tools.runner.process import RunnerProcess
from ridgeline.tools.sandbox.sandbox import UNSAFE_VARIABLE, Sandbox, Tier, probe_sandbox


class Evaluator:
    """Measures on one device. One problem at a time has a judge; `close()` ends it."""

    def __init__(self, device: Device, *, cache_dir: Path | None = None, sandbox: Sandbox | None = None) -> None:
        """Start nothing yet; `sandbox` None: the best tier that works here."""
        self._cache_dir = cache_dir or default_cache_dir()
        self._given_sandbox = sandbox
        self._device = measured(device)
        self._sessions: dict[tuple[str, ...], ProblemSession] = {}  # by judge key; one of them at most is open
        self._current: ProblemSession | None = None

    # ----------------------------------------------------------------------------------------------------------- tasks

    def describe(self, task: DescribeTask) -> Description:
        """Run the reference once and describe it."""
        return self._session(task.problem).judge.problem.description

    def verify(self, task: VerifyTask) -> Verdict:
        """Check a built candidate on secret inputs; `sanitized` where a tool examines: run it alone under the tool."""
        session = self._session(task.problem)
        started = time.perf_counter()
        if task.sanitized and task.problem.device.kind.sanitizers is Sanitizers.TOOL:
            return self._examine(task, session)
        trials = len(session.judge.problem.trials)
        deadline = Deadline(task.deadline_s(trials), "verification", further_s=task.further_s(trials))
        verdict = session.measured(
            lambda: verify_candidate(
                session.judge,
                lambda: session.runner(task, deadline, then_next=True),
                tolerance=task.problem.tolerance,
                interface=task.problem.interface,
                extra_trials=task.extra_trials,
                own_secrets=task.own_secrets,
                is_judged=not task.sanitized,
            ),
            Verdict.failed,
        )
        tier = self._sandbox.tier
        labels = (*verdict.labels, Label.NO_SANDBOX) if tier is Tier.NONE else verdict.labels
        return replace(verdict, labels=labels, sandbox_tier=tier.value, verify_s=time.perf_counter() - started)

    def _examine(self, task: VerifyTask, session: ProblemSession) -> Verdict:
        started, sandbox = time.perf_counter(), self._sandbox
        report = examine(
            alone(task.problem, task.build, self._cache_dir),
            signature=session.judge.problem.description.signature,
            library=Path(task.build.library_path or ""),
            sandbox=sandbox,
        )
        return report.verdict(sandbox_tier=sandbox.tier.value, verify_s=time.perf_counter() - started)

    def benchmark(self, task: BenchmarkTask) -> Timing:
        """Time a verified candidate in alternation with eager PyTorch.

        A time below the floor may mean that the ceilings were measured on a busy machine. The ceilings are then
        measured again, and where the floor fell the candidate is timed once more.
        """
        session = self._session(task.problem)
        deadline = Deadline(task.candidate_s, "timing")  # over all attempts: a candidate can cause each of them
        timing = session.measured(lambda: self._time(task, session, deadline), Timing.failed)
        if timing.reason_code is ReasonCode.BELOW_FLOOR:
            before = session.floor(task.problem)
            ceilings(task.problem.device, again=True)
            if session.floor(task.problem).floor_ms < before.floor_ms:
                timing = session.measured(lambda: self._time(task, session, deadline), Timing.failed)
        session.start_ahead(task)
        return timing

    def _time(self, task: BenchmarkTask, session: ProblemSession, deadline: Deadline) -> Timing:
        spent_s: list[float] = []  # of each attempt

        def attempt(slowdown_alone: float) -> Timing:
            began = time.perf_counter()
            try:
                return session.within_domain(lambda: self._time_once(task, session, deadline, slowdown_alone))
            finally:
                spent_s.append(time.perf_counter() - began)

        try:
            timing = session.again_if_machine_slowed(attempt)
            timing = replace(timing, benchmark_s=timing.benchmark_s + sum(spent_s[:-1]))
        except (RunnerFailure, SlowRenewals) as fault:
            timing = Timing.failed(fault.finding, benchmark_s=sum(spent_s))
        return with_left_out(timing, session.judge)

    def _time_once(
        self, task: BenchmarkTask, session: ProblemSession, deadline: Deadline, slowdown_alone: float
    ) -> Timing:
        """Time a candidate in one alternating run; `slowdown_alone` is how slow the judge is with no candidate there.

        Raises:
            RunnerFailure: its runner failed.
            SlowRenewals: beside it the judge renewed contents more slowly than that.
            ContentsRefusedError: the reference refuses what it was timed on.
        """
        judge, settings = session.judge, TimingSettings.for_purpose(task.purpose, task.problem.device.kind)
        session.park()
        reference = session.reference(task.problem, eager_mode(task.problem.device.kind, task.verdict.precision_class))
        floor, cost = session.floor(task.problem), NO_COST
        if not (reference.is_apart and task.problem.interface.runs_in_python):  # there eager's own blocks say it
            # before the candidate's process exists: it could be at work meanwhile, and have more taken off its time
            cost = session.loop_cost(task.problem, task.candidate, task.build)
        with session.runner(task, deadline) as runner:
            timing = time_candidate(
                runner,
                reference,
                judge,
                settings=replace(settings, slowdown_alone=slowdown_alone),
                floor=floor,
                collect=collector_for(runner, judge, task.problem.interface),
                cost=cost,
                observe=self._device.observe,
            )
            timing = replace(_with_references_place(timing, reference, task), load_s=runner.load_s)
            return with_graph_time(_with_foreign_code(timing, runner, task), runner, judge)

    def compare(self, task: CompareTask) -> Comparison | FailedComparison:
        """Time two candidates in one alternating run."""
        session = self._session(task.problem)
        deadlines = [Deadline(task.candidate_s / 2, "the comparison") for _ in range(2)]
        return session.measured(
            lambda: self._compare(task, session, deadlines),
            lambda finding: FailedComparison(finding=finding, at_fault=None),
        )

    def _compare(
        self, task: CompareTask, session: ProblemSession, deadlines: Sequence[Deadline]
    ) -> Comparison | FailedComparison:
        judge, settings = session.judge, TimingSettings.for_purpose(task.purpose, task.problem.device.kind)
        session.park()
        cost = session.loop_cost(task.problem, task.first, task.first_build)

        def compare_once(slowdown_alone: float) -> Comparison:
            with contextlib.ExitStack() as runners:
                first, second = (
                    _entered(runners, session, each, deadlines[i], place=i) for i, each in enumerate(task.contenders)
                )
                return compare_sides(
                    first,
                    second,
                    judge,
                    settings=replace(settings, slowdown_alone=slowdown_alone),
                    collects=[collector_for(each, judge, task.problem.interface) for each in (first, second)],
                    cost=cost,
                    observe=self._device.observe,
                )

        try:
            return session.again_if_machine_slowed(lambda slow: session.within_domain(lambda: compare_once(slow)))
        except CandidateFault as fault:
            return FailedComparison(finding=fault.finding, at_fault=fault.contender)

    def baseline(self, task: BaselineTask) -> Baselines:
        """Time PyTorch's own ways to run the reference."""
        problem = task.problem
        if self._current is not None:
            self._current.park()
        return measure_baselines(
            problem.described(self._session(problem).judge.problem.description),  # by this torch, as it is now
            start_judge=lambda: self._another_judge(problem),
            cache_dir=self._cache_dir,
            compile_modes=task.compile_modes,
            again=task.purpose is Purpose.CERTIFY,
            eager_only=task.eager_only,
        )

    def next_baseline(self, task: NextBaselineTask) -> Baselines:
        """Time the first of PyTorch's ways that is pending.

        No judge is started to describe the problem: on a GPU it would have to make room for the mode's own.
        """
        problem = task.problem
        if self._current is not None:
            self._current.park()
        else:
            self._device.expect_ready()
        return measure_next(
            problem,
            task.after,
            start_judge=lambda: self._another_judge(problem),
            cache_dir=self._cache_dir,
            again=task.purpose is Purpose.CERTIFY,
        )

    def profile(self, task: ProfileTask) -> Profile:
        """Find out what limits a timed candidate."""
        session = self._session(task.problem)
        clocked = task.profile_build
        return profile_candidate(
            device=task.problem.device,
            description=session.judge.problem.description,
            floor=session.floor(task.problem),
            timing=task.timing,
            library=_native_library(task),
            sandbox=self._sandbox,
            build_log=task.build.log,
            runner=alone(task.problem, task.build, self._cache_dir),
            source=task.candidate.source,
            profile_build=clocked,
            clocked=alone(task.problem, clocked, self._cache_dir) if clocked else None,
        )

    def close(self) -> None:
        """End the judge and stop looking at the device."""
        self._device.close()
        self.forget_judge()

    def forget_judge(self) -> None:
        """End the judge, and the runners that wait with its memory; the next task starts a new one."""
        session, self._current = self._current, None
        if session is not None:
            session.close()

    # -------------------------------------------------------------------------------------------------------- sessions

    def _session(self, problem: Target) -> ProblemSession:
        """Return the problem's session, open; the one before loses its judge."""
        session = self._known(problem)
        if session is self._current:
            return session
        self.forget_judge()
        self._device.expect_ready()
        session.open(problem)
        self._current = session
        return session

    def _known(self, problem: Target) -> ProblemSession:
        """Return the problem's session as it is: a problem that comes back meets the secret that it had."""
        key = problem.judge_key
        if key not in self._sessions:
            self._sessions[key] = ProblemSession(self._cache_dir, lambda: self._sandbox)
        return self._sessions[key]

    def _another_judge(self, problem: Target) -> JudgeProcess:
        """Return a judge with a secret of its own, alone where no two fit; the current one starts again later."""
        if not self._device.holds_two_judges:
            self.forget_judge()
        return self._known(problem).start_another_judge(problem)

    @cached_property
    def _sandbox(self) -> Sandbox:
        """Return the sandbox, looked for when it is first needed."""
        if self._given_sandbox is not None:
            return self._given_sandbox
        return Sandbox(probe_sandbox(allow_unsafe=os.environ.get(UNSAFE_VARIABLE) == "1").tier)


def _entered(
    runners: contextlib.ExitStack, session: ProblemSession, contender: Contender, deadline: Deadline, *, place: int
) -> RunnerProcess:
    """Return the runner of one of two candidates, which ends with the stack."""
    with faults_of(place):
        return runners.enter_context(session.runner(contender, deadline))


def _with_references_place(timing: Timing, reference: ReferenceSide, task: BenchmarkTask) -> Timing:
    """Return a timing with a label where eager PyTorch was to have a runner of its own and had none."""
    is_usual = reference.is_apart or not TIMED_DEVICES[task.problem.device.kind].times_reference_apart
    if is_usual or timing.status is not Status.OK:
        return timing
    return replace(timing, labels=(*timing.labels, Label.EAGER_IN_JUDGE))


def _with_foreign_code(timing: Timing, runner: RunnerProcess, task: BenchmarkTask) -> Timing:
    """Return a timing with the code in the candidate's process that is not its own, and the label where there is some."""
    came = foreign_code(
        runner.mapped_before,
        mapped_code(runner.pid),
        own=runner.own_files,
        in_python=task.problem.interface.runs_in_python,
    )
    labels = (*timing.labels, Label.VENDOR_LIBRARY) if came and timing.status is Status.OK else timing.labels
    return replace(timing, came_along=came, labels=labels)


def _native_library(task: ProfileTask) -> Path | None:
    """Return the candidate's shared object; None for a module, whose build is a bundle of what its file builds."""
    path = task.build.library_path
    return Path(path) if path and not task.candidate.interface.has_model else None
