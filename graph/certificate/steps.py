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
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ridgeline.checkpoints.engine_failures import EngineFailure
from ridgeline.graph.certificate.audit import needs_audit, run_audit
from ridgeline.graph.certificate.certificate import Certificate
from ridgeline.graph.certificate.circumstances import circumstances_of, now_in_words
from ridgeline.graph.certificate.expected_time import PYTORCH_S, SHAPE_S, StepCost, left_s
from ridgeline.graph.certificate.measuring import EXTRA_TRIALS, failure_of, time_anew, verify_anew
from ridgeline.graph.certificate.other_shapes import try_other_shapes
from ridgeline.graph.certificate.step_end import StepEnd, StepState
from ridgeline.graph.search.budget import charge
from ridgeline.graph.search.events import emit, warn
from ridgeline.graph.search.ranking.elites import Standing, read_standings
from ridgeline.graph.search.ranking.leaders import Leader
from ridgeline.graph.search.ranking.turns import BuiltStanding, Uncompared, time_in_turns
from ridgeline.tools.engine import BaselineTask, CompileTask, NextBaselineTask, ProfileTask, VerifyTask
from ridgeline.tools.errors import EngineError
from ridgeline.tools.machine.logs import logger_of
from ridgeline.tools.machine.threads import run_whole
from ridgeline.tools.records.finding import Finding
from ridgeline.tools.records.keys import OWN_WORK, evaluation_key
from ridgeline.tools.records.results import Build, Timing, Verdict
from ridgeline.tools.records.vocabulary import DeviceKind, Origin, Purpose, ReasonCode, Sanitizers, Status

if TYPE_CHECKING:
    from ridgeline.checkpoints.archive import Archive
    from ridgeline.graph.search.context import SearchContext

logger = logger_of(__name__)

RETIMINGS = 3
GPU_SPREAD = 0.03


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateStep:
    """One step of a certificate; `name` is published in events and in certificate.json's `seconds`.

    `run` fills in what the certificate shows, and returns how the step ended.
    """

    name: str
    run: Callable[[SearchContext, Certificate], Coroutine[Any, Any, StepEnd]]
    cost: StepCost = field(default_factory=StepCost)
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
        circumstances=await run_whole(circumstances_of, context, standing.candidate),
    )
    for done, step in enumerate(CERTIFICATE_STEPS):
        context.check_stop()
        _tell_begun(standing, done, certificate.seconds)
        try:
            end = await _run(step, context, certificate)
        except EngineError as error:
            failure = EngineFailure.of(standing.candidate.id, Purpose.CERTIFY, error, step=step.name)
            _tell_ended(standing, step, StepEnd(state=StepState.FAILED, detail=failure.reason))
            await run_whole(context.archive.add_engine_failure, failure)
            return failure
        _tell_ended(standing, step, end)
        certificate.finding = end.finding
        if not certificate.passed:
            break
    certificate.label()
    certificate.circumstances = dataclasses.replace(certificate.circumstances, ended_at=now_in_words())
    await _store(context, certificate)
    return certificate


async def _run(step: CertificateStep, context: SearchContext, certificate: Certificate) -> StepEnd:
    """Run one step and return how it ended.

    Raises:
        EngineError: the engine failed in a required step. One that only informs is not done, with a warning; a resumed
            search does it.
    """
    started = time.monotonic()
    candidate_id = certificate.standing.candidate.id
    try:
        return await step.run(context, certificate)
    except EngineError as error:
        logger.exception("%s: %s failed", candidate_id, step.name)
        if step.is_required:
            raise
        certificate.not_done[step.name] = str(error)
        message = f"{candidate_id} is certified without {step.name}: {error}; resume the search to try again"
        warn(message)
        return StepEnd(state=StepState.NOT_DONE, detail=str(error))
    finally:
        certificate.seconds[step.name] = time.monotonic() - started


def _tell_begun(standing: Standing, done: int, seconds: Mapping[str, float]) -> None:
    """Tell that the next step begins after so many that are done, and how long the certificate may take from here."""
    left = CERTIFICATE_STEPS[done:]
    ended = [(step.cost, seconds[step.name]) for step in CERTIFICATE_STEPS[:done]]
    emit(
        {
            "event": "certify",
            "candidate_id": standing.candidate.id,
            "step": left[0].name,
            "passed": None,
            "detail": "",
            "skipped": False,
            "place": (done + 1, len(CERTIFICATE_STEPS)),
            "left_s": left_s(standing.evaluation, ended, [step.cost for step in left]),
        }
    )


def _tell_ended(standing: Standing, step: CertificateStep, end: StepEnd) -> None:
    emit(
        {
            "event": "certify",
            "candidate_id": standing.candidate.id,
            "step": step.name,
            "passed": end.passed,
            "detail": end.detail,
            "skipped": end.state is StepState.SKIPPED,
        }
    )


async def _build(context: SearchContext, certificate: Certificate) -> StepEnd:
    task = CompileTask(problem=context.described, candidate=certificate.standing.candidate)
    certificate.build = build = await context.measure(task)
    if build.status is not Status.OK:
        return StepEnd.of(Finding(code=build.reason_code, reason=f"does not build again: {build.reason}"))
    return StepEnd.passing()


async def _verify(context: SearchContext, certificate: Certificate) -> StepEnd:
    candidate, build = certificate.standing.candidate, certificate.built
    verdict = await verify_anew(context, candidate, build, step="verify", extra_trials=EXTRA_TRIALS)
    certificate.verdict = verdict
    return StepEnd.of(failure_of(verdict, "re-verification"))


async def _sanitize(context: SearchContext, certificate: Certificate) -> StepEnd:
    """Run the winner under the device's sanitizers: compiled into a build of its own, or a tool over the very build.

    Where there is no such build or run, the step is skipped and says why. The end of one that passed says what was left out.
    """
    candidate, problem, build = certificate.standing.candidate, context.described, certificate.built
    certificate.sanitizers = problem.device.kind.sanitizers
    if certificate.sanitizers is Sanitizers.COMPILED:
        build = await context.measure(CompileTask(problem=problem, candidate=candidate, sanitized=True))
    if _is_unsupported(build):
        certificate.sanitizer_skipped = build.reason
        return StepEnd.skipping(build.reason)
    if build.status is not Status.OK:
        return StepEnd.of(Finding(code=build.reason_code, reason=f"sanitizer build: {build.reason}"))
    task = VerifyTask(
        problem=problem,
        candidate=candidate,
        build=build,
        purpose=Purpose.CERTIFY,
        step="sanitize",
        sanitized=True,
    )
    verdict = await context.measure(task)
    if _is_unsupported(verdict):
        certificate.sanitizer_skipped = verdict.reason
        return StepEnd.skipping(verdict.reason)
    certificate.sanitizer = verdict
    return StepEnd.of(failure_of(verdict, "sanitizers"), verdict.reason)


def _is_unsupported(result: Build | Verdict) -> bool:
    return result.reason_code is ReasonCode.INTERFACE_UNSUPPORTED


async def _time(context: SearchContext, certificate: Certificate) -> StepEnd:
    """Time the winner RETIMINGS times, each in a new process; every timing must show the gain."""
    candidate, build = certificate.standing.candidate, certificate.built
    for number in range(RETIMINGS):
        timing = await time_anew(context, candidate, build, certificate.verdict, step=f"time {number}")
        certificate.timings.append(timing)
        if (finding := failure_of(timing, "re-timing")) is not None:
            return StepEnd.of(finding)
    return StepEnd.of(_unsteadiness(context, certificate.timings))


def _unsteadiness(context: SearchContext, timings: Sequence[Timing]) -> Finding | None:
    """Return the finding of timings that do not all show the gain, or that spread; else None."""
    medians = [t.median_ms for t in timings if t.median_ms is not None]
    for timing in timings:
        if timing.speedup_ci95 is not None and timing.speedup_ci95[0] <= 1:
            low, high = timing.speedup_ci95
            reason = f"re-timing: the speedup's interval {low:.3f} to {high:.3f} does not exclude 1"
            return Finding(code=ReasonCode.NO_GAIN, reason=reason)
    if context.target.device.kind is DeviceKind.CUDA and max(medians) > (1 + GPU_SPREAD) * min(medians):
        reason = f"re-timing: {min(medians):.4g} to {max(medians):.4g} ms spread more than {GPU_SPREAD:.0%}"
        return Finding(code=ReasonCode.TIMINGS_SPREAD, reason=reason)
    return None


async def _baselines(context: SearchContext, certificate: Certificate) -> StepEnd:
    """Measure all of PyTorch's own times again, once for the elites of one search; a mode at a time, for a stop."""
    problem, purpose = context.described, Purpose.CERTIFY
    await context.measuring.engine.reopen_baselines(purpose=purpose)
    measured = await context.measure(BaselineTask(problem=problem, purpose=purpose, eager_only=True))
    while measured.pending:
        measured = await context.measure(NextBaselineTask(problem=problem, purpose=purpose, after=measured))
    certificate.baselines = measured
    return StepEnd.passing()


async def _audit(context: SearchContext, certificate: Certificate) -> StepEnd:
    """Audit an unusual gain; an ordinary one passes."""
    timing, verdict = certificate.timing, certificate.verdict
    if timing is None or verdict is None or not needs_audit(timing.speedup, certificate.speedup_vs_best):
        return StepEnd.passing("not needed: no unusual gain")
    candidate = certificate.standing.candidate
    certificate.audit = audit = await run_audit(context, candidate, certificate.built, verdict, certificate.timings)
    return StepEnd.of(audit.finding)


def _without_seed(archive: Archive, winner_id: str) -> str:
    """Return why a winner is compared with no seed kernel."""
    seeds = {candidate.id for candidate in archive.candidates(origin=Origin.SEED)}
    if not seeds:
        return "there was no seed kernel"
    return "no other seed kernel was right" if seeds - {winner_id} else "there is no other seed kernel"


async def _compare(context: SearchContext, certificate: Certificate) -> StepEnd:
    """Compare with the fastest seed kernel in one alternating run; a tie is reported, not failed."""
    standings = await run_whole(read_standings, context.archive)
    winner_id = certificate.standing.candidate.id
    seed_kernel = next(
        (s for s in standings if s.candidate.origin is Origin.SEED and s.candidate.id != winner_id), None
    )
    if seed_kernel is None:
        return StepEnd.passing(await run_whole(_without_seed, context.archive, winner_id))
    certificate.seed_id = seed_id = seed_kernel.candidate.id
    build = await context.measure(CompileTask(problem=context.described, candidate=seed_kernel.candidate))
    if build.status is not Status.OK:
        return _not_compared(f"not compared with {seed_id}, which does not build: {build.reason}")
    winner = BuiltStanding(standing=certificate.standing, build=certificate.built)
    found = await time_in_turns(
        context, winner, BuiltStanding(standing=seed_kernel, build=build), purpose=Purpose.CERTIFY
    )
    if isinstance(found, Uncompared):
        failed = found.failed_id or "one of the two"
        return _not_compared(f"not compared with {seed_id}: {failed} failed: {found.reason}")
    certificate.versus_seed = found
    return StepEnd.passing(f"{1 / found.ratio:.2f}x as fast as {seed_id}")


def _not_compared(reason: str) -> StepEnd:
    """Warn that the winner is not compared, and return the end that says so."""
    warn(reason)
    return StepEnd.passing(reason)


async def _own_work(context: SearchContext, certificate: Certificate) -> StepEnd:
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
        return StepEnd.passing()
    share = "unknown" if work.share is None else f"{work.share:.0%} of the time is spent in its own code"
    return StepEnd.passing(share)


async def _other_shapes(context: SearchContext, certificate: Certificate) -> StepEnd:
    """Try the winner's source at other shapes; the label says when it does not serve all of them."""
    certificate.other_shapes = found = await try_other_shapes(context, certificate.standing.candidate)
    return StepEnd.passing(found.in_words())


CERTIFICATE_STEPS = (
    CertificateStep(name="build", run=_build, cost=StepCost(builds=1.0)),
    CertificateStep(name="verify", run=_verify, cost=StepCost(verifications=5.0)),
    CertificateStep(name="sanitize", run=_sanitize, cost=StepCost(builds=2.0, verifications=2.5)),
    CertificateStep(name="time", run=_time, cost=StepCost(timings=3.0)),
    CertificateStep(name="baselines", run=_baselines, is_charged_whole=True, cost=StepCost(fixed_s=PYTORCH_S)),
    CertificateStep(name="audit", run=_audit),
    CertificateStep(name="compare", run=_compare, is_required=False, is_charged_whole=True, cost=StepCost(timings=1.0)),
    CertificateStep(name="own_work", run=_own_work, is_required=False, is_charged_whole=True),
    CertificateStep(
        name="other_shapes",
        run=_other_shapes,
        is_required=False,
        is_charged_whole=True,
        cost=StepCost(builds=3.0, verifications=3.0, fixed_s=3 * SHAPE_S),
    ),
)
"""The costs were measured on 2 cores, where a verification took 4.7 s, a timing 24.5 s, and the steps 25 s (verify), 13 s
(sanitize), 71 s (time), 25 s (compare) and 23 s (other shapes)."""


async def _store(context: SearchContext, certificate: Certificate) -> None:
    """Store the certify evaluation and charge what the certificate took."""
    whole = [step for step in CERTIFICATE_STEPS if step.is_charged_whole]
    beyond_s = sum(certificate.seconds.get(step.name, 0.0) for step in whole)
    build_key = certificate.built.key
    key = evaluation_key(build_key, context.described, Purpose.CERTIFY)
    evaluation = certificate.evaluation(key, total_s=certificate.measured_s + beyond_s)
    await run_whole(context.archive.add_evaluation, evaluation)
    await run_whole(charge, context, evaluation, on_device_s=evaluation.total_s, entry=build_key)
