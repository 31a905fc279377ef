"""The contract of measuring: tasks, their results, and the engine that turns one into the other.

A task is a frozen record; submitting it gives its result. The local engine (`tools/engines/local.py`) runs builds side
by side and measurements one at a time for each device. A distributed engine can stand behind the same protocol: tasks
and results are plain records, and nothing here refers to a process or a file descriptor.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from ridgeline.tools.records.baselines import Baseline, Baselines
from ridgeline.tools.records.codec import Record
from ridgeline.tools.records.evaluation_limit import MOST_TRIALS, timing_limit_s, verify_limit_s
from ridgeline.tools.records.precision import FRESH_SECRETS
from ridgeline.tools.records.problem import DescribedTarget, Description, Target
from ridgeline.tools.records.reference_mode import COMPILED_MODES, ReferenceMode
from ridgeline.tools.records.results import Build, Comparison, FailedComparison, Profile, Timing, Verdict
from ridgeline.tools.records.search import Candidate
from ridgeline.tools.records.vocabulary import Purpose

R = TypeVar("R")

TASK_LIMIT_S = 600.0
"""Limit of a task beside what its candidates may take, and of one request to the judge; loading a problem has a shorter one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task(Record, Generic[R]):
    """One piece of work; `R` is its result. Only infrastructure failures are retried, never a candidate's."""

    name: ClassVar[str]  # on the wire to an evaluator, in messages and logs
    result: ClassVar[type[Record]]
    holds_device_alone: ClassVar[bool] = False  # because it reads a clock
    runs_on_any_alike: ClassVar[bool] = False  # a device like the problem's will do

    problem: Target
    timeout_s: float = TASK_LIMIT_S  # of the engine's own work: on top comes `candidate_s`
    retries: int = 1

    @property
    def candidate_s(self) -> float:
        """Return how long candidates may be waited for: one that takes longer has its verdict, the engine no failure."""
        return 0.0

    @classmethod
    def read_result(cls, data: dict[str, Any]) -> R:
        """Return the result that an evaluator or an archive holds as JSON."""
        return cls.result.from_json(data)  # type: ignore[return-value]  # each task's `result` is its R


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeTask(Task[Description]):
    """Run the reference once in the judge and describe it.

    Raises:
        ProblemError: the reference raises, is nondeterministic, takes no tensor or returns none.
    """

    name: ClassVar[str] = "DescribeTask"
    result: ClassVar[type[Record]] = Description


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedTask(Task[R]):
    """A task on a reference that was described before."""

    problem: DescribedTarget


@dataclass(frozen=True, slots=True, kw_only=True)
class PyTorchTask(DescribedTask[Baselines]):
    """A measurement of PyTorch's own ways to run the reference.

    A certificate's (`Purpose.CERTIFY`) passes over the times that a disk or a search's store holds, but for the modes that
    failed; it is kept apart. For every other purpose the times are the search's.
    """

    result: ClassVar[type[Record]] = Baselines
    holds_device_alone: ClassVar[bool] = True

    purpose: Purpose = Purpose.SEARCH

    @property
    def measured_before(self) -> tuple[Baseline, ...]:
        """Return the entries of the result that are measured already."""
        return ()

    def is_answered_by(self, known: Baselines) -> bool:
        """Say whether times that a search has measured hold what this task asks for."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineTask(PyTorchTask):
    """Time PyTorch's own ways to run the reference and measure the device's ceilings (cached).

    A search and a certificate measure them in parts: `eager_only` leaves the other entries `pending`, and each
    NextBaselineTask measures the first pending one.
    """

    name: ClassVar[str] = "BaselineTask"

    compile_modes: tuple[ReferenceMode, ...] = COMPILED_MODES
    eager_only: bool = False  # TF32 off and on

    def is_answered_by(self, known: Baselines) -> bool:
        """Say whether the known times are as many as this task asks for."""
        return self.eager_only or not known.pending


@dataclass(frozen=True, slots=True, kw_only=True)
class NextBaselineTask(PyTorchTask):
    """Time the first way that these times leave pending; the result adds its entry to them."""

    name: ClassVar[str] = "NextBaselineTask"

    after: Baselines

    @property
    def measured_before(self) -> tuple[Baseline, ...]:
        """Return the entries that the result adds one to."""
        return self.after.entries

    def is_answered_by(self, known: Baselines) -> bool:
        """Say whether an entry was added already."""
        return len(known.entries) > len(self.after.entries)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileTask(DescribedTask[Build]):
    """Build one candidate in the sandbox, or take it from the cache."""

    name: ClassVar[str] = "CompileTask"
    result: ClassVar[type[Record]] = Build

    candidate: Candidate
    sanitized: bool = False  # the certificate's second build, where sanitizers are compiled in
    profiled: bool = False  # the profile's second build: clocks at its stages, and lines on a CPU


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateTask(DescribedTask[R]):
    """A measurement of one built candidate."""

    runs_on_any_alike: ClassVar[bool] = True

    candidate: Candidate
    build: Build
    purpose: Purpose = Purpose.SEARCH
    step: str = ""  # tells apart several measurements of one kernel for one purpose: "time 0"; part of the stored key


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyTask(CandidateTask[Verdict]):
    """Check a built candidate against the reference on secret inputs."""

    name: ClassVar[str] = "VerifyTask"
    result: ClassVar[type[Record]] = Verdict

    extra_trials: int = 0  # certify: further nominal trials
    own_secrets: int = 0  # certify: secrets drawn for this task, each met in every trial; 0: the evaluator's one
    sanitized: bool = False  # the build is a sanitizer's: run the candidate, do not judge its precision

    @property
    def candidate_s(self) -> float:
        """Return the most that the deadline may become: every trial there is, with a figure near a limit."""
        return self.deadline_s(MOST_TRIALS) + self.further_s(MOST_TRIALS)

    def deadline_s(self, trials: int) -> float:
        """Return the part of the evaluation's deadline where the reference takes so many trials."""
        return verify_limit_s(
            self.problem.call_timeout_s,
            trials,
            draws=max(1, self.own_secrets),
            extra_trials=self.extra_trials,
            sanitized=self.sanitized,
        )

    def further_s(self, trials: int) -> float:
        """Return what is added where fresh secrets decide; a sanitizer's build is judged under none."""
        return 0.0 if self.sanitized else verify_limit_s(self.problem.call_timeout_s, trials, draws=FRESH_SECRETS)


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkTask(CandidateTask[Timing]):
    """Time a verified candidate in alternation with eager PyTorch of its class."""

    name: ClassVar[str] = "BenchmarkTask"
    result: ClassVar[type[Record]] = Timing
    holds_device_alone: ClassVar[bool] = True

    verdict: Verdict

    @property
    def candidate_s(self) -> float:
        """Return the part of the evaluation's deadline."""
        return timing_limit_s(self.problem.call_timeout_s, self.purpose)


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """One of two candidates that are compared: what a runner of it needs."""

    problem: DescribedTarget
    candidate: Candidate
    build: Build
    purpose: Purpose
    name: str  # of the task, for logs


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareTask(DescribedTask[Comparison | FailedComparison]):
    """Time two built candidates in one alternating run."""

    name: ClassVar[str] = "CompareTask"
    result: ClassVar[type[Record]] = Comparison
    holds_device_alone: ClassVar[bool] = True
    runs_on_any_alike: ClassVar[bool] = True

    first: Candidate
    first_build: Build
    second: Candidate
    second_build: Build
    purpose: Purpose = Purpose.CERTIFY  # how much to measure

    @property
    def contenders(self) -> tuple[Contender, Contender]:
        """Return the two, each as its runner holds it."""
        pairs = (self.first, self.first_build), (self.second, self.second_build)
        first, second = (
            Contender(problem=self.problem, candidate=candidate, build=build, purpose=self.purpose, name=self.name)
            for candidate, build in pairs
        )
        return first, second

    @property
    def candidate_s(self) -> float:
        """Return a timing's part of the deadline for each of the two."""
        return 2 * timing_limit_s(self.problem.call_timeout_s, self.purpose)

    @classmethod
    def read_result(cls, data: dict[str, Any]) -> Comparison | FailedComparison:
        """Return the result that an evaluator or an archive holds as JSON; a failure alone has a finding."""
        return FailedComparison.from_json(data) if "finding" in data else Comparison.from_json(data)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileTask(CandidateTask[Profile]):
    """Find out what limits a timed candidate."""

    name: ClassVar[str] = "ProfileTask"
    result: ClassVar[type[Record]] = Profile
    holds_device_alone: ClassVar[bool] = True

    timing: Timing | None = None
    profile_build: Build | None = None  # with clocks and lines; never timed


class Engine(Protocol):
    """A place where tasks are run. One method matters."""

    async def submit(self, task: Task[R]) -> R:
        """Run `task` and return its result.

        Raises:
            InputError: the task can never succeed as the user wrote it.
            EngineError: the infrastructure failed `task.retries` + 1 times.
        """
        ...

    async def aclose(self) -> None:
        """End every process the engine started."""
        ...


class MeasurementStore(Protocol):
    """The part of the archive that remembering needs: candidates by id, records about them by key, one reference's."""

    def candidate(self, candidate_id: str) -> Candidate:
        """Return a stored candidate; KeyError when there is none."""
        ...

    def find(self, table: str, key: str) -> dict[str, object] | None:
        """Return the record of this key in "builds", "verdicts", "timings", "profiles" or "comparisons", or None."""
        ...

    def save(self, table: str, key: str, candidate_id: str, record: Record) -> None:
        """Store one record under its key, durably, before returning."""
        ...

    def description(self) -> Description | None:
        """Return the description of the search's reference, or None."""
        ...

    def save_description(self, description: Description) -> None:
        """Store the description, durably, before returning."""
        ...

    def baselines(self, *, purpose: Purpose = Purpose.SEARCH) -> Baselines | None:
        """Return PyTorch's times as far as the search has measured them, or for CERTIFY the certificate's, or None."""
        ...

    def save_baselines(self, baselines: Baselines, *, purpose: Purpose = Purpose.SEARCH) -> None:
        """Store the search's times, or for CERTIFY the certificate's, durably, before returning."""
        ...
