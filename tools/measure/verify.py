"""The verdict on a built candidate: the parent drives judge and runner through the trials and decides (no torch here).

For each trial the judge writes secret inputs and poisons the output, the runner calls the candidate once and is stopped
the moment it answers, and the judge examines the output. The same inputs follow over another poison. A candidate with a
figure near a limit meets every trial again under FRESH_SECRETS further secrets, and one that fails is final: it is right
only where all agree. docs/judge.md gives each check's reason.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import replace

from ridgeline.tools.build.interfaces import BUILDS, entry_declaration
from ridgeline.tools.build.messages import explain_unloadable
from ridgeline.tools.judge.messages import DetectChange, Examine, ExamineRepeat, Poison, Prepare
from ridgeline.tools.judge.process import JudgeProcess
from ridgeline.tools.judge.replies import Beyond, Graded, Missing, Same
from ridgeline.tools.machine.process_use import thread_count
from ridgeline.tools.measure.behind_the_clock import late_threads, work_when_verified
from ridgeline.tools.measure.grade_words import (
    explain_fault,
    explain_grade,
    not_written_again,
    trial_words,
    written_beyond,
)
from ridgeline.tools.measure.trial_scalars import scalar_words, scalars_of
from ridgeline.tools.records.error_map import LimitUse, Measure, nearest_limit
from ridgeline.tools.records.finding import Finding
from ridgeline.tools.records.precision import FRESH_SECRETS, NEAR_LIMIT, REPEAT_LIMIT, asked_of, loosest
from ridgeline.tools.records.results import Trial, Verdict, factor_of
from ridgeline.tools.records.trial_names import ALONE, INTEGERS, MIXTURE, NOMINAL, TWEAKED
from ridgeline.tools.records.trial_words import LATE
from ridgeline.tools.records.vocabulary import Interface, Label, PrecisionClass, ReasonCode, Status
from ridgeline.tools.runner.failures import RunnerFailure
from ridgeline.tools.runner.process import RunnerProcess
from ridgeline.tools.wording import counted

_SETTLE_S = 0.05  # for work that went on behind an answer to show in the output
_LONGEST_SETTLE_S = 4.0
_LATE_CALLS = (24, 48)  # unexamined calls before the last examined one: "right for the first ten" is caught
_LATE_CALLS_S = 2.0
_LATE_TRIALS = (NOMINAL[0], MIXTURE)  # by chance: the contents of the last examined call may be a timed set's
_SAME_SET = (*TWEAKED, f"{ALONE}_")
"""Trials with these prefixes run on the set of the trial that they differ from in little, right after a call on that one. So a
result shows that is kept by address, or for a single call."""
_SEEN_SET = (INTEGERS,)
"""These trials run on a set that was used before. All others run on sets in a secret order, so that no address tells a
verification from a timing."""


def verify_candidate(
    judge: JudgeProcess,
    start: Callable[[], RunnerProcess],
    *,
    tolerance: PrecisionClass,
    interface: Interface,
    extra_trials: int = 0,
    own_secrets: int = 0,
    is_judged: bool = True,
) -> Verdict:
    """Start a candidate's runner and return whether it does the reference's work.

    Args:
        judge: has loaded the problem.
        start: starts the candidate's runner.
        tolerance: the loosest class that passes.
        interface: the candidate's.
        extra_trials: further nominal trials.
        own_secrets: secrets drawn for this verification, each met in every trial; 0: the one that the judge has.
        is_judged: False only runs every trial: a sanitizer's build, which reports by dying.

    Raises:
        EngineError: judge or sandbox failed, which no candidate can cause.
    """
    problem = judge.problem
    if problem.degenerate is not None:
        return Verdict.failed(replace(problem.degenerate, reason=f"nothing to measure: {problem.degenerate.reason}"))
    try:
        with start() as runner:
            verification = Verification(judge, runner, asked_of(tolerance, problem.description.output_dtypes))
            if not is_judged:
                return replace(verification.run_unjudged(), load_s=runner.load_s)
            verdict = verification.run(extra_trials, own_secrets)
            return replace(verdict, load_s=runner.load_s)
    except RunnerFailure as fault:
        return Verdict.failed(_with_right_signature(fault.finding, judge, interface))


def _with_right_signature(finding: Finding, judge: JudgeProcess, interface: Interface) -> Finding:
    """Return the finding; of a library that does not load for want of its entry, with the entry that it lacks."""
    if finding.code is not ReasonCode.LOAD_FAILED or not BUILDS[interface].links_late:
        return finding
    entry = entry_declaration(judge.problem.description.signature, judge.device_kind, interface)
    return replace(finding, reason=explain_unloadable(finding.reason, entry))


class Verification:
    """One candidate's way through the trials."""

    def __init__(self, judge: JudgeProcess, runner: RunnerProcess, tolerance: PrecisionClass) -> None:
        self._judge = judge
        self._runner = runner
        self._tolerance = tolerance
        self._trials: list[Trial] = []
        self._classes: list[PrecisionClass] = []
        self._labels: list[Label] = []
        self._order = secrets.SystemRandom().sample(range(judge.problem.n_sets), judge.problem.n_sets)
        self._used = 0  # sets of that order
        self._set = self._order[0]
        self._draw = 0
        self._threads = 0
        self._call_s = 0.0

    def run(self, extra_trials: int = 0, own_secrets: int = 0) -> Verdict:
        """Run every trial until one fails: under one secret, or more where `own_secrets` says so or a figure is near."""
        if own_secrets:
            self._judge.redraw()
        try:
            failure = self._run_first_draw(extra_trials)
            if failure is None:
                failure = self._run_draws(own_secrets - 1)
            if failure is None and self._margin() > NEAR_LIMIT:
                self._runner.deadline.extend()
                failure = self._run_draws(FRESH_SECRETS)
        except RunnerFailure as fault:
            failure = fault.finding
        return self._verdict(failure)

    def run_unjudged(self) -> Verdict:
        """Call the candidate on every trial without looking at what it wrote.

        Raises:
            RunnerFailure: it died; a sanitizer's finding is the reason.
        """
        for name in self._judge.problem.trials:
            self._set = self._set_of(name)  # another one, so that a pointer kept from an earlier call is seen
            with scalars_of(name, self._judge.problem, self._runner.set_scalars):
                self._judge.ask(Prepare(trial=name, set_index=self._set, nan=False, is_examined=False))
                self._call()
        return Verdict(status=Status.OK)

    # ----------------------------------------------------------------------------------------------------------- draws

    def _run_first_draw(self, extra_trials: int) -> Finding | None:
        names = self._judge.problem.trials
        failure = self._run_trials((*names, *(f"extra_{i}" for i in range(extra_trials))))
        late = secrets.choice([name for name in names if name in _LATE_TRIALS])
        return failure or self._look_at_idling(names[0]) or self._late_run(late)

    def _run_draws(self, count: int) -> Finding | None:
        """Run every trial under so many further secrets; the first trial that fails is final."""
        for _ in range(count):
            self._judge.redraw()
            self._draw += 1
            failure = self._run_trials(self._judge.problem.trials)
            if failure is not None:
                return failure
        return None

    def _run_trials(self, names: tuple[str, ...]) -> Finding | None:
        base = last = ""
        for name in names:
            self._set = self._set_of(name)
            if not name.startswith(_SAME_SET):
                base = name
            elif last != base:
                self._call_unexamined(base)
            if name in self._judge.problem.scalars:
                self._call_unexamined(name)  # with the usual ones: what is kept of them shows in the next call
            last = name
            failure = self._both_runs(name) or self._look_at_threads()
            if failure is not None:
                return failure
        return None

    def _call_unexamined(self, name: str) -> None:
        """Call the candidate on a trial once more: one that keeps its last result alone is asked for it in the next call."""
        self._judge.ask(Prepare(trial=name, set_index=self._set, nan=True, is_examined=False))
        self._call()

    def _margin(self) -> float:
        """Return the largest figure / limit of all trials so far."""
        return max((factor_of(trial) for trial in self._trials), default=0.0)

    def _both_runs(self, name: str) -> Finding | None:
        with scalars_of(name, self._judge.problem, self._runner.set_scalars):
            return self._first_run(name) or self._second_run(name)

    def _set_of(self, name: str) -> int:
        """Return the set that a trial uses."""
        if name.startswith(_SAME_SET):
            return self._set
        if name in _SEEN_SET:
            return self._order[secrets.randbelow(min(self._used, len(self._order)))]
        self._used += 1
        return self._order[(self._used - 1) % len(self._order)]

    # ---------------------------------------------------------------------------------------------------------- trials

    def _first_run(self, name: str) -> Finding | None:
        self._judge.ask(Prepare(trial=name, set_index=self._set, nan=True))
        self._call()
        found = self._examine(name)
        if isinstance(found, Graded) and found.trial.passed:
            self._trials.append(found.trial)
            self._note_class(found)
            return None
        behind = self._background_work()
        if behind is not None:
            return behind
        if isinstance(found, Finding):
            return found
        explained = explain_grade(found, self._tolerance, varies=self._varies())
        return replace(explained, reason=f"{explained.reason}{scalar_words(name, self._judge.problem)}")

    def _note_class(self, found: Graded) -> None:
        if found.measured is not None:  # as of every run that passed
            self._classes.append(found.measured)

    def _varies(self) -> bool:
        """Say whether another call on the same inputs gives other values; a call that fails changes no verdict."""
        try:
            self._judge.ask(Poison(set_index=self._set, nan=False))
            self._call()
        except RunnerFailure:
            return False
        return self._judge.ask(DetectChange(set_index=self._set)).changed

    def _second_run(self, name: str) -> Finding | None:
        self._judge.ask(Poison(set_index=self._set, nan=False))
        self._call()
        found = self._judge.ask(ExamineRepeat(trial=name, set_index=self._set))
        if isinstance(found, Same):
            return None
        first, words = self._trials[-1], trial_words(name, self._draw)
        if isinstance(found, Beyond | Missing):
            self._trials[-1] = replace(first, passed=False)
            told = written_beyond(words, found) if isinstance(found, Beyond) else not_written_again(words, found)
            return self._background_work() or told
        trial = found.graded.trial
        use = LimitUse(measure=Measure.REPEAT, figure=found.difference, limit=REPEAT_LIMIT * trial.gate)
        nearest, passed = nearest_limit(first.nearest, trial.nearest, use), trial.passed and use.is_within
        self._trials[-1] = replace(first, nearest=nearest, passed=passed)
        if not passed:
            reason = f"{words}: two calls on the same inputs differ by {use.figure:.2g}, gate {use.limit:.2g}: "
            reason += "a race, or something kept from an earlier call?"
            if not trial.passed:
                reason += f" The second one: {explain_grade(found.graded, self._tolerance).reason}"
            return Finding(code=ReasonCode.NONDETERMINISTIC, reason=reason)
        self._note_class(found.graded)
        if Label.NONDETERMINISTIC not in self._labels:
            self._labels.append(Label.NONDETERMINISTIC)
        return None

    def _late_run(self, name: str) -> Finding | None:
        """Call often enough to outlast a candidate that is right at first only, then examine once more."""
        low, high = _LATE_CALLS
        calls = low + secrets.randbelow(high - low)
        for _ in range(min(calls, int(_LATE_CALLS_S / max(self._call_s, 1e-6)))):
            self._runner.run(self._set)
        self._judge.ask(Prepare(trial=name, set_index=self._set, nan=True))
        self._call()
        found = self._examine(name)
        if isinstance(found, Graded):
            if found.trial.passed:
                self._note_class(found)
                at = next(i for i, trial in enumerate(self._trials) if trial.name == name)
                first = self._trials[at]
                self._trials[at] = replace(first, nearest=nearest_limit(first.nearest, found.trial.nearest))
                return self._look_at_threads()
            found = explain_grade(found, self._tolerance)
        return replace(found, reason=f"{LATE}{found.reason}")

    def _call(self) -> None:
        self._call_s = self._runner.run(self._set).parent_s
        self._runner.expect_silence()

    # ---------------------------------------------------------------------------------------------- behind the clock

    def _look_at_threads(self) -> Finding | None:
        self._threads = self._threads or thread_count(self._runner.pid)
        more = late_threads(self._runner.pid, self._threads)
        if not more:
            return None
        reason = f"{counted(more, 'new thread')} after the first calls: start threads once, or use OpenMP"
        return Finding(code=ReasonCode.NEW_THREAD, reason=reason)

    def _background_work(self) -> Finding | None:
        """Say whether a bad output goes on changing after the answer."""
        self._runner.cont()
        time.sleep(max(_SETTLE_S, min(2 * self._call_s, _LONGEST_SETTLE_S)))
        self._runner.stop()
        self._runner.expect_silence()  # a forged answer is followed by the host's own
        if not self._judge.ask(DetectChange(set_index=self._set)).changed:
            return None
        reason = "the output was still being written after the call had returned: finish all work before returning"
        return Finding(code=ReasonCode.BACKGROUND_WORK, reason=reason)

    def _look_at_idling(self, name: str) -> Finding | None:
        """Watch what the process does when it has nothing to do."""

        def call() -> None:
            self._judge.ask(Prepare(trial=name, set_index=self._set, nan=True))
            self._runner.run(self._set)

        return work_when_verified(self._runner, call)

    # --------------------------------------------------------------------------------------------------------- verdict

    def _examine(self, name: str) -> Graded | Finding:
        """Return the grade of a run, or why it cannot be graded."""
        found = self._judge.ask(Examine(trial=name, set_index=self._set))
        if not isinstance(found, Graded):
            return explain_fault(trial_words(name, self._draw), found)
        found = replace(found, trial=replace(found.trial, draw=self._draw))
        if not found.trial.passed:
            self._trials.append(found.trial)
        return found

    def _verdict(self, failure: Finding | None) -> Verdict:
        nominal = [t.rel_error for t in self._trials if t.name in NOMINAL]
        precision = loosest(self._classes)
        labels = list(self._labels)
        if precision is not None and precision.is_reduced:
            labels.append(Label.REDUCED_PRECISION)
        skipped = self._judge.problem.description.skipped_trials
        labels += dict.fromkeys(s.label for s in skipped)
        return replace(
            Verdict(status=Status.OK) if failure is None else Verdict.failed(failure),
            rel_error=max(nominal) if nominal else None,
            precision_class=precision,
            draws=self._draw + 1,
            margin=self._margin() or None,
            whole_numbers=self._judge.problem.description.whole_numbers,
            trials=tuple(self._trials),
            skipped=skipped,
            labels=tuple(labels),
        )
