"""The winner's certificate: the results of its steps, as certificate.json holds them.

The steps themselves are in steps.py.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ridgeline.checkpoints.history.over_pytorch import speedup_vs_best
from ridgeline.graph.certificate.audit import Audit
from ridgeline.graph.certificate.circumstances import Circumstances
from ridgeline.graph.certificate.other_shapes import ShapeCheck
from ridgeline.graph.search.ranking.elites import Standing
from ridgeline.graph.search.ranking.leaders import Leader
from ridgeline.tools.errors import EngineError
from ridgeline.tools.records.baselines import Baselines
from ridgeline.tools.records.finding import Finding
from ridgeline.tools.records.results import Build, Comparison, Evaluation, OwnWork, Timing, Verdict
from ridgeline.tools.records.vocabulary import Label, Purpose, ReasonCode, Sanitizers, SearchOutcome

CERTIFICATE_SCHEMA_VERSION = 1
NOTABLE_SHARE = 0.99
"""Below it a candidate's share of its own device time is labelled; a memset beside the kernels stays above it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedBefore:
    """A kernel that was tried before the winner and got no certificate, also for a failure of the engine."""

    candidate_id: str
    reason: str


@dataclass(slots=True, kw_only=True)
class Certificate:
    """The results for one winner; `finding` says why the winner did not pass."""

    standing: Standing
    circumstances: Circumstances
    finding: Finding | None = None
    build: Build | None = None  # made again; see `built`
    verdict: Verdict | None = None
    sanitizer: Verdict | None = None
    sanitizer_skipped: str = ""  # why no sanitizer could look at the winner, and what one needs
    sanitizers: Sanitizers | None = None  # that examined the winner, or would have
    audit: Audit | None = None
    timings: list[Timing] = field(default_factory=list)
    baselines: Baselines | None = None  # measured again; before that, those of the search
    seed_id: str | None = None
    versus_seed: Comparison | None = None
    own_work: OwnWork | None = None
    other_shapes: ShapeCheck | None = None
    not_done: dict[str, str] = field(default_factory=dict)  # why the engine failed, by informing step
    leaders: Sequence[Leader] = ()
    labels: list[Label] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)  # of each step

    @property
    def passed(self) -> bool:
        """Say whether every step passed, as far as the certificate has come."""
        return self.finding is None

    @property
    def reason(self) -> str:
        """Return why the winner did not pass, "" where it did."""
        return self.finding.reason if self.finding else ""

    @property
    def reason_code(self) -> ReasonCode:
        """Return the code of the finding, NONE without one."""
        return self.finding.code if self.finding else ReasonCode.NONE

    @property
    def built(self) -> Build:
        """Return the build that the steps measure.

        Raises:
            EngineError: it was not made again yet.
        """
        if self.build is None:
            raise EngineError(f"{self.standing.candidate.id}: not built again yet")
        return self.build

    @property
    def is_quarantined(self) -> bool:
        """Say whether the gain is so large that it does not count before it is confirmed."""
        return self.audit is not None and self.audit.is_quarantined

    @property
    def timing(self) -> Timing | None:
        """Return the timing that stands for all: the middle one by its speedup, with an interval that spans them all.

        No timing is picked for its figure. The interval shows the differences between processes; one timing's own
        interval holds only those between its blocks.
        """
        if not self.timings:
            return None
        middle = sorted(self.timings, key=lambda t: t.speedup or 0.0)[len(self.timings) // 2]
        intervals = [t.speedup_ci95 for t in self.timings if t.speedup_ci95 is not None]
        if not intervals:
            return middle
        lows, highs = zip(*intervals, strict=True)
        return dataclasses.replace(middle, speedup_ci95=(min(lows), max(highs)))

    @property
    def speedup_vs_best(self) -> float | None:
        """Return best baseline / winner, from the timing that stands for all."""
        if self.timing is None or self.timing.speedup is None:
            return None
        retimed = dataclasses.replace(self.standing.evaluation, timing=self.timing, speedup_vs_best=None)
        return speedup_vs_best(retimed, self.baselines)

    @property
    def measured_s(self) -> float:
        """Return the seconds of the verifications and timings, the audit's included."""
        audit = self.audit
        timings = [*self.timings, *(audit.timings if audit else ())]
        verdicts = [v for v in (self.verdict, self.sanitizer, audit.verdict if audit else None) if v]
        timings_s: float = sum(timing.benchmark_s for timing in timings)
        return timings_s + sum(verdict.verify_s for verdict in verdicts)

    def evaluation(self, key: str, *, total_s: float) -> Evaluation:
        """Return the certificate as the winner's evaluation."""
        timing = self.timing
        return Evaluation(
            key=key,
            candidate_id=self.standing.candidate.id,
            purpose=Purpose.CERTIFY,
            status=self.reason_code.status,
            reason_code=self.reason_code,
            reason=self.reason,
            build=self.build,
            verdict=self.verdict,
            timing=dataclasses.replace(timing, labels=tuple(self.labels)) if timing else None,
            speedup_vs_best=self.speedup_vs_best,
            total_s=total_s,
        )

    def label(self) -> None:
        """Gather the labels of the verification, the timings, the audit, the sanitizers, own work and other shapes."""
        labels = [*(self.verdict.labels if self.verdict else ())]
        labels += [label for timing in self.timings for label in timing.labels]
        if self.audit is not None and self.audit.passed:
            # a single timing is labelled quarantined by its ratio; the audit has confirmed it
            labels = [*(label for label in labels if label is not Label.QUARANTINED), Label.AUDITED]
        if self.is_quarantined:
            labels.append(Label.QUARANTINED)
        if self.own_work is not None and self.own_work.share is not None and self.own_work.share < NOTABLE_SHARE:
            labels.append(Label.VENDOR_LIBRARY)
        if self.other_shapes is not None and self.other_shapes.is_specialised:
            labels.append(Label.SHAPE_SPECIALISED)
        if self.sanitizer_skipped:
            labels.append(Label.NOT_SANITIZED)
        self.labels = list(dict.fromkeys(labels))

    def to_json(self, failures: Sequence[FailedBefore], outcome: SearchOutcome) -> dict[str, Any]:
        """Return the content of certificate.json."""
        candidate, build, baselines = self.standing.candidate, self.build, self.baselines
        return {
            "schema_version": CERTIFICATE_SCHEMA_VERSION,
            "outcome": outcome.value,
            "passed": self.passed,
            "reason": self.reason,
            "reason_code": self.reason_code.value,
            "quarantined": self.is_quarantined,
            "labels": [label.value for label in self.labels],
            "candidate": {k: v for k, v in candidate.to_json().items() if k != "source"},
            "build": {"key": build.key, "flags": list(build.flags), "toolchain": build.toolchain} if build else None,
            "selection": [leader.to_json() for leader in self.leaders],
            "verification": self.verdict.to_json() if self.verdict else None,
            "sanitizer": self._sanitizer_json(),
            "timings": [timing.to_json() for timing in self.timings],
            "baselines": [b.to_json() for b in baselines.entries] if baselines else [],
            "floor": baselines.floor.to_json() if baselines else None,
            "fraction_of_floor": self._fraction_of_floor(),
            "speedup_vs_best": self.speedup_vs_best,
            "audit": self.audit.to_json() if self.audit else None,
            "seed_kernel": self.seed_id,
            "versus_seed": self.versus_seed.to_json() if self.versus_seed else None,
            "own_work": self.own_work.to_json() if self.own_work else None,
            "other_shapes": self.other_shapes.to_json() if self.other_shapes else None,
            "not_done": self.not_done,
            "failed_before": [dataclasses.asdict(failure) for failure in failures],
            "seconds": {step: round(seconds, 3) for step, seconds in self.seconds.items()},
            **self.circumstances.to_json(),
        }

    def _fraction_of_floor(self) -> float | None:
        """Return floor / time: 1 is the hard floor, beyond which no time is believed."""
        if self.baselines is None or self.timing is None or not self.timing.median_ms:
            return None
        return self.baselines.floor.floor_ms / self.timing.median_ms

    def _sanitizer_json(self) -> dict[str, Any] | None:
        if self.sanitizer_skipped:
            return {"build": self.sanitizers, "verdict": None, "skipped": self.sanitizer_skipped}
        return {"build": self.sanitizers, "verdict": self.sanitizer.to_json()} if self.sanitizer else None
