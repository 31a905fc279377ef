"""The steps of the winner's certificate: everything is checked once more, in processes that share nothing with the search.

Required, in order: re-verification on 20 further secret seeds; a sanitizer build that is run (a GPU: compute-sanitizer);
three re-timings; all of PyTorch's times again; for an unusual gain an audit (audit.py). The first step that fails ends
the certificate. Informing, without a say in whether the winner passes: a comparison with the best seed kernel in one
alternating run; whose code the time is spent in; three other shapes (other_shapes.py). Not covered: a second machine.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.graph.certificate.audit import EXTRA_TRIALS, needs_audit, run_audit
from ridgeline.graph.certificate.certificate import Certificate
from ridgeline.graph.certificate.circumstances import circumstances
from ridgeline.graph.certificate.leaders import Leader
from ridgeline.graph.certificate.other_shapes import try_other_shapes
from ridgeline.graph.search.elites import Standing, read_standings
from ridgeline.graph.search.events import emit
from ridgeline.tools.engine import BaselineTask, BenchmarkTask, CompareTask, CompileTask, ProfileTask, VerifyTask
from ridgeline.tools.errors import EngineError
from ridgeline.tools.records.keys import evaluation_key
from ridgeline.tools.records.results import Build, Evaluation, Timing, Verdict
from ridgeline.tools.records.vocabulary import DeviceKind, Origin, Purpose, ReasonCode, Status

if TYPE_CHECKING:
    from ridgeline.graph.search.context import SearchContext

logger = logging.getLogger(__name__)

RETIMINGS = 3
GPU_SPREAD = 0.03
GPU_SANITIZERS = "compute-sanitizer"
LONGEST_BASELINES_S = 1800.0
"""Each of up to six compiled modes may take five minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of a certificate; `name` is published in events and in certificate.json's `seconds`.

    `run` fills the certificate in and returns why it had nothing to do, None when it had.
    """

    name: str
    run: Callable[[SearchContext, Certificate, Build], Coroutine[Any, Any, str | None]]
    is_required: bool = True  # else an engine that fails costs only what the step would have added
    is_charged_whole: bool = False  # its result does not hold its own time


async def certify_candidate(context: SearchContext, standing: Standing, leaders: Sequence[Leader] = ()) -> Certificate:
    """Return the certificate of one elite, stopped at its first failing step; its evaluation is stored."""
    certificate = Certificate(
        standing=standing,
        leaders=leaders,
        baselines=await context.baselines(),
        context=await asyncio.to_thread(circumstances, context, standing.candidate),
    )
    build = await _build(context, certificate)
    for step in STEPS:
        if build is None or not certificate.passed:
            break
        _tell(standing, step, passed=None)
        detail = await _run(step, context, certificate, build)
        _tell(standing, step, passed=certificate.passed, detail=certificate.reason or detail)
    certificate.label()
    if build is not None:
        await _store(context, certificate, build)
    return certificate


async def _run(step: Step, context: SearchContext, certificate: Certificate, build: Build) -> str:
    """Run one step and return why it had nothing to do, "" when it had.

    An engine that fails costs this elite its certificate, or only what the step would have added.
    """
    started, detail = time.monotonic(), ""
    try:
        detail = await step.run(context, certificate, build) or ""
    except EngineError as error:
        candidate = certificate.standing.candidate
        logger.exception("%s: %s failed", candidate.id, step.name)
        if step.is_required:
            certificate.fail(Status.REFUSED, ReasonCode.ENGINE_FAILED, f"{step.name}: the engine failed: {error}")
        else:
            emit({"event": "warning", "message": f"{candidate.id} is certified without {step.name}: {error}"})
    certificate.seconds[step.name] = time.monotonic() - started
    return detail


def _tell(standing: Standing, step: Step, *, passed: bool | None, detail: str = "") -> None:
    emit(
        {
            "event": "certify",
            "candidate_id": standing.candidate.id,
            "step": step.name,
            "passed": passed,
            "detail": detail,
        }
    )


async def _build(context: SearchContext, certificate: Certificate) -> Build | None:
    task = CompileTask(problem=context.described, candidate=certificate.standing.candidate)
    build = await context.engine.submit(task)
    if build.status is Status.OK:
        return build
    certificate.fail(build.status, build.reason_code, f"does not build again: {build.reason}")
    return None


async def _verify(context: SearchContext, certificate: Certificate, build: Build) -> None:
    task = VerifyTask(
        problem=context.described,
        candidate=certificate.standing.candidate,
        build=build,
        purpose=Purpose.CERTIFY,
        step="verify",
        extra_trials=EXTRA_TRIALS,
    )
    certificate.verdict = verdict = await context.engine.submit(task)
    _expect_ok(certificate, verdict, "re-verification")


def _expect_ok(certificate: Certificate, result: Verdict | Timing, what: str) -> None:
    if result.status is not Status.OK:
        reason = f"{what}: {result.status} ({result.reason_code}): {result.reason}"
        certificate.fail(result.status, result.reason_code, reason)


async def _sanitize(context: SearchContext, certificate: Certificate, build: Build) -> None:
    """Run the winner under sanitizers: a build of its own on a CPU, the very build under compute-sanitizer on a GPU.

    Where there is no such build or run, the step is skipped and says why.
    """
    candidate, problem = certificate.standing.candidate, context.described
    if problem.device.kind is DeviceKind.CPU:
        build = await context.engine.submit(CompileTask(problem=problem, candidate=candidate, sanitized=True))
    else:
        certificate.sanitizers = GPU_SANITIZERS
    if _is_unsupported(build):
        certificate.sanitizer_skipped = build.reason
        return
    if build.status is not Status.OK:
        certificate.fail(build.status, build.reason_code, f"sanitizer build: {build.reason}")
        return
    task = VerifyTask(
        problem=problem,
        candidate=candidate,
        build=build,
        purpose=Purpose.CERTIFY,
        step="sanitize",
        sanitized=True,
    )
    verdict = await context.engine.submit(task)
    if _is_unsupported(verdict):
        certificate.sanitizer_skipped = verdict.reason
        return
    certificate.sanitizer = verdict
    _expect_ok(certificate, verdict, "sanitizers")


def _is_unsupported(result: Build | Verdict) -> bool:
    return result.reason_code is ReasonCode.INTERFACE_UNSUPPORTED


async def _time(context: SearchContext, certificate: Certificate, build: Build) -> None:
    """Time the winner RETIMINGS times, each in a new process; every timing must show the gain."""
    assert certificate.verdict is not None  # noqa: S101  # _verify ran before
    for number in range(RETIMINGS):
        task = BenchmarkTask(
            problem=context.described,
            candidate=certificate.standing.candidate,
            build=build,
            verdict=certificate.verdict,
            purpose=Purpose.CERTIFY,
            step=f"time {number}",
        )
        timing = await context.engine.submit(task)
        certificate.timings.append(timing)
        _expect_ok(certificate, timing, "re-timing")
        if not certificate.passed:
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
        certificate.fail(Status.UNTRUSTED, ReasonCode.TIMINGS_SPREAD, reason)


async def _baselines(context: SearchContext, certificate: Certificate, _build: Build) -> None:
    """Measure all of PyTorch's own times again, once for the elites of one search."""
    measured = (await asyncio.to_thread(context.archive.run)).baselines_again
    if measured is None:
        task = BaselineTask(problem=context.described, again=True, timeout_s=LONGEST_BASELINES_S)
        measured = await context.engine.submit(task)
        await asyncio.to_thread(context.archive.save_run, RunRecord(baselines_again=measured))
    certificate.baselines = measured


async def _audit(context: SearchContext, certificate: Certificate, build: Build) -> str | None:
    """Audit an unusual gain; an ordinary one passes."""
    timing, verdict = certificate.timing, certificate.verdict
    if timing is None or verdict is None or not needs_audit(timing.speedup, certificate.speedup_vs_best):
        return "not needed: no unusual gain"
    candidate = certificate.standing.candidate
    certificate.audit = audit = await run_audit(context, candidate, build, verdict, certificate.timings)
    if not audit.passed:
        certificate.fail(Status.UNTRUSTED, audit.reason_code, audit.reason)
    return None


async def _compare(context: SearchContext, certificate: Certificate, build: Build) -> str | None:
    """Compare with the fastest seed kernel in one alternating run; a tie is reported, not failed."""
    standings = await asyncio.to_thread(read_standings, context.archive)
    winner = certificate.standing.candidate
    seed = next((s for s in standings if s.candidate.origin is Origin.SEED and s.candidate.id != winner.id), None)
    if seed is None:
        return "there is no other seed kernel"
    certificate.seed_id = seed.candidate.id
    seed_build = await context.engine.submit(CompileTask(problem=context.described, candidate=seed.candidate))
    if seed_build.status is not Status.OK:
        reason = f"not compared with {seed.candidate.id}, which does not build: {seed_build.reason}"
        emit({"event": "warning", "message": reason})
        return reason
    task = CompareTask(
        problem=context.described, first=winner, first_build=build, second=seed.candidate, second_build=seed_build
    )
    certificate.versus_seed = await context.engine.submit(task)
    return None


async def _own_work(context: SearchContext, certificate: Certificate, build: Build) -> None:
    """Find out whose code the winner's time is spent in."""
    task = ProfileTask(
        problem=context.described,
        candidate=certificate.standing.candidate,
        build=build,
        purpose=Purpose.CERTIFY,
        step="own work",
        timing=certificate.timing,
    )
    certificate.own_work = (await context.engine.submit(task)).own_work


async def _other_shapes(context: SearchContext, certificate: Certificate, _build: Build) -> None:
    """Try the winner's source at other shapes; the label says when it serves this one alone."""
    certificate.other_shapes = await try_other_shapes(context, certificate.standing.candidate)


STEPS = (
    Step(name="verify", run=_verify),
    Step(name="sanitize", run=_sanitize),
    Step(name="time", run=_time),
    Step(name="baselines", run=_baselines, is_charged_whole=True),
    Step(name="audit", run=_audit),
    Step(name="compare", run=_compare, is_required=False, is_charged_whole=True),
    Step(name="own_work", run=_own_work, is_required=False, is_charged_whole=True),
    Step(name="other_shapes", run=_other_shapes, is_required=False, is_charged_whole=True),
)


async def _store(context: SearchContext, certificate: Certificate, build: Build) -> None:
    """Store the certify evaluation and charge what the certificate took."""
    beyond_s = sum(certificate.seconds.get(step.name, 0.0) for step in STEPS if step.is_charged_whole)
    key = evaluation_key(build.key, context.described, Purpose.CERTIFY)
    evaluation = certificate.evaluation(key, build, total_s=certificate.measured_s + beyond_s)
    await asyncio.to_thread(_save, context, evaluation, build)


def _save(context: SearchContext, evaluation: Evaluation, build: Build) -> None:
    context.archive.add_evaluation(evaluation)
    on_gpu = context.target.device.kind is DeviceKind.CUDA
    context.archive.charge(
        f"{evaluation.candidate_id}:{Purpose.CERTIFY}:{build.key}",
        cpu_s=0.0 if on_gpu else evaluation.total_s,
        gpu_s=evaluation.total_s if on_gpu else 0.0,
        wall_s=evaluation.total_s,
        what=Purpose.CERTIFY,
    )
