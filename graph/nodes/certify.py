"""Prove the winner again in fresh processes; when it fails, try the next best kernel."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ridgeline.checkpoints.engine_failures import EngineFailure
from ridgeline.checkpoints.history.right_kernels import right_kernels
from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.graph.certificate.certificate import Certificate, FailedBefore
from ridgeline.graph.certificate.expected_time import PYTORCH_S, expected_s
from ridgeline.graph.certificate.steps import CERTIFICATE_STEPS, certify_candidate
from ridgeline.graph.certificate.validity import forget_winner, is_outdone, is_to_be_given_again
from ridgeline.graph.search.context import EndedBy
from ridgeline.graph.search.events import emit, note, warn
from ridgeline.graph.search.ideas.blocks import work_of
from ridgeline.graph.search.judging.compiled import join_compiled
from ridgeline.graph.search.judging.judging import judged_standings, retry_engine_failures
from ridgeline.graph.search.ranking.elites import Standing, ranked_elites, read_standings
from ridgeline.graph.search.ranking.leaders import Leader, compare_leaders, within_noise
from ridgeline.graph.search.rounds.stop_rules import NO_GAIN, rounds_stop, tell_stop
from ridgeline.graph.state import outcome_of
from ridgeline.tools.errors import EngineError, MachineBusyError, NotRecorded
from ridgeline.tools.machine.threads import run_whole
from ridgeline.tools.records.results import QUARANTINE_ABOVE
from ridgeline.tools.records.vocabulary import Purpose, RunState, SearchOutcome
from ridgeline.tools.wording import counted

if TYPE_CHECKING:
    from ridgeline.checkpoints.archive import Archive
    from ridgeline.graph.search.context import SearchContext
    from ridgeline.graph.state import SearchState


MOST_TRIED = 10
"""Kernels whose certification a search tries at most; those of one idea tend to fail alike."""


@dataclass(slots=True, kw_only=True)
class _Certifications:
    """The kernels whose certification was tried, in order."""

    winner: Standing | None = None
    certificates: dict[str, Certificate] = field(default_factory=dict)  # by kernel; the winner's is the last one
    failures: list[FailedBefore] = field(default_factory=list)
    engine_failure: EngineFailure | None = None  # the first that is no busy machine's, else the first


async def certify(state: SearchState, context: SearchContext) -> SearchState:
    """Certify the fastest kernel that passes, store its certificate, and give the bank the elites that stand.

    Kernels that the search could not tell apart are compared first: see leaders.py. A certificate that a search stored
    whole before it was killed, or that it ended with, is given as it is, once what the machine failed on is judged: unless
    one of these kernels may be faster.

    A search in which no kernel is certified faster than eager ends `no_gain`, with two exceptions: one whose budget is
    spent stays `budget`, because a larger one lets it go on, and one that stopped because nothing was left to gain over
    PyTorch, with no kernel that failed, stays `at_floor`. Where a search that ended `no_gain` certifies a kernel after all,
    it ends as its rounds did.

    Raises:
        EngineError: no kernel is certified, and the engine failed on one that may be; a resumed search tries again.
    """
    ended = await _end_of(state, context)
    if context.finish is not None:
        await run_whole(context.finish, context, RunState(ended["outcome"]))
    return ended


async def _end_of(state: SearchState, context: SearchContext) -> SearchState:
    """Return how the search ends; its certificate and its best kernel are stored."""
    await _judge_beside_certificate(context)
    if (stored := await run_whole(_stored, context)) is not None:
        return stored
    if not context.replays_times:
        await _tell_begun(context)
    standings = await judged_standings(context)
    if standings:  # without a right kernel there is nothing to hold PyTorch's modes against
        await join_compiled(context)
    if context.replays_times:
        return await _uncertified(state, context, standings)
    leaders = await compare_leaders(context, standings)
    elites = await ranked_elites(context.archive, standings, context.plan(state.get("max_rounds")).elites)
    certifications = await _try_in_order(context, leaders, _in_order(leaders, elites, standings))
    if certifications.winner is None and (failure := certifications.engine_failure):
        kind = MachineBusyError if failure.was_busy else EngineError
        raise kind(f"{failure.candidate_id}: not certified: {failure.reason}; resume the search to try again")
    had_no_gain = outcome_of(state) is SearchOutcome.NO_GAIN
    rounds = await run_whole(rounds_stop, context.archive, state) if had_no_gain else None
    outcome = _outcome(
        rounds.outcome if rounds else outcome_of(state),
        is_certified=certifications.winner is not None,
        has_failures=bool(certifications.failures),
    )
    if outcome is SearchOutcome.NO_GAIN and not had_no_gain:
        await tell_stop(context.archive, NO_GAIN)
    elif outcome is not SearchOutcome.NO_GAIN and rounds:
        await run_whole(context.archive.save_run, RunRecord(stop_reason=rounds.reason))
    best = certifications.winner or await run_whole(_fastest, context.archive, standings)
    await run_whole(_store, context, certifications, elites, best, outcome)
    return {
        "outcome": outcome.value,
        "certified": certifications.winner is not None,
        "best_id": best.candidate.id if best else None,
        "best_speedup": best.speedup if best else None,
    }


async def _judge_beside_certificate(context: SearchContext) -> None:
    """Judge what the machine failed on while the stored certificate stays; forget it where one of these may be faster."""
    if context.ended_by is not EndedBy.SESSION or await run_whole(context.archive.certificate) is None:
        return
    if not context.measuring.is_away:
        await retry_engine_failures(context)
    if await run_whole(is_outdone, context.archive):
        await run_whole(forget_winner, context.archive.path.parent, context.archive)


async def _tell_begun(context: SearchContext) -> None:
    """Tell what comes before the first kernel's certificate and how long all of it may take; nothing where none is due."""
    leaders = within_noise(await run_whole(read_standings, context.archive))
    if not leaders:
        return
    pending = bool((await context.baselines()).pending)
    others = len(leaders) - 1
    phases = ["PyTorch's compiled configurations"] if pending else []
    phases += [f"{counted(others + 1, 'kernel')} that the search could not tell apart, in turns"] if others else []
    costs = [step.cost for step in CERTIFICATE_STEPS]
    left_s = expected_s(leaders[0].evaluation, costs, comparisons=others) + (PYTORCH_S if pending else 0.0)
    phase = f"first {' and '.join(phases)}" if phases else "its steps"
    emit({"event": "certification", "phase": phase, "left_s": left_s})


async def _uncertified(state: SearchState, context: SearchContext, standings: list[Standing]) -> SearchState:
    """Return the end of a search whose times are replayed: its best kernel, and no certificate.

    Kernels that it could not tell apart are ordered by the recorded comparisons, where these are all there.
    """
    note("nothing is certified, since every time is the recorded one: a certificate measures anew")
    try:
        leaders = await compare_leaders(context, standings)
    except NotRecorded as missing:
        warn(f"{missing.args[0]}: the order of the search's own timings counts")
        leaders = []
    best = next(iter(_in_order(leaders, [], standings)), None)
    outcome = outcome_of(state)
    run_state = RunState(outcome) if context.ended_by is EndedBy.NOBODY else None
    best_id = best.candidate.id if best else None
    await run_whole(context.archive.save_run, RunRecord(state=run_state, best_id=best_id or ""))
    return {
        "outcome": outcome.value,
        "certified": False,
        "best_id": best_id,
        "best_speedup": best.speedup if best else None,
    }


async def _try_in_order(context: SearchContext, leaders: list[Leader], ordered: list[Standing]) -> _Certifications:
    """Certify one kernel after another that is faster than eager, until one passes."""
    certifications = _Certifications()
    for standing in [each for each in ordered if each.speedup > 1][:MOST_TRIED]:
        ended = await certify_candidate(context, standing, leaders)
        if isinstance(ended, EngineFailure):
            kept = certifications.engine_failure
            if kept is None or (kept.was_busy and not ended.was_busy):
                certifications.engine_failure = ended
        else:
            certifications.certificates[standing.candidate.id] = ended
            if ended.passed:
                certifications.winner = standing
                break
        certifications.failures.append(FailedBefore(candidate_id=standing.candidate.id, reason=ended.reason))
        warn(f"{standing.candidate.id} is not certified: {ended.reason}")
    return certifications


def _fastest(archive: Archive, standings: list[Standing]) -> Standing | None:
    """Return what a search without a winner offers: the fastest kernel that its certificate did not find wrong."""
    by_id = {standing.candidate.id: standing for standing in standings}
    return next((by_id[e.candidate_id] for e in right_kernels(archive) if e.candidate_id in by_id), None)


def _in_order(leaders: list[Leader], elites: list[Standing], standings: list[Standing]) -> list[Standing]:
    """Return the leaders as their comparison ordered them, then the other elites, then every other kernel."""
    ordered = [*(leader.standing for leader in leaders), *elites, *standings]
    return list({standing.candidate.id: standing for standing in ordered}.values())


def _outcome(stopped_by: SearchOutcome, *, is_certified: bool, has_failures: bool) -> SearchOutcome:
    """Return how the search ended; see `certify` for the two exceptions."""
    is_pytorch_at_floor = stopped_by is SearchOutcome.AT_FLOOR and not has_failures
    stays = is_certified or is_pytorch_at_floor or stopped_by is SearchOutcome.BUDGET
    return stopped_by if stays else SearchOutcome.NO_GAIN


def _store(
    context: SearchContext,
    certifications: _Certifications,
    elites: list[Standing],
    best: Standing | None,
    outcome: SearchOutcome,
) -> None:
    """Bank what stands, and store the certificate, how the search ended and last its best kernel."""
    failed = {failure.candidate_id for failure in certifications.failures}
    stand = [e for e in elites if e.candidate.id not in failed and e is not certifications.winner]
    _bank(context, [*([certifications.winner] if certifications.winner else []), *stand], certifications.winner)
    tried = certifications.certificates
    if tried:  # of the kernel that a reader asks about: the best one, else the one that looked fastest
        told = tried.get(best.candidate.id if best else "", next(iter(tried.values())))
        context.archive.save_certificate(told.to_json(certifications.failures, outcome))
    if certifications.winner is not None:  # it stands whatever became of those behind it
        context.archive.drop_engine_failures(Purpose.CERTIFY, but=failed)
    state = RunState(outcome) if context.ended_by is EndedBy.NOBODY else None
    context.archive.save_run(RunRecord(state=state, best_id=best.candidate.id if best else ""))


def _stored(context: SearchContext) -> SearchState | None:
    """Return the end of a search whose certificate is stored whole; None without one, or where it is to be given again.

    A host's search may have gone on with its earlier certificate still there.
    """
    certificate, best_id = context.archive.certificate(), context.archive.run().best_id
    if context.ended_by is not EndedBy.SESSION or best_id is None or is_to_be_given_again(context.archive):
        return None
    if certificate is None or certificate.outcome is None:
        return None
    standings = {standing.candidate.id: standing for standing in read_standings(context.archive)}
    best = standings.get(best_id)
    return {
        "outcome": certificate.outcome.value,
        "certified": certificate.passed,
        "best_id": best_id or None,
        "best_speedup": best.speedup if best else None,
    }


def _bank(context: SearchContext, elites: list[Standing], winner: Standing | None) -> None:
    """Give the bank the winner, and the elites with 1 < speedup <= QUARANTINE_ABOVE."""
    baselines = context.archive.baselines()
    if context.bank is None or baselines is None:
        return
    for standing in elites:
        if standing is not winner and (standing.speedup <= 1 or standing.speedup > QUARANTINE_ABOVE):
            continue
        context.bank.add(
            context.family,
            context.target.device.arch,
            context.problem.name,
            standing.candidate,
            standing.evaluation,
            work=work_of(context.described.description, baselines.floor, standing.median_ms),
        )
