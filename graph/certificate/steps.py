"""The steps of the winner's certificate: everything is checked once more, in processes that share nothing with the search.

Required, in order: the build again; re-verification under three secrets of its own, and on 20 further nominal trials; a
sanitizer build that is run (a GPU: compute-sanitizer); three re-timings; all of PyTorch's times again; for an unusual
gain an audit (audit.py). The first step that fails ends the certificate. Informing, without a say in whether the winner
passes: a comparison with the best seed kernel in one alternating run; whose code the time is spent in; three other
shapes (other_shapes.py). Not covered: a second machine.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ridgeline.checkpoints.engine_failures import EngineFailure
from ridgeline.graph.certificate.audit import needs_audit, run_audit
from ridgeline.graph.certificate.certificate import Certificate
from ridgeline.graph.certificate.circumstances import circumstances, now_in_words
from ridgeline.graph.certificate.expected_time import expected_s
from ridgeline.graph.certificate.measuring import EXTRA_TRIALS, failure_of, time_anew, verify_anew
from ridgeline.graph.certificate.other_shapes import try_other_shapes
from ridgeline.graph.search.budget import charge
from ridgeline.graph.search.events import emit, warn
from ridgeline.graph.search.ranking.elites import Standing, read_standings
from ridgeline.graph.search.ranking.leaders import Leader
from ridgeline.tools.engine import BaselineTask, CompareTask, CompileTask, ProfileTask, VerifyTask
from ridgeline.tools.errors import EngineError
from ridgeline.tools.machine.logs import logger_of
from ridgeline.tools.records.finding import Finding
from ridgeline.tools.records.keys import OWN_WORK, evaluation_key
from ridgeline.tools.records.results import Build, FailedComparison, Verdict
from ridgeline.tools.records.vocabulary import DeviceKind, Origin, Purpose, ReasonCode, Sanitizers, Status
from ridgeline.tools.threads import run_whole

if TYPE_CHECKING:
    from ridgeline.graph.search.context import SearchContext

logger = logger_of(__name__)

RETIMINGS = 3
GPU_SPREAD = 0.03
SANITIZE = "sanitize"
"""The one required step that a machine may lack the tools for: it is skipped then, never passed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateStep:
    """One step of a certificate; `name` is published in events and in certificate.json's `seconds`.

    `run` fills the certificate in and returns what it found or why it had nothing to do, where `passed` says too little.
    """

    name: str
    run: Callable[[SearchContext, Certificate], Coroutine[Any, Any, str | None]]
    is_required: bool = True  # else an engine that fails costs only what the step would have added
    is_charged_whole: bool = False  # its result does not hold its own time


async def certify_candidate(
    context: SearchContext, standing: Standing, leaders: Sequence[Leader] = ()
) -> Certificate | EngineFailure:
    """Return the certificate of one elite, stopped at its first failing step; its evaluation is stored.

    An engine that fails in a required step leaves the elite without a certificate: the failure is stored and returned,
    and the next session tries again.

    Raises:
        NotBegun: a stop was asked for. Every measurement that was made is stored, and a resumed search takes it up.
    """
    certificate = Certificate(
        standing=standing,
        leaders=leaders,
        baselines=await context.baselines(),
        context=await run_whole(circumstances, context, standing.candidate),
    )
    for done, step in enumerate(CERTIFICATE_STEPS):
        context.check_stop()
        _tell_begun(standing, done)
        try:
            detail = await _run(step, context, certificate)
        except EngineError as error:
            reason = f"{step.name}: the engine failed: {error}"
            _tell(standing, step, passed=False, detail=reason)
            return await _store_failure(context, standing.candidate.id, reason)
        if step.name in certificate.not_done:
            _tell(standing, step, passed=None, detail=certificate.not_done[step.name])
            continue
        if step.name == SANITIZE and certificate.sanitizer_skipped:
            _tell(standing, step, passed=None, detail=certificate.sanitizer_skipped, skipped=True)
            continue
        _tell(standing, step, passed=certificate.passed, detail=certificate.reason or detail)
        if not certificate.passed:
            break
    certificate.label()
    certificate.context["ended_at"] = now_in_words()
    await _store(context, certificate)
    return certificate


async def _run(step: CertificateStep, context: SearchContext, certificate: Certificate) -> str:
    """Run one step and return what its line says beside its name, "" for `passed`.

    Raises:
        EngineError: the engine failed in a required step. One that only informs is not done, with a warning; a resumed
            search does it.
    """
    started = time.monotonic()
    candidate_id = certificate.standing.candidate.id
    try:
        return await step.run(context, certificate) or ""
    except EngineError as error:
        logger.exception("%s: %s failed", candidate_id, step.name)
        if step.is_required:
            raise
        certificate.not_done[step.name] = str(error)
        message = f"{candidate_id} is certified without {step.name}: {error}; resume the search to try again"
        warn(message)
        return ""
    finally:
        certificate.seconds[step.name] = time.monotonic() - started


def _tell_begun(standing: Standing, done: int) -> None:
    """Tell that the next step begins after so many that are done, and how long the certificate may take from here."""
    names = [step.name for step in CERTIFICATE_STEPS]
    emit(
        {
            "event": "certify",
            "candidate_id": standing.candidate.id,
            "step": names[done],
            "passed": None,
            "detail": "",
            "skipped": False,
            "place": (done + 1, len(names)),
            "left_s": expected_s(standing.evaluation, names[done:]),
        }
    )


def _tell(
    standing: Standing, step: CertificateStep, *, passed: bool | None, detail: str = "", skipped: bool = False
) -> None:
    emit(
        {
            "event": "certify",
            "candidate_id": standing.candidate.id,
            "step": step.name,
            "passed": passed,
            "detail": detail,
            "skipped": skipped,
        }
    )


async def _build(context: SearchContext, certificate: Certificate) -> None:
    task = CompileTask(problem=context.described, candidate=certificate.standing.candidate)
    certificate.build = build = await context.measure(task)
    if build.status is not Status.OK:
        certificate.finding = Finding(code=build.reason_code, reason=f"does not build again: {build.reason}")


async def _verify(context: SearchContext, certificate: Certificate) -> None:
    candidate, build = certificate.standing.candidate, certificate.built
    verdict = await verify_anew(context, candidate, build, step="verify", extra_trials=EXTRA_TRIALS)
    certificate.verdict = verdict
    certificate.finding = failure_of(verdict, "re-verification")


async def _sanitize(context: SearchContext, certificate: Certificate) -> str:
    """Run the winner under the device's sanitizers: compiled into a build of its own, or a tool over the very build.

    Where there is no such build or run, the step is skipped and says why. Returns what was left out of one that ran.
    """
    candidate, problem, build = certificate.standing.candidate, context.described, certificate.built
    certificate.sanitizers = problem.device.kind.sanitizers
    if certificate.sanitizers is Sanitizers.COMPILED:
        build = await context.measure(CompileTask(problem=problem, candidate=candidate, sanitized=True))
    if _is_unsupported(build):
        certificate.sanitizer_skipped = build.reason
        return ""
    if build.status is not Status.OK:
        certificate.finding = Finding(code=build.reason_code, reason=f"sanitizer build: {build.reason}")
        return ""
    task = VerifyTask(
        problem=problem,
        candidate=candidate,
        build=build,
        purpose=Purpose.CERTIFY,
        step=SANITIZE,
        sanitized=True,
    )
    verdict = await context.measure(task)
    if _is_unsupported(verdict):
        certificate.sanitizer_skipped = verdict.reason
        return ""
    certificate.sanitizer = verdict
    certificate.finding = failure_of(verdict, "sanitizers")
    return verdict.reason if certificate.passed else ""


def _is_unsupported(result: Build | Verdict) -> bool:
    return result.reason_code is ReasonCode.INTERFACE_UNSUPPORTED


async def _time(context: SearchContext, certificate: Certificate) -> None:
    """Time the winner RETIMINGS times, each in a new process; every timing must show the gain."""
    candidate, build = certificate.standing.candidate, certificate.built
    for number in range(RETIMINGS):
        timing = await time_anew(context, candidate, build, certificate.verdict, step=f"time {number}")
        certificate.timings.append(timing)
        certificate.finding = failure_of(timing, "re-timing")
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
            certificate.finding = Finding(code=ReasonCode.NO_GAIN, reason=reason)
            return
    if context.target.device.kind is DeviceKind.CUDA and max(medians) > (1 + GPU_SPREAD) * min(medians):
        reason = f"re-timing: {min(medians):.4g} to {max(medians):.4g} ms spread more than {GPU_SPREAD:.0%}"
        certificate.finding = Finding(code=ReasonCode.TIMINGS_SPREAD, reason=reason)


async def _baselines(context: SearchContext, certificate: Certificate) -> None:
    """Measure all of PyTorch's own times again, once for the elites of one search; a mode at a time, for a stop."""
    await context.measuring.engine.reopen_baselines(again=True)
    task = BaselineTask(problem=context.described, again=True, eager_only=True)
    measured = await context.measure(task)
    while measured.pending:
        measured = await context.measure(dataclasses.replace(task, eager_only=False, after=measured))
    certificate.baselines = measured


async def _audit(context: SearchContext, certificate: Certificate) -> str | None:
    """Audit an unusual gain; an ordinary one passes."""
    timing, verdict = certificate.timing, certificate.verdict
    if timing is None or verdict is None or not needs_audit(timing.speedup, certificate.speedup_vs_best):
        return "not needed: no unusual gain"
    candidate = certificate.standing.candidate
    certificate.audit = audit = await run_audit(context, candidate, certificate.built, verdict, certificate.timings)
    certificate.finding = audit.finding
    return None


def _without_seed(context: SearchContext, winner_id: str) -> str:
    """Return why a winner is compared with no seed kernel."""
    seeds = {candidate.id for candidate in context.archive.candidates(origin=Origin.SEED)}
    if not seeds:
        return "there was no seed kernel"
    return "no other seed kernel was right" if seeds - {winner_id} else "there is no other seed kernel"


async def _compare(context: SearchContext, certificate: Certificate) -> str:
    """Compare with the fastest seed kernel in one alternating run; a tie is reported, not failed."""
    standings = await run_whole(read_standings, context.archive)
    winner = certificate.standing.candidate
    seed_kernel = next(
        (s for s in standings if s.candidate.origin is Origin.SEED and s.candidate.id != winner.id), None
    )
    if seed_kernel is None:
        return await run_whole(_without_seed, context, winner.id)
    certificate.seed_id = seed_kernel.candidate.id
    seed_build = await context.measure(CompileTask(problem=context.described, candidate=seed_kernel.candidate))
    if seed_build.status is not Status.OK:
        reason = f"not compared with {seed_kernel.candidate.id}, which does not build: {seed_build.reason}"
        warn(reason)
        return reason
    task = CompareTask(
        problem=context.described,
        first=winner,
        first_build=certificate.built,
        second=seed_kernel.candidate,
        second_build=seed_build,
    )
    found = await context.measure(task)
    if isinstance(found, FailedComparison):
        failed = "one of the two" if found.at_fault is None else (winner, seed_kernel.candidate)[found.at_fault].id
        reason = f"not compared with {seed_kernel.candidate.id}: {failed} failed: {found.reason}"
        warn(reason)
        return reason
    certificate.versus_seed = found
    return f"{1 / found.ratio:.2f}x as fast as {seed_kernel.candidate.id}"


async def _own_work(context: SearchContext, certificate: Certificate) -> str | None:
    """Find out whose code the winner's time is spent in."""
    task = ProfileTask(
        problem=context.described,
        candidate=certificate.standing.candidate,
        build=certificate.built,
        purpose=Purpose.CERTIFY,
        step=OWN_WORK,
        timing=certificate.timing,
    )
    certificate.own_work = work = (await context.measure(task)).own_work
    if work is None:
        return None
    return "unknown" if work.share is None else f"{work.share:.0%} of the time is spent in its own code"


async def _other_shapes(context: SearchContext, certificate: Certificate) -> str:
    """Try the winner's source at other shapes; the label says when it does not serve all of them."""
    certificate.other_shapes = found = await try_other_shapes(context, certificate.standing.candidate)
    return found.in_words()


CERTIFICATE_STEPS = (
    CertificateStep(name="build", run=_build),
    CertificateStep(name="verify", run=_verify),
    CertificateStep(name=SANITIZE, run=_sanitize),
    CertificateStep(name="time", run=_time),
    CertificateStep(name="baselines", run=_baselines, is_charged_whole=True),
    CertificateStep(name="audit", run=_audit),
    CertificateStep(name="compare", run=_compare, is_required=False, is_charged_whole=True),
    CertificateStep(name="own_work", run=_own_work, is_required=False, is_charged_whole=True),
    CertificateStep(name="other_shapes", run=_other_shapes, is_required=False, is_charged_whole=True),
)


async def _store(context: SearchContext, certificate: Certificate) -> None:
    """Store the certify evaluation and charge what the certificate took."""
    whole = (step.name for step in CERTIFICATE_STEPS if step.is_charged_whole)
    beyond_s = sum(certificate.seconds.get(name, 0.0) for name in whole)
    build_key = certificate.built.key
    key = evaluation_key(build_key, context.described, Purpose.CERTIFY)
    evaluation = certificate.evaluation(key, total_s=certificate.measured_s + beyond_s)
    await run_whole(context.archive.add_evaluation, evaluation)
    await run_whole(charge, context, evaluation, on_device_s=evaluation.total_s, entry=build_key)


async def _store_failure(context: SearchContext, candidate_id: str, reason: str) -> EngineFailure:
    failure = EngineFailure(candidate_id=candidate_id, purpose=Purpose.CERTIFY, reason=reason)
    await run_whole(context.archive.add_engine_failure, failure)
    return failure
