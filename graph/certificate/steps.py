"""The steps of the winner's certificate: everything is checked once more, in processes that share nothing with the search.

Re-verification on 20 further secret seeds, a sanitizer build that is run (a GPU: compute-sanitizer), three re-timings,
all of PyTorch's times again, for an unusual gain an audit (audit.py), a comparison with the best seed kernel in one
alternating run, whose work its time is, three other shapes (other_shapes.py). The first step that fails ends it; the
last three only add to what is known. Not covered: a second machine.
"""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import logging
import time
from collections.abc import Callable, Coroutine, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ridgeline.checkpoints.archive import BASELINES_AGAIN
from ridgeline.graph.certificate.audit import EXTRA_TRIALS, needs_audit, run_audit
from ridgeline.graph.certificate.certificate import Certificate
from ridgeline.graph.certificate.leaders import Leader
from ridgeline.graph.certificate.other_shapes import try_other_shapes
from ridgeline.graph.search.elites import Standing, read_standings
from ridgeline.graph.search.events import emit
from ridgeline.graph.search.step_memory import compare_once, measure_once
from ridgeline.tools.build.header import problem_header
from ridgeline.tools.engine import BaselineTask, BenchmarkTask, CompileTask, ProfileTask, VerifyTask
from ridgeline.tools.errors import EngineError
from ridgeline.tools.records.keys import JUDGE_VERSION, evaluation_key
from ridgeline.tools.records.results import Baselines, Build, Evaluation, Timing, Verdict
from ridgeline.tools.records.vocabulary import DeviceKind, Origin, Purpose, ReasonCode, Status

if TYPE_CHECKING:
    from ridgeline.graph.search.context import SearchContext

logger = logging.getLogger(__name__)

RETIMINGS = 3
GPU_SPREAD = 0.03
GPU_SANITIZERS = "compute-sanitizer"
LONGEST_BASELINES_S = 1800.0
"""Each of up to six compiled modes may take five minutes."""

Step = Callable[["SearchContext", Certificate, Build], Coroutine[Any, Any, str | None]]


async def certify_candidate(context: SearchContext, standing: Standing, leaders: Sequence[Leader] = ()) -> Certificate:
    """Return the certificate of one elite, stopped at its first failing step; its evaluation is stored."""
    certificate = Certificate(
        standing=standing,
        leaders=leaders,
        baselines=await asyncio.to_thread(context.archive.baselines),
        context=await asyncio.to_thread(_circumstances, context, standing),
    )
    build = await _build(context, certificate)
    for step in (*REQUIRED, *INFORMING):
        if build is None or certificate.reason:
            break
        emit(_event(standing, step.__name__[1:], passed=None))
        detail = await _run(step, context, certificate, build)
        emit(_event(standing, step.__name__[1:], passed=not certificate.reason, detail=certificate.reason or detail))
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
        detail = await step(context, certificate, build) or ""
    except EngineError as error:
        name, candidate = step.__name__[1:], certificate.standing.candidate
        logger.exception("%s: %s failed", candidate.id, name)
        if step in INFORMING:
            emit({"event": "warning", "message": f"{candidate.id} is certified without {name}: {error}"})
        else:
            certificate.fail(Status.REFUSED, ReasonCode.ENGINE_FAILED, f"{name}: the engine failed: {error}")
    certificate.seconds[step.__name__[1:]] = time.monotonic() - started
    return detail


def _event(standing: Standing, step: str, *, passed: bool | None, detail: str = "") -> Any:
    return {
        "event": "certify",
        "candidate_id": standing.candidate.id,
        "step": step,
        "passed": passed,
        "detail": detail,
    }


def _circumstances(context: SearchContext, standing: Standing) -> dict[str, Any]:
    """Return what the figures rest on: problem, device, versions, and the hashes of everything that was judged."""
    from ridgeline import __version__

    description = context.archive.description()
    target, candidate = context.target, standing.candidate
    header = problem_header(description.signature, target.device.kind, target.interface) if description else ""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "problem": context.problem.name,
        "tolerance": target.tolerance,
        "device": target.device.to_json(),
        "cores_in_use_by_others": None if context.cores_in_use is None else round(context.cores_in_use(), 2),
        "versions": {
            "ridgeline": __version__,
            "judge": str(JUDGE_VERSION),
            "torch": description.torch_version if description else "",
        },
        "hashes": {
            "source_sha256": hashlib.sha256(candidate.source.encode(errors="surrogatepass")).hexdigest(),
            "header_sha256": hashlib.sha256(header.encode()).hexdigest(),
            "reference_sha256": description.reference_sha256 if description else "",
        },
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
        build = await context.engine.submit(CompileTask(problem=problem, candidate=candidate, sanitized=True))
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
        certificate.fail(Status.UNTRUSTED, ReasonCode.TIMINGS_SPREAD, reason)


async def _baselines(context: SearchContext, certificate: Certificate, _build: Build) -> None:
    """Measure all of PyTorch's own times again, once for the elites of one search."""
    known = (await asyncio.to_thread(context.archive.run)).get(BASELINES_AGAIN)
    if known is not None:
        certificate.baselines = Baselines.from_json(known)
        return
    task = BaselineTask(problem=await context.described(), again=True, timeout_s=LONGEST_BASELINES_S)
    certificate.baselines = measured = await context.engine.submit(task)
    await asyncio.to_thread(context.archive.save_run, {BASELINES_AGAIN: measured.to_json()})


async def _audit(context: SearchContext, certificate: Certificate, build: Build) -> str:
    """Audit an unusual gain; an ordinary one passes."""
    timing, verdict = certificate.timing, certificate.verdict
    if timing is None or verdict is None or not needs_audit(timing.speedup, certificate.speedup_vs_best):
        return "not needed: no unusual gain"
    candidate = certificate.standing.candidate
    certificate.audit = audit = await run_audit(context, candidate, build, verdict, certificate.timings)
    if not audit.passed:
        certificate.fail(Status.UNTRUSTED, audit.reason_code, audit.reason)
    return ""


async def _compare(context: SearchContext, certificate: Certificate, build: Build) -> str:
    """Compare with the fastest seed kernel in one alternating run; a tie is reported, not failed."""
    standings = await asyncio.to_thread(read_standings, context.archive)
    winner = certificate.standing.candidate
    seed = next((s for s in standings if s.candidate.origin is Origin.SEED and s.candidate.id != winner.id), None)
    if seed is None:
        return "there is no other seed kernel"
    certificate.seed_id = seed.candidate.id
    problem = await context.described()
    seed_build = await context.engine.submit(CompileTask(problem=problem, candidate=seed.candidate))
    if seed_build.status is not Status.OK:
        reason = f"not compared with {seed.candidate.id}, which does not build: {seed_build.reason}"
        emit({"event": "warning", "message": reason})
        return reason
    rival = seed.candidate, seed_build
    certificate.versus_seed = await compare_once(context, (winner, build), rival, of=winner)
    return ""


async def _own_work(context: SearchContext, certificate: Certificate, build: Build) -> None:
    """Find out whose code the winner's time is spent in."""
    task = ProfileTask(
        problem=await context.described(),
        candidate=certificate.standing.candidate,
        build=build,
        timing=certificate.timing,
    )
    certificate.own_work = (await context.engine.submit(task)).own_work


async def _other_shapes(context: SearchContext, certificate: Certificate, _build: Build) -> None:
    """Try the winner's source at other shapes; the label says when it serves this one alone."""
    certificate.other_shapes = await try_other_shapes(context, certificate.standing.candidate)


REQUIRED: tuple[Step, ...] = (_verify, _sanitize, _time, _baselines, _audit)
INFORMING: tuple[Step, ...] = (_compare, _own_work, _other_shapes)


def _beyond_s(certificate: Certificate) -> float:
    """Return the seconds of the steps whose results do not hold their own."""
    steps = (_baselines, *INFORMING)
    return sum(certificate.seconds.get(step.__name__[1:], 0.0) for step in steps)


async def _store(context: SearchContext, certificate: Certificate, build: Build) -> None:
    """Store the certify evaluation."""
    candidate = certificate.standing.candidate
    timing = certificate.timing
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
        total_s=sum(t.benchmark_s for t in timings) + sum(v.verify_s for v in verdicts) + _beyond_s(certificate),
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
