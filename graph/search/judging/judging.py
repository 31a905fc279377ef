"""One candidate of a search through the judge: each step a real tool call, then the evaluation that the steps add up to."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ridgeline.checkpoints.engine_failures import EngineFailure
from ridgeline.checkpoints.history.over_pytorch import speedup_vs_best
from ridgeline.checkpoints.history.repeated_sources import same_source_as
from ridgeline.graph.search.budget import charge
from ridgeline.graph.search.events import emit, warn
from ridgeline.graph.search.ranking.elites import Standing, read_standings
from ridgeline.tools.engines.steps import STEPS, Measured, Step
from ridgeline.tools.errors import EngineError
from ridgeline.tools.machine.logs import logger_of
from ridgeline.tools.machine.threads import run_whole
from ridgeline.tools.records.keys import branch_id
from ridgeline.tools.records.results import Evaluation, Profile
from ridgeline.tools.records.search import Candidate
from ridgeline.tools.records.vocabulary import SEARCHED, Origin, Purpose, Status
from ridgeline.tools.toolbox import make_toolbox
from ridgeline.tools.wording import counted

if TYPE_CHECKING:
    from langgraph.prebuilt import ToolNode

    from ridgeline.graph.search.context import SearchContext

logger = logger_of(__name__)

LOG_SHOWN = 6000
"""Characters of a compiler's messages that go back to the model: the first, since errors come first in a build's log."""
REASON_SHOWN = 4000
"""Characters of a reason that go back: ten times the longest sentence of an error map."""
TRIALS_SHOWN = 12


async def judge_candidate(context: SearchContext, candidate: Candidate, purpose: Purpose) -> Evaluation | EngineFailure:
    """Store a candidate, take it through all steps and return its end; a candidate that has one is not judged again.

    An engine failure is an end for this session only.
    """
    await run_whole(context.archive.add_candidate, candidate)
    ended = await run_whole(_end_so_far, context, candidate.id, purpose)
    for step in STEPS:
        if ended is not None:
            break
        ended = await run_step(context, step, candidate.id, purpose)
    if ended is None:
        raise EngineError(f"{candidate.id}: the benchmark tool left no timing")
    return ended


async def run_step(
    context: SearchContext, step: Step, candidate_id: str, purpose: Purpose
) -> Evaluation | EngineFailure | None:
    """Run one step of a candidate; return the candidate's end when that step was its last, else None.

    Idempotent: the engine remembers a step that was measured before. An engine that fails ends this candidate alone,
    unjudged; its siblings go on.
    """
    try:
        taken = await _call_tool(context, step, candidate_id, purpose)
    except EngineError as error:
        logger.exception("%s: not judged", candidate_id)
        return await _store_unjudged(context, EngineFailure.of(candidate_id, purpose, error))
    if not isinstance(taken, Measured) or not taken.is_over:
        return None
    return await store(context, taken.evaluation(total_s=taken.steps_s))


async def judged_standings(context: SearchContext) -> list[Standing]:
    """Return every correct kernel, fastest first, once no candidate waits for its judgement."""
    await retry_engine_failures(context)
    return await run_whole(read_standings, context.archive)


async def retry_engine_failures(context: SearchContext) -> None:
    """Judge the candidates that an earlier session's engine failed on; each candidate is tried once a session.

    Certificates are left to the certify node.

    Raises:
        NotBegun: a stop was asked for, between two candidates.
    """
    for failure in await run_whole(context.archive.engine_failures):
        if failure.purpose in SEARCHED and (failure.candidate_id, failure.purpose) not in context.measuring.unjudged:
            context.check_stop()
            candidate = await run_whole(context.archive.candidate, failure.candidate_id)
            await judge_candidate(context, candidate, failure.purpose)


async def profile_elites(context: SearchContext, elites: Sequence[Standing]) -> None:
    """Have the elites, and the best kernels of a round's ideas, profiled before models are asked for ideas.

    The offline model reads no profile, and a look by Nsight Compute takes as long as measuring two
    kernels (a search for softmax on an H200 had its GPU measure half of the time).
    """
    if not context.models.reads_prompts or not context.ablation.has("diagnosis"):
        return
    for standing in elites:
        await _profile(context, standing)


async def store(context: SearchContext, evaluation: Evaluation) -> Evaluation:
    """Store and return an evaluation with its gain over PyTorch's best and its cost, and tell the viewers."""
    stored, candidate, earlier = await run_whole(_store, context, evaluation)
    _tell(candidate, stored, same_source_as=earlier)
    return stored


def failure_text(evaluation: Evaluation) -> str:
    """Return why a candidate failed, for the model that repairs it.

    The reason of wrong values holds the judge's error map in words: how many are wrong, where, and in what way.
    """
    log = evaluation.build.log if evaluation.build and evaluation.status is Status.COMPILE_ERROR else ""
    head = f"{evaluation.status} ({evaluation.reason_code}): {evaluation.reason}"[:REASON_SHOWN]
    trials = [t for t in (evaluation.verdict.trials if evaluation.verdict else ()) if not t.passed]
    lines = [f"- trial {t.name}: {t.nearest.in_words() if t.nearest else f'error {t.rel_error:.3g}'}" for t in trials]
    more = [f"- and {counted(len(trials) - TRIALS_SHOWN, 'further trial')}"] if len(trials) > TRIALS_SHOWN else []
    return "\n".join([head, *lines[:TRIALS_SHOWN], *more, log[:LOG_SHOWN]]).strip()


async def _call_tool(context: SearchContext, tool: str, candidate_id: str, purpose: Purpose) -> Measured | Profile:
    """Issue one tool call through LangGraph's tool node and return the record that the tool's message carries.

    Raises:
        EngineError, InputError: as the tool does; the tool node is told to handle nothing.
    """
    from langchain_core.messages import AIMessage

    name = f"{tool}_kernel"
    call = {"name": name, "args": {"candidate_id": candidate_id}, "id": f"{candidate_id}:{purpose}:{tool}"}
    message = AIMessage(content="", tool_calls=[{**call, "type": "tool_call"}])
    with context.measuring.pauses.step():
        answer = (await _toolbox(context, purpose).ainvoke({"messages": [message]}))["messages"][-1]
    if not isinstance(answer.artifact, Measured | Profile):
        raise EngineError(f"{candidate_id}: {name}: {answer.text}")
    return answer.artifact


def _toolbox(context: SearchContext, purpose: Purpose) -> ToolNode:
    """Return the session's tools for this purpose; they are made once because they keep the session's builds."""
    from langgraph.prebuilt import ToolNode

    if purpose not in context.measuring.toolboxes:
        tools = make_toolbox(context.measuring.engine, context.described, purpose=purpose)
        context.measuring.toolboxes[purpose] = ToolNode(tools, handle_tool_errors=False)
    return context.measuring.toolboxes[purpose]


async def _profile(context: SearchContext, standing: Standing) -> None:
    """Have a kernel profiled unless it was; an engine that fails costs the diagnosis, not the search."""
    evaluation = standing.evaluation
    # asked of the archive first: a tool call would build the kernel, in a resumed session once more
    if await context.measuring.engine.find(Profile, evaluation.key) is not None:
        return
    try:
        await _call_tool(context, "profile", standing.candidate.id, evaluation.purpose)
    except EngineError as error:
        warn(f"{standing.candidate.id}: no diagnosis: {error}")


def _end_so_far(context: SearchContext, candidate_id: str, purpose: Purpose) -> Evaluation | EngineFailure | None:
    """Return a candidate's evaluation, else its engine failure of this session."""
    evaluation = context.archive.evaluation(candidate_id, purpose)
    if evaluation is not None or (candidate_id, purpose) not in context.measuring.unjudged:
        return evaluation
    failures = context.archive.engine_failures(candidate_id)
    return next((failure for failure in failures if failure.purpose is purpose), None)


def _store(context: SearchContext, evaluation: Evaluation) -> tuple[Evaluation, Candidate, str]:
    """Return the evaluation as it is stored, its candidate, and the earlier one with the same source or ""."""
    archive = context.archive
    gain = speedup_vs_best(evaluation, archive.baselines())
    evaluation = dataclasses.replace(evaluation, speedup_vs_best=gain)
    archive.add_evaluation(evaluation)
    verify_s = evaluation.verdict.verify_s if evaluation.verdict else 0.0
    benchmark_s = evaluation.timing.benchmark_s if evaluation.timing else 0.0
    charge(context, evaluation, on_device_s=verify_s + benchmark_s)
    name = evaluation.candidate_id
    return evaluation, archive.candidate(name), same_source_as(archive, name)


async def _store_unjudged(context: SearchContext, failure: EngineFailure) -> EngineFailure:
    """Store and return a failure of the engine, and tell the viewers."""
    await run_whole(context.archive.add_engine_failure, failure)
    context.measuring.unjudged.add((failure.candidate_id, failure.purpose))
    _tell(await run_whole(context.archive.candidate, failure.candidate_id), failure.as_evaluation())
    return failure


def _tell(candidate: Candidate, evaluation: Evaluation, *, same_source_as: str = "") -> None:
    """Log how a candidate ended and send it to the viewers."""
    timing, idea_id = evaluation.timing, candidate.idea_id
    speedup = f"{evaluation.speedup:.3f}x" if evaluation.speedup else ""
    logger.info("%s: %s %s", candidate.id, evaluation.status, speedup)
    emit(
        {
            "event": "candidate_done",
            "candidate_id": candidate.id,
            "idea_id": idea_id,
            "branch": branch_id(idea_id, candidate.variation) if idea_id and candidate.origin is Origin.MODEL else "",
            "origin": candidate.origin.value,
            "status": evaluation.status.value,
            "reason": evaluation.reason,
            "median_ms": timing.median_ms if timing else None,
            "reference_ms": timing.reference_ms if timing else None,
            "speedup": evaluation.speedup,
            "speedup_ci95": evaluation.speedup_interval,
            "same_source_as": same_source_as,
        }
    )
