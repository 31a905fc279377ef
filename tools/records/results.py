"""The records of measuring a candidate: builds, verdicts, timings, profiles and evaluations.

`speedup` is always reference time / candidate time, so more is better. Units are in the names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from ridgeline.tools.records.codec import Record
from ridgeline.tools.records.error_map import LimitUse
from ridgeline.tools.records.finding import Finding
from ridgeline.tools.records.fix_it import FixIt
from ridgeline.tools.records.problem import SkippedTrial, WholeRange, with_skipped_apart
from ridgeline.tools.records.vocabulary import (
    Label,
    PrecisionClass,
    Purpose,
    ReasonCode,
    Status,
)

SCHEMA_VERSION = 1
BELIEVED_FROM = 0.95
"""Part of the floor below which a time is not believed: the ceiling is a measurement too."""
_SLOWDOWN = "renewal_slowdown"
QUARANTINE_ABOVE = 10.0
"""Times eager PyTorch; such a gain is labelled, and not believed before the audit's timings agree."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepResult(Record):
    """The end of one step of a candidate, or of all its steps: ok, or the finding that it ended with."""

    status: Status  # that of the code
    reason_code: ReasonCode = ReasonCode.NONE  # NONE where it is ok, and there alone
    reason: str = ""  # interpreted, for a person or a model to act on

    def __post_init__(self) -> None:
        if self.status is self.reason_code.status:
            return
        if self.reason_code is ReasonCode.NONE:
            raise ValueError(f"status {self.status} needs a reason code")
        raise ValueError(f"reason code {self.reason_code} has status {self.reason_code.status}, not {self.status}")

    @classmethod
    def failed(cls, finding: Finding, **fields: Any) -> Self:
        """Return how a candidate with this finding ended; `fields` are what else is known."""
        return cls(status=finding.status, reason_code=finding.code, reason=finding.reason, **fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class Build(StepResult):
    """The compiler's result for one source: ok, compile_error or refused."""

    key: str  # sha256 of source, generated header, flags, toolchain, architecture
    library_path: str | None = None  # the shared object, when ok
    flags: tuple[str, ...] = ()
    toolchain: str = ""
    log: str = ""  # compiler's messages, trimmed
    errors: int = 0  # in all of them
    fix_its: tuple[FixIt, ...] = ()  # what the compiler itself would change in the source
    build_s: float = 0.0
    cached: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial(Record):
    """One comparison of a candidate's outputs with the expected ones."""

    name: str  # "nominal_0", "shifted"
    rel_error: float
    gate: float
    passed: bool
    draw: int = 0  # which of the verdict's secrets it was drawn from
    nearest: LimitUse | None = None  # the figure nearest to its limit, or furthest beyond; None: no figure, or exact


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict(StepResult):
    """The result of verifying that a candidate computes what the reference computes."""

    rel_error: float | None = None  # the worst nominal trial's
    precision_class: PrecisionClass | None = None  # measured, not claimed
    trials: tuple[Trial, ...] = ()  # those that ran
    skipped: tuple[SkippedTrial, ...] = ()  # those that no candidate meets
    labels: tuple[Label, ...] = ()
    draws: int = 1  # secrets that it was judged with, each over every distribution
    margin: float | None = None  # the largest figure / limit of all trials, 1 at the limit; None: exact, or not known
    whole_numbers: tuple[WholeRange, ...] = ()  # tried: what inputs held in the trials of the first secret
    sandbox_tier: str = ""
    verify_s: float = 0.0  # from the start of its runner to the last comparison
    load_s: float = 0.0  # of it: until the runner stood ready with the candidate loaded

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        return super(Verdict, cls).from_json(with_skipped_apart(data))

    @property
    def nearest_trial(self) -> Trial | None:
        """Return the trial whose figure is nearest to its limit, None where no trial has one."""
        graded = [trial for trial in self.trials if trial.nearest is not None]
        return max(graded, key=factor_of, default=None)


def factor_of(trial: Trial) -> float:
    """Return a trial's largest figure / limit, 0 where it has none."""
    return trial.nearest.factor if trial.nearest else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing(StepResult):
    """A candidate's time, in alternation with eager PyTorch of its class."""

    median_ms: float | None = None  # where it is ok, and there alone
    p10_ms: float | None = None
    p90_ms: float | None = None
    samples: int = 0
    reference_ms: float | None = None  # eager of its class, in the same alternating run
    speedup: float | None = None  # reference_ms / median_ms, the median of the paired blocks
    speedup_ci95: tuple[float, float] | None = None
    witness_ms: float | None = None  # the runner's own clock over the same loops; median_ms is the parent's
    page_faults_per_call: float | None = None
    labels: tuple[Label, ...] = ()
    benchmark_s: float = 0.0  # its runner's start not included
    load_s: float = 0.0  # before it: until a runner of its own stood ready with the candidate loaded
    clocks: dict[str, float] = field(default_factory=dict)  # GPU: sm_mhz, power_w, …; share of blocks "slowed by …"
    came_along: tuple[str, ...] | None = None  # code not its own in its process after timing; None: not looked at
    graph_ms: float | None = None  # GPU, launch-bound: a call in a replayed CUDA graph; None: it cannot be captured
    skipped: tuple[SkippedTrial, ...] = ()  # kinds of contents that were left out, since the reference refused them
    renewal_slowdown: float | None = (
        None  # GPU: the judge's time to write a block's contents / its time with nobody there
    )

    def to_json(self) -> dict[str, Any]:
        """Return the record as JSON; the slowdown lies among the clocks too, where earlier versions have it."""
        told = super(Timing, self).to_json()
        slowdown = {} if self.renewal_slowdown is None else {_SLOWDOWN: told[_SLOWDOWN]}
        return told | {"clocks": told["clocks"] | slowdown}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        clocks = data.get("clocks")
        if isinstance(clocks, Mapping) and _SLOWDOWN in clocks:
            others = {name: value for name, value in clocks.items() if name != _SLOWDOWN}
            data = {_SLOWDOWN: clocks[_SLOWDOWN], **data, "clocks": others}
        return super(Timing, cls).from_json(data)

    def __post_init__(self) -> None:
        super(Timing, self).__post_init__()
        if self.status is Status.OK and self.median_ms is None:
            raise ValueError("a timing that is ok needs a median")
        if self.status is not Status.OK and (self.median_ms, self.reference_ms, self.speedup) != (None, None, None):
            raise ValueError(f"a timing of status {self.status} has figures")


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison(Record):
    """Two candidates measured in one alternating run: `ratio` is the first's time / the second's."""

    ratio: float
    ratio_ci95: tuple[float, float]
    first_ms: float
    second_ms: float
    blocks: int

    @property
    def status(self) -> Status:
        """Return how the run ended."""
        return Status.OK


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedComparison(Record):
    """The fault of a candidate that ended an alternating run of two."""

    finding: Finding
    at_fault: int | None  # 0: the first, 1: the second, None: either may be

    @property
    def status(self) -> Status:
        """Return how the run ended."""
        return self.finding.status

    @property
    def reason(self) -> str:
        """Return the finding's sentence."""
        return self.finding.reason


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnWork(Record):
    """The share of a candidate's time in its own code: see tools/profile/vendor_code.py."""

    share: float | None  # of the device's time, in code of its own; None: unknown
    how: str  # the evidence, or why there is none
    kernels_ns: dict[str, float] = field(default_factory=dict)  # GPU: one call's, by name
    others: tuple[str, ...] = ()  # kernels, libraries and library calls that are not its own


@dataclass(frozen=True, slots=True, kw_only=True)
class StageTime(Record):
    """The time that a kernel spends in one of the stages that its source names, without stages inside it."""

    name: str
    ms: float  # a call; of a CPU's threads the mean
    share: float  # of all named stages, 0 to 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile(Record):
    """The limits of a kernel, for a person or a model to act on."""

    bound: str  # "memory", "compute" or, where its own work was counted, "latency"
    fraction_of_floor: float | None  # memory floor / median
    achieved_gbps: float | None
    achieved_gflops: float | None
    notes: tuple[str, ...] = ()  # "vectorised with 512-bit registers", "calls expf: not vectorised"
    details: dict[str, float] = field(default_factory=dict)
    own_work: OwnWork | None = None
    paragraph: str = ""  # all of this, interpreted
    stages: tuple[StageTime, ...] = ()  # in the order of the source
    median_ms: float | None = None  # the time that all this is about: the search's at eager's own, or the certificate's


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation(StepResult):
    """All results for one candidate and one purpose."""

    key: str  # evaluation_key(): source, header, flags, toolchain, problem, device, judge version, purpose
    candidate_id: str
    purpose: Purpose
    build: Build | None = None
    verdict: Verdict | None = None
    timing: Timing | None = None
    speedup_vs_best: float | None = None
    total_s: float = 0.0

    def __post_init__(self) -> None:
        try:
            super(Evaluation, self).__post_init__()
        except ValueError as error:
            raise ValueError(f"{self.candidate_id}: {error}") from None
        if self.status is Status.OK and (self.timing is None or self.timing.median_ms is None):
            raise ValueError(f"{self.candidate_id}: status ok needs a timing")

    @property
    def speedup(self) -> float | None:
        """Eager's time / the candidate's, or None when it was not timed or is not `ok`."""
        return self.timing.speedup if self.status is Status.OK and self.timing else None

    @property
    def precision_class(self) -> PrecisionClass | None:
        """The class that was measured, or None before a verdict and where no class fits."""
        return self.verdict.precision_class if self.verdict else None

    @property
    def is_reduced(self) -> bool:
        """Whether the measured class is looser than fp32, so that the candidate faced eager with TF32 on."""
        return self.precision_class is not None and self.precision_class.is_reduced

    @property
    def speedup_interval(self) -> list[float] | None:
        """The speedup's 95 % interval, as the contracts write it."""
        interval = self.timing.speedup_ci95 if self.timing and self.speedup is not None else None
        return list(interval) if interval else None

    @property
    def sure_speedup(self) -> float | None:
        """The lower end of the speedup's 95 % interval, where there is one: a wide interval is no merit."""
        interval = self.timing.speedup_ci95 if self.timing else None
        return interval[0] if interval and self.speedup is not None else self.speedup
