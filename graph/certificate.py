"""The winner's certificate: everything that is checked once more, in processes that share nothing with the search.

Steps: re-verification on 20 further secret seeds, a sanitizer build that is run, three re-timings, a comparison with the
best seed kernel in one alternating run. Not covered: other shapes, a second machine.
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
from ridgeline.graph.elites import Standing, read_standings
from ridgeline.graph.events import emit
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

if TYPE_CHECKING:
    from ridgeline.graph.context import SearchContext

logger = logging.getLogger(__name__)

CERTIFICATE_SCHEMA_VERSION = 1
EXTRA_TRIALS = 20
RETIMINGS = 3
SANITIZERS = "address,undefined"
GPU_SPREAD = 0.03
AUDIT_ABOVE = 3.0
QUARANTINE_ABOVE = 10.0
"""Over the best baseline; EVALUATION: published kernels beyond these were mostly harness errors."""


Step = Callable[["SearchContext", "Certificate", Build], Coroutine[Any, Any, None]]


@dataclass(slots=True, kw_only=True)
class Certificate:
    """What is known of one winner; `reason` says why it did not pass."""

    standing: Standing
    reason: str = ""
    verdict: Verdict | None = None
    sanitizer: Verdict | None = None
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

    def to_json(self, failures: Sequence[dict[str, str]], outcome: str) -> dict[str, Any]:
        """Return the content of certificate.json."""
        candidate, build = self.standing.candidate, self.standing.evaluation.build
        return {
            "schema_version": CERTIFICATE_SCHEMA_VERSION,
            "outcome": outcome,
            "passed": self.passed,
            "reason": self.reason,
            "candidate": {k: v for k, v in candidate.to_json().items() if k != "source"},
            "build": {"key": build.key, "flags": list(build.flags), "toolchain": build.toolchain} if build else None,
            "verification": self.verdict.to_json() if self.verdict else None,
            "sanitizer": {"build": SANITIZERS, "verdict": self.sanitizer.to_json()} if self.sanitizer else None,
            "timings": [timing.to_json() for timing in self.timings],
            "seed_kernel": self.seed_id,
            "versus_seed": self.versus_seed.to_json() if self.versus_seed else None,
            "speedup_vs_best": self.speedup_vs_best,
            "labels": [label.value for label in self.labels],
            "failed_before": list(failures),
            **self.context,
        }


async def certify_candidate(context: SearchContext, standing: Standing) -> Certificate:
    """Return the certificate of one elite, stopped at its first failing step; its evaluation is stored."""
    certificate = Certificate(standing=standing, context=await asyncio.to_thread(_circumstances, context))
    build = await _build(context, certificate)
    for step in (_verify, _sanitize, _time, _compare):
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
            certificate.reason = f"{step.__name__[1:]}: the engine failed: {error}"


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
        certificate.reason = f"does not build again: {build.reason}"
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
    certificate.verdict = verdict = await context.engine.submit(task)
    if verdict.status is not Status.OK:
        certificate.reason = f"re-verification: {verdict.status} ({verdict.reason_code}): {verdict.reason}"


async def _sanitize(context: SearchContext, certificate: Certificate, _: Build) -> None:
    """Build with sanitizers and run it; a GPU's sanitizers are no compiler flags and come with that target."""
    if context.target.device.kind is not DeviceKind.CPU:
        return
    candidate, problem = certificate.standing.candidate, await context.described()
    build = await context.engine.submit(CompileTask(problem=problem, candidate=candidate, sanitize=SANITIZERS))
    if build.status is not Status.OK:
        certificate.reason = f"sanitizer build: {build.reason}"
        return
    task = VerifyTask(problem=problem, candidate=candidate, build=build, purpose=Purpose.CERTIFY, sanitized=True)
    certificate.sanitizer = verdict = await context.engine.submit(task)
    if verdict.status is not Status.OK:
        certificate.reason = f"sanitizers: {verdict.status} ({verdict.reason_code}): {verdict.reason}"


async def _time(context: SearchContext, certificate: Certificate, build: Build) -> None:
    """Time the winner three times, each in a new process; every one must show the gain."""
    assert certificate.verdict is not None  # noqa: S101  # _verify ran before
    for _ in range(RETIMINGS):
        task = BenchmarkTask(
            problem=await context.described(),
            candidate=certificate.standing.candidate,
            build=build,
            verdict=certificate.verdict,
            purpose=Purpose.CERTIFY,
        )
        timing = await context.engine.submit(task)
        certificate.timings.append(timing)
        if timing.status is not Status.OK:
            certificate.reason = f"re-timing: {timing.status} ({timing.reason_code}): {timing.reason}"
            return
    certificate.reason = _timing_problem(context, certificate.timings)


def _timing_problem(context: SearchContext, timings: Sequence[Timing]) -> str:
    medians = [t.median_ms for t in timings if t.median_ms is not None]
    for timing in timings:
        if timing.speedup_ci95 is not None and timing.speedup_ci95[0] <= 1:
            low, high = timing.speedup_ci95
            return f"re-timing: the speedup's interval {low:.3f} to {high:.3f} does not exclude 1"
    if context.target.device.kind is DeviceKind.CUDA and max(medians) > (1 + GPU_SPREAD) * min(medians):
        return f"re-timing: {min(medians):.4g} to {max(medians):.4g} ms spread more than {GPU_SPREAD:.0%}"
    return ""


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
    task = CompareTask(problem=problem, first=winner, first_build=build, second=seed.candidate, second_build=seed_build)
    certificate.versus_seed = found = await context.engine.submit(task)
    key = comparison_key(winner.id, seed.candidate.id)
    await asyncio.to_thread(context.archive.save, "comparisons", key, winner.id, found)


def _label(certificate: Certificate, baselines: Baselines | None) -> None:
    labels = [*(certificate.verdict.labels if certificate.verdict else ())]
    labels += [label for timing in certificate.timings for label in timing.labels]
    certificate.speedup_vs_best = ratio = _speedup_vs_best(certificate, baselines)
    if ratio is not None and ratio > AUDIT_ABOVE:
        labels.append(Label.QUARANTINED if ratio > QUARANTINE_ABOVE else Label.AUDITED)
    certificate.labels = list(dict.fromkeys(labels))


def _speedup_vs_best(certificate: Certificate, baselines: Baselines | None) -> float | None:
    """Return best baseline / winner from the middle one of the re-timings."""
    timing = _middle(certificate.timings)
    if timing is None or timing.speedup is None:
        return None
    retimed = dataclasses.replace(certificate.standing.evaluation, timing=timing, speedup_vs_best=None)
    return speedup_vs_best(retimed, baselines)


def _middle(timings: Sequence[Timing]) -> Timing | None:
    """Return the timing that stands for all: the middle one by its median."""
    return sorted(timings, key=lambda t: t.median_ms or 0.0)[len(timings) // 2] if timings else None


async def _store(context: SearchContext, certificate: Certificate, build: Build) -> None:
    """Store the certify evaluation: the middle one of the re-timings stands for all."""
    candidate = certificate.standing.candidate
    timing = _middle(certificate.timings)
    failed = [p for p in (certificate.verdict, certificate.sanitizer, timing) if p and p.status is not Status.OK]
    is_ok = certificate.passed and timing is not None and timing.median_ms is not None
    evaluation = Evaluation(
        key=evaluation_key(build.key, await context.described(), Purpose.CERTIFY),
        candidate_id=candidate.id,
        purpose=Purpose.CERTIFY,
        status=Status.OK if is_ok else (failed[0].status if failed else Status.UNTRUSTED),
        reason_code=ReasonCode.NONE if is_ok else (failed[0].reason_code if failed else ReasonCode.WITNESS_DISAGREES),
        reason=certificate.reason,
        build=build,
        verdict=certificate.verdict,
        timing=dataclasses.replace(timing, labels=tuple(certificate.labels)) if timing else None,
        speedup_vs_best=certificate.speedup_vs_best,
        total_s=sum(t.benchmark_s for t in certificate.timings)
        + sum(v.verify_s for v in (certificate.verdict, certificate.sanitizer) if v),
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
