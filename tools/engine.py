"""The contract between whoever wants something measured and whoever measures it.

A task is a frozen record; submitting it gives its result. The local engine (`tools/local/engine.py`) runs builds side
by side and measurements one at a time for each device; a distributed engine can stand behind the same protocol, so
tasks and results are plain records and nothing here refers to a process or a file descriptor.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from ridgeline.tools.records.codec import Record
from ridgeline.tools.records.problem import DescribedTarget, Description, Target
from ridgeline.tools.records.results import Baselines, Build, Comparison, Profile, Timing, Verdict
from ridgeline.tools.records.search import Candidate
from ridgeline.tools.records.vocabulary import Purpose

R = TypeVar("R")

SANITIZERS = "address,undefined"
"""The certificate's second build of a CPU kernel: AddressSanitizer and UndefinedBehaviorSanitizer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task(Record, Generic[R]):
    """One piece of work; `R` is its result. Only infrastructure failures are retried, never a candidate's."""

    problem: Target
    cpus: int = 1
    gpus: int = 0
    timeout_s: float = 600.0
    retries: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeTask(Task[Description]):
    """Run the reference once in the judge and describe it.

    Raises ProblemError for a reference that raises, is nondeterministic, takes no tensor or returns none.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedTask(Task[R]):
    """A task on a reference that was described before."""

    problem: DescribedTarget


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineTask(DescribedTask[Baselines]):
    """Time PyTorch's own ways to run the reference and measure the device's ceilings (cached).

    One task measures all of them. A search measures them in parts: `eager_only` leaves the other entries `pending`, and
    each task with `after` measures the first pending one.
    """

    compile_modes: tuple[str, ...] = ("default", "max-autotune")
    again: bool = False  # certify: measure also what is cached, but for modes that failed
    eager_only: bool = False  # TF32 off and on
    after: Baselines | None = None  # what is measured already; the result adds one entry to it


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileTask(DescribedTask[Build]):
    """Build one candidate in the sandbox, or take it from the cache."""

    candidate: Candidate
    sanitized: bool = False  # the certificate's second build, with SANITIZERS


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyTask(DescribedTask[Verdict]):
    """Check a built candidate against the reference on secret inputs."""

    candidate: Candidate
    build: Build
    purpose: Purpose = Purpose.SEARCH
    extra_trials: int = 0  # certify: further secret seeds
    first_extra: int = 0  # how many further seeds it has met before
    sanitized: bool = False  # the build is a sanitizer build: run it, do not judge its precision


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkTask(DescribedTask[Timing]):
    """Time a verified candidate in alternation with eager PyTorch of its class."""

    candidate: Candidate
    build: Build
    verdict: Verdict
    purpose: Purpose = Purpose.SEARCH


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareTask(DescribedTask[Comparison]):
    """Time two built candidates in one alternating run."""

    first: Candidate
    first_build: Build
    second: Candidate
    second_build: Build
    purpose: Purpose = Purpose.CERTIFY  # how much to measure


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileTask(DescribedTask[Profile]):
    """Say what limits a timed candidate."""

    candidate: Candidate
    build: Build
    timing: Timing | None = None


class Engine(Protocol):
    """Something that measures. One method matters."""

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


class CandidateStore(Protocol):
    """What the tool wrappers need of the archive: candidates by id, and a place for what was found out about them."""

    def candidate(self, candidate_id: str) -> Candidate:
        """Return a stored candidate; KeyError when there is none."""
        ...

    def find(self, table: str, key: str) -> dict[str, object] | None:
        """Return the stored "builds", "verdicts" or "timings" record of this key, or None."""
        ...

    def save(self, table: str, key: str, candidate_id: str, record: Record) -> None:
        """Store one record under its key, durably, before returning."""
        ...
