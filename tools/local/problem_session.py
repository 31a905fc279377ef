"""One problem on one device: its judge, its runners, and the figures measured once for it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from ridgeline.tools.errors import EngineError, JudgeShortError
from ridgeline.tools.judge.messages import Renew, TimeRenewals, Wipe
from ridgeline.tools.judge.process import JudgeProcess
from ridgeline.tools.machine.logs import logger_of
from ridgeline.tools.measure.ceilings import ceilings
from ridgeline.tools.measure.distrust import SlowRenewals
from ridgeline.tools.measure.floor import floor_for
from ridgeline.tools.measure.refused_contents import leaves_out_refused, within_domain
from ridgeline.tools.measure.request_cost import LoopCost, empty_plan, usual_cost
from ridgeline.tools.measure.room import with_room
from ridgeline.tools.measure.sides import ReferenceInJudge, ReferenceInRunner, ReferenceSide
from ridgeline.tools.measure.timed_device import TIMED_DEVICES
from ridgeline.tools.records.baselines import Floor
from ridgeline.tools.records.finding import Finding
from ridgeline.tools.records.problem import DescribedTarget, Target
from ridgeline.tools.records.reference_mode import ReferenceMode
from ridgeline.tools.records.results import Build, Comparison, FailedComparison, Timing, Verdict
from ridgeline.tools.records.search import Candidate
from ridgeline.tools.records.vocabulary import ReasonCode
from ridgeline.tools.runner.deadline import Deadline
from ridgeline.tools.runner.failures import RunnerFailure
from ridgeline.tools.runner.plan import reference_plan, runner_plan
from ridgeline.tools.runner.pool import Held, RunnerPool
from ridgeline.tools.runner.process import RunnerProcess
from ridgeline.tools.sandbox.sandbox import Sandbox

logger = logger_of(__name__)

HOARDED = "it left no room on the GPU for what judges it: while its process lived, the judge ran out of memory"
T = TypeVar("T")
M = TypeVar("M", bound=Verdict | Timing | Comparison | FailedComparison)


class ProblemSession:
    """Outlives its judge: `open` starts one, `close` ends it.

    Every judge begins with a secret of its own, to which no `--rng-seed` leads. Candidates that are far from every limit
    face its trials one after the other; one that is near a limit, and a certificate, draw further secrets, and those that
    come after go on with the last one.
    """

    def __init__(self, cache_dir: Path, find_sandbox: Callable[[], Sandbox]) -> None:
        self._cache_dir = cache_dir
        self._find_sandbox = find_sandbox
        self._fatal_attempts: set[str] = set()  # values over which the reference lost a judge its GPU
        self._cost: LoopCost | None = None
        self._pool = RunnerPool(cache_dir)
        self._judge: JudgeProcess | None = None
        self._apart: RunnerProcess | None = None  # holds the reference
        self._has_tried_apart = False

    @property
    def judge(self) -> JudgeProcess:
        """Return the judge, the problem loaded.

        Raises:
            EngineError: the session is closed.
        """
        if self._judge is None:
            raise EngineError("the session of a problem has no judge")
        return self._judge

    def open(self, problem: Target) -> None:
        """Start the judge.

        Raises:
            ProblemError: the reference cannot be judged.
            TrustedProcessLost: the judge went away.
        """
        self._judge = self._start_judge(problem)

    def close(self) -> None:
        """End the judge, and the runners that wait with its memory."""
        self._pool.close()
        self._forget_apart()
        if self._judge is not None:
            self._judge.close()
            self._judge = None

    def _forget_apart(self) -> None:
        """End the runner that holds the reference, which ends by itself where the reference raises."""
        if self._apart is not None:
            self._apart.close()
        self._apart, self._has_tried_apart = None, False

    def start_another_judge(self, problem: Target) -> JudgeProcess:
        """Return a judge with a secret of its own that meets no candidate; the caller ends it."""
        return self._start_judge(problem, has_candidates=False)

    def _start_judge(self, problem: Target, *, has_candidates: bool = True) -> JudgeProcess:
        return JudgeProcess(
            problem,
            os.urandom(16),
            self._cache_dir,
            fatal_attempts=self._fatal_attempts,
            has_candidates=has_candidates,
        )

    # --------------------------------------------------------------------------------------------------------- runners

    def runner(self, task: Held, deadline: Deadline, *, then_next: bool = False) -> RunnerProcess:
        """Return a runner that holds the task's candidate; `then_next` starts the next one beside it.

        Waiting for the candidate is charged to `deadline`.

        Raises:
            RunnerFailure: the candidate failed while it was loaded.
            EngineError: the sandbox could not be set up.
        """
        judge = self.judge
        judge.ask(Wipe())
        runner = with_room(judge, lambda: self._pool.start(self._find_sandbox(), task, judge.problem, deadline))
        if then_next:
            self.start_ahead(task)  # nothing is timed meanwhile
        return runner

    def reference(self, problem: DescribedTarget, mode: ReferenceMode) -> ReferenceSide:
        """Return the reference as a side: on a CPU in a runner of its own, where a runner can make it."""
        if not self._has_tried_apart:
            self._has_tried_apart = True
            self._apart = self._started_apart(problem)
        return ReferenceInJudge(self.judge, mode) if self._apart is None else ReferenceInRunner(self._apart, self.judge)

    def _started_apart(self, problem: DescribedTarget) -> RunnerProcess | None:
        """Return a runner that holds the reference, stopped; None where it is timed in the judge."""
        module = self.judge.problem.reference_module
        if module is None or not TIMED_DEVICES[problem.device.kind].times_reference_apart:
            return None
        self.judge.ask(Renew())  # it may refuse the zeros that sets begin with
        with contextlib.ExitStack() as stack:
            try:
                plan = reference_plan(problem, module, self._cache_dir)
                runner = stack.enter_context(RunnerProcess(self._find_sandbox(), plan, self.judge.problem))
                runner.loop((0,))
            except (RunnerFailure, EngineError) as failure:
                if isinstance(failure, RunnerFailure) and leaves_out_refused(self.judge):
                    return self._started_apart(problem)
                # a sandbox that sets up nothing fails for the candidate too
                logger.warning("the reference does not run in a runner, so the judge times it: %s", failure)
                return None
            stack.pop_all()
            return runner

    def start_ahead(self, task: Held) -> None:
        """Start the runner of the candidate after the task's."""
        self._pool.start_ahead(self._find_sandbox(), task, self.judge.problem)

    def measured(self, measure: Callable[[], M], failed: Callable[[Finding], M]) -> M:
        """Return the result of `measure`, measured once more when its runner was killed from outside.

        Where the judge had no room beside the candidate's process, and has it now that this has ended, the candidate
        `failed`: it held a GPU's memory, of which no limit can be set.

        Raises:
            JudgeShortError: the judge has no room without the candidate either.
        """
        try:
            return self._pool.again_if_killed(measure)
        except JudgeShortError as error:
            self.judge.ask(error.request)
            return failed(Finding(code=ReasonCode.OUT_OF_MEMORY, reason=HOARDED))

    def within_domain(self, measure: Callable[[], T]) -> T:
        """Return the result of `measure`, begun anew without contents that the reference turns out to refuse.

        Raises:
            Exception: as `measure` does of other contents.
        """
        return within_domain(self.judge, measure, before_again=self._forget_apart)

    def again_if_machine_slowed(self, measure: Callable[[float], T]) -> T:
        """Return the result of `measure`, measured once more where the judge renews contents as slowly with no candidate there.

        `measure` is given how many times as slow as usual the judge renews them then: 1 at first.

        Raises:
            SlowRenewals: alone the judge renews them faster, or it was slow beside the candidate again.
            Exception: as `measure` does.
        """
        try:
            return measure(1.0)
        except SlowRenewals as fault:
            slowdown_alone = self._slowdown_alone(fault)
            if not fault.is_the_machines(slowdown_alone):
                raise
        logger.info("timing again: with no candidate there the judge is %.2g x as slow as it was", slowdown_alone)
        return measure(slowdown_alone)

    def _slowdown_alone(self, fault: SlowRenewals) -> float:
        try:
            return self.judge.ask(TimeRenewals()).slowdown
        except JudgeShortError:  # nothing is known of the machine's pace, and no candidate is there to blame
            raise fault from None

    def park(self) -> None:
        """Stop the runners that wait, so that they take no core from a measurement."""
        self._pool.park()

    # --------------------------------------------------------------------------------------------------------- figures

    def loop_cost(self, problem: DescribedTarget, candidate: Candidate, build: Build) -> LoopCost:
        """Return what a block costs beside its calls, measured once in a runner that knows no candidate."""
        if self._cost is None:
            plan = runner_plan(problem, build, self._cache_dir, candidate=candidate)
            empty = empty_plan(plan, self._cache_dir, problem.device)
            self._cost = usual_cost(self._find_sandbox(), empty, self.judge)
        return self._cost

    def floor(self, problem: DescribedTarget) -> Floor:
        """Return the floor under the problem's time, by the ceilings as they are known now."""
        return floor_for(self.judge.problem.description, ceilings(problem.device), problem.tolerance)
