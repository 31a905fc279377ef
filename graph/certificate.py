"""The winner's certificate: everything that is checked once more, in processes that share nothing with the search.

Steps: re-verification on 20 further secret seeds, a sanitizer build that is run, three re-timings, for an unusual gain an
audit (see audit.py), a comparison with the best seed kernel in one alternating run. Not covered: other shapes, a second
machine.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ridgeline.checkpoints.archive import comparison_key
from ridgeline.checkpoints.result import speedup_vs_best
from ridgeline.graph.audit import Audit, needs_audit, run_audit
from ridgeline.graph.elites import Standing, read_standings
from ridgeline.graph.events import emit
from ridgeline.graph.step_memory import measure_once
from ridgeline.tools.compiler import evaluation_key
from ridgeline.tools.engine import BenchmarkTask, CompareTask, CompileTask, VerifyTask
from ridgeline.tools.errors import EngineError
from ridgeline.tools.records import (
    Baselines,
    Build,
    Comparison,
    DeviceKind,
    Evaluation,
    Label,
    Origin,
    Purpose,
    ReasonCode,
    Status,
    Timing,
    Verdict,
)
from ridgeline.tools.runner_plans import SANITIZERS

if TYPE_CHECKING:
    from ridgeline.graph.context import SearchContext

logger = logging.getLogger(__name__)

CERTIFICATE_SCHEMA_VERSION = 1
EXTRA_TRIALS = 20
RETIMINGS = 3
GPU_SPREAD = 0.03
GPU_SANITIZERS = "compute-sanitizer"


Step = Callable[["SearchContext", "Certificate", Build], Coroutine[Any, Any, None]]


@dataclass(slots=True, kw_only=True)
class Certificate:
    """What is known of one winner; `reason` says why it did not pass."""

    standing: Standing
    reason: str = ""
    reason_code: ReasonCode = ReasonCode.NONE
    status: Status = Status.OK
    verdict: Verdict | None = None
    sanitizer: Verdict | None = None
    sanitizer_skipped: str = ""  # why this target has no such build
    sanitizers: str = SANITIZERS  # what examined it
    audit: Audit | None = None
    timings: list[Timing] = field(default_factory=list)
    seed_id: str | None = None
    versus_seed: Comparison | None = None
    speedup_vs_best: float | None = None
    labels: list[Label] = field(default_factory=list)
    context: dict[str, Any] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        """Say whether every step passed."""
        return not self.reason

    @property
    def is_quarantined(self) -> bool:
        """Say whether the gain is so large that it does not count until it is confirmed."""
        return self.audit is not None and self.audit.is_quarantined

    def fail(self, status: Status, reason_code: ReasonCode, reason: str) -> None:
        """Say why the winner does not pass."""
        self.status, self.reason_code, self.reason = status, reason_code, reason

    def to_json(self, failures: Sequence[dict[str, str]], outcome: str) -> dict[str, Any]:
        """Return the content of certificate.json."""
        candidate, build = self.standing.candidate, self.standing.evaluation.build
        return {
            "schema_version": CERTIFICATE_SCHEMA_VERSION,
            "outcome": outcome,
            "passed": self.passed,
            "reason": self.reason,
            "reason_code": self.reason_code.value,
            "quarantined": self.is_quarantined,
            "candidate": {k: v for k, v in candidate.to_json().items() if k != "source"},
            "build": {"key": build.key, "flags": list(build.flags), "toolchain": build.toolchain} if build else None,
            "verification": self.verdict.to_json() if self.verdict else None,
            "sanitizer": self._sanitizer_json(),
            "timings": [timing.to_json() for timing in self.timings],
            "audit": self.audit.to_json() if self.audit else None,
            "seed_kernel": self.seed_id,
            "versus_seed": self.versus_seed.to_json() if self.versus_seed else None,
            "speedup_vs_best": self.speedup_vs_best,
            "labels": [label.value for label in self.labels],
            "failed_before": list(failures),
            **self.context,
        }

    def _sanitizer_json(self) -> dict[str, Any] | None:
        if self.sanitizer_skipped:
            return {"build": self.sanitizers, "verdict": None, "skipped": self.sanitizer_skipped}
        return {"build": self.sanitizers, "verdict": self.sanitizer.to_json()} if self.sanitizer else None


async def certify_candidate(context: SearchContext, standing: Standing) -> Certificate:
    """Return the certificate of one elite, stopped at its first failing step; its evaluation is stored."""
    certificate = Certificate(standing=standing, context=await asyncio.to_thread(_circumstances, context))
    build = await _build(context, certificate)
    for step in (_verify, _sanitize, _time, _audit, _compare):
        if build is None or certificate.reason:
            break
        emit(_event(standing, step.__name__[1:], passed=None))
        await _run(step, context, certificate, build)
        emit(_event(standing, step.__name__[1:], passed=not certificate.reason, detail=certificate.reason))
    _label(certificate, await asyncio.to_thread(context.archive.baselines))
    if build is not None:
        await _store(context, certificate, build)
    return certificate


async def _run(step: Step, context: SearchContext, certificate: Certificate, build: Build) -> None:
    """Run one step; an engine that fails costs this elite its certificate, or only the comparison with the seed."""
    try:
        await step(context, certificate, build)
    except EngineError as error:
        logger.exception("%s: %s failed", certificate.standing.candidate.id, step.__name__)
        if step is _compare:
            emit({"event": "warning", "message": f"not compared with {certificate.seed_id}: {error}"})
        else:
            reason = f"{step.__name__[1:]}: the engine failed: {error}"
            certificate.fail(Status.REFUSED, ReasonCode.ENGINE_FAILED, reason)


def _event(standing: Standing, step: str, *, passed: bool | None, detail: str = "") -> Any:
    return {
        "event": "certify",
        "candidate_id": standing.candidate.id,
        "step": step,
        "passed": passed,
        "detail": detail,
    }


def _circumstances(context: SearchContext) -> dict[str, Any]:
    baselines, description = context.archive.baselines(), context.archive.description()
    return {
        "problem": context.problem.name,
        "tolerance": context.target.tolerance,
        "reference_sha256": description.reference_sha256 if description else "",
        "torch_version": description.torch_version if description else "",
        "baselines": [b.to_json() for b in baselines.entries] if baselines else [],
        "floor": baselines.floor.to_json() if baselines else None,
        "device": context.target.device.to_json(),
    }


async def _build(context: SearchContext, certificate: Certificate) -> Build | None:
    candidate = certificate.standing.candidate
    build = await context.engine.submit(CompileTask(problem=await context.described(), candidate=candidate))
    if build.status is not Status.OK:
        certificate.fail(build.status, build.reason_code, f"does not build again: {build.reason}")
        return None
    return build


async def _verify(context: SearchContext, certificate: Certificate, build: Build) -> None:
    task = VerifyTask(
        problem=await context.described(),
        candidate=certificate.standing.candidate,
        build=build,
        purpose=Purpose.CERTIFY,
        extra_trials=EXTRA_TRIALS,
    )
    verdict = await measure_once(context, "verify", task.candidate, build, task, Verdict)
    certificate.verdict = verdict
    if verdict.status is not Status.OK:
        _fail_by(certificate, verdict, "re-verification")


def _fail_by(certificate: Certificate, piece: Verdict | Timing, step: str) -> None:
    reason = f"{step}: {piece.status} ({piece.reason_code}): {piece.reason}"
    certificate.fail(piece.status, piece.reason_code, reason)


async def _sanitize(context: SearchContext, certificate: Certificate, build: Build) -> None:
    """Run it under sanitizers: a build of its own on a CPU, the very build under compute-sanitizer on a GPU.

    Where there is no such build or run, the step is skipped and says why.
    """
    candidate, problem = certificate.standing.candidate, await context.described()
    if context.target.device.kind is DeviceKind.CPU:
        build = await context.engine.submit(CompileTask(problem=problem, candidate=candidate, sanitize=SANITIZERS))
    else:
        certificate.sanitizers = GPU_SANITIZERS
    if _is_unsupported(build):
        certificate.sanitizer_skipped = build.reason
        return
    if build.status is not Status.OK:
        certificate.fail(build.status, build.reason_code, f"sanitizer build: {build.reason}")
        return
    task = VerifyTask(problem=problem, candidate=candidate, build=build, purpose=Purpose.CERTIFY, sanitized=True)
    verdict = await measure_once(context, "sanitize", candidate, build, task, Verdict)
    if _is_unsupported(verdict):
        certificate.sanitizer_skipped = verdict.reason
        return
    certificate.sanitizer = verdict
    if verdict.status is not Status.OK:
        _fail_by(certificate, verdict, "sanitizers")


def _is_unsupported(piece: Build | Verdict) -> bool:
    return piece.status is Status.REFUSED and piece.reason_code is ReasonCode.INTERFACE_UNSUPPORTED


async def _time(context: SearchContext, certificate: Certificate, build: Build) -> None:
    """Time the winner three times, each in a new process; every one must show the gain."""
    assert certificate.verdict is not None  # noqa: S101  # _verify ran before
    for number in range(RETIMINGS):
        task = BenchmarkTask(
            problem=await context.described(),
            candidate=certificate.standing.candidate,
            build=build,
            verdict=certificate.verdict,
            purpose=Purpose.CERTIFY,
        )
        timing = await measure_once(context, f"time {number}", task.candidate, build, task, Timing)
        certificate.timings.append(timing)
        if timing.status is not Status.OK:
            _fail_by(certificate, timing, "re-timing")
            return
    _expect_steady_gain(context, certificate)


def _expect_steady_gain(context: SearchContext, certificate: Certificate) -> None:
    timings = certificate.timings
    medians = [t.median_ms for t in timings if t.median_ms is not None]
    for timing in timings:
        if timing.speedup_ci95 is not None and timing.speedup_ci95[0] <= 1:
            low, high = timing.speedup_ci95
            reason = f"re-timing: the speedup's interval {low:.3f} to {high:.3f} does not exclude 1"
            certificate.fail(Status.UNTRUSTED, ReasonCode.NO_GAIN, reason)
            return
    if context.target.device.kind is DeviceKind.CUDA and max(medians) > (1 + GPU_SPREAD) * min(medians):
        reason = f"re-timing: {min(medians):.4g} to {max(medians):.4g} ms spread more than {GPU_SPREAD:.0%}"
        certificate.fail(Status.UNTRUSTED, ReasonCode.WITNESS_DISAGREES, reason)


async def _audit(context: SearchContext, certificate: Certificate, build: Build) -> None:
    """Audit an unusual gain; an ordinary one passes."""
    timing, verdict = _middle(certificate.timings), certificate.verdict
    baselines = await asyncio.to_thread(context.archive.baselines)
    if timing is None or verdict is None or not needs_audit(timing.speedup, _speedup_vs_best(certificate, baselines)):
        return
    candidate = certificate.standing.candidate
    certificate.audit = audit = await run_audit(context, candidate, build, verdict, certificate.timings)
    if not audit.passed:
        certificate.fail(Status.UNTRUSTED, audit.reason_code, audit.reason)


async def _compare(context: SearchContext, certificate: Certificate, build: Build) -> None:
    """Compare with the fastest seed kernel in one alternating run; a tie is reported, not failed."""
    standings = await asyncio.to_thread(read_standings, context.archive)
    winner = certificate.standing.candidate
    seed = next((s for s in standings if s.candidate.origin is Origin.SEED and s.candidate.id != winner.id), None)
    if seed is None:
        return
    certificate.seed_id = seed.candidate.id
    problem = await context.described()
    seed_build = await context.engine.submit(CompileTask(problem=problem, candidate=seed.candidate))
    if seed_build.status is not Status.OK:
        reason = f"not compared with {seed.candidate.id}, which does not build: {seed_build.reason}"
        emit({"event": "warning", "message": reason})
        return
    key = comparison_key(winner.id, seed.candidate.id)
    if known := await asyncio.to_thread(context.archive.find, "comparisons", key):
        certificate.versus_seed = Comparison.from_json(dict(known))
        return
    task = CompareTask(problem=problem, first=winner, first_build=build, second=seed.candidate, second_build=seed_build)
    certificate.versus_seed = found = await context.engine.submit(task)
    await asyncio.to_thread(context.archive.save, "comparisons", key, winner.id, found)


def _label(certificate: Certificate, baselines: Baselines | None) -> None:
    labels = [*(certificate.verdict.labels if certificate.verdict else ())]
    labels += [label for timing in certificate.timings for label in timing.labels]
    certificate.speedup_vs_best = _speedup_vs_best(certificate, baselines)
    if certificate.audit is not None and certificate.audit.passed:
        # a single timing is labelled quarantined by its ratio; the audit has confirmed it
        labels = [*(label for label in labels if label is not Label.QUARANTINED), Label.AUDITED]
    if certificate.is_quarantined:
        labels.append(Label.QUARANTINED)
    certificate.labels = list(dict.fromkeys(labels))


def _speedup_vs_best(certificate: Certificate, baselines: Baselines | None) -> float | None:
    """Return best baseline / winner from the middle one of the re-timings."""
    timing = _middle(certificate.timings)
    if timing is None or timing.speedup is None:
        return None
    retimed = dataclasses.replace(certificate.standing.evaluation, timing=timing, speedup_vs_best=None)
    return speedup_vs_best(retimed, baselines)


def _middle(timings: Sequence[Timing]) -> Timing | None:
    """Return the timing that stands for all: the middle one by its speedup, so that none is picked for its figure."""
    return sorted(timings, key=lambda t: t.speedup or 0.0)[len(timings) // 2] if timings else None


async def _store(context: SearchContext, certificate: Certificate, build: Build) -> None:
    """Store the certify evaluation: the middle one of the re-timings stands for all."""
    candidate = certificate.standing.candidate
    timing = _middle(certificate.timings)
    audit = certificate.audit
    timings = [*certificate.timings, *(audit.timings if audit else ())]
    verdicts = [v for v in (certificate.verdict, certificate.sanitizer, audit.verdict if audit else None) if v]
    evaluation = Evaluation(
        key=evaluation_key(build.key, await context.described(), Purpose.CERTIFY),
        candidate_id=candidate.id,
        purpose=Purpose.CERTIFY,
        status=certificate.status,
        reason_code=certificate.reason_code,
        reason=certificate.reason,
        build=build,
        verdict=certificate.verdict,
        timing=dataclasses.replace(timing, labels=tuple(certificate.labels)) if timing else None,
        speedup_vs_best=certificate.speedup_vs_best,
        total_s=sum(t.benchmark_s for t in timings) + sum(v.verify_s for v in verdicts),
    )
    await asyncio.to_thread(context.archive.add_evaluation, evaluation)
    on_gpu = context.target.device.kind is DeviceKind.CUDA
    total_s = evaluation.total_s
    await asyncio.to_thread(
        context.archive.charge,
        f"{candidate.id}:{Purpose.CERTIFY}:{build.key}",
        cpu_s=0.0 if on_gpu else total_s,
        gpu_s=total_s if on_gpu else 0.0,
        wall_s=total_s,
        what=Purpose.CERTIFY,
    )
