"""One branch: a model writes a kernel, the tools judge it, and a failure goes back for repair."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from ridgeline.graph.models.replies import UnreadableReply
from ridgeline.graph.models.requests import IdeaDraft, KernelRequest
from ridgeline.graph.models.retry import ModelUnavailable
from ridgeline.graph.search.budget import exhausted, spent
from ridgeline.graph.search.elites import read_elite
from ridgeline.graph.search.events import emit
from ridgeline.graph.search.measuring import failure_text, give_up, run_step
from ridgeline.tools.errors import ModelError, NotBegun
from ridgeline.tools.records.search import Candidate, Idea
from ridgeline.tools.records.vocabulary import Origin, Purpose, ReasonCode, Status

if TYPE_CHECKING:
    from ridgeline.graph.search.context import SearchContext
    from ridgeline.graph.state import BranchState

logger = logging.getLogger(__name__)

NEXT = {"compile": "verify", "verify": "benchmark", "benchmark": "done"}


async def write(state: BranchState, context: SearchContext) -> BranchState:
    """Have the model write this attempt's kernel and store it."""
    attempt = state.get("attempt", 0)
    candidate_id = f"{state['idea_id']}v{state['variation']}a{attempt}"
    if await _is_stored(context, candidate_id):
        found = await asyncio.to_thread(context.archive.evaluation, candidate_id)
        is_unwritten = found is not None and found.reason_code is ReasonCode.MODEL_FAILED
        return _move(state, candidate_id, "done" if is_unwritten else "compile")
    if over := exhausted(context.budget, await spent(context)):
        emit({"event": "warning", "message": f"{candidate_id}: not written: {over}"})
        return {"stage": "done"}
    _announce(state, candidate_id, "write")
    idea = await asyncio.to_thread(context.archive.idea, state["idea_id"])
    request = await _request(context, state, idea, candidate_id)
    try:
        draft = await context.journalled_models.write(f"{candidate_id}:write", state["model"], request)
    except (ModelError, ModelUnavailable, UnreadableReply) as error:
        if isinstance(error, ModelError) and not context.models.drop(state["model"]):
            raise
        emit({"event": "warning", "message": f"{candidate_id}: not written: {error}"})
        await _store_unwritten(context, state, idea, candidate_id, f"{state['model']} wrote no kernel: {error}")
        return _move(state, candidate_id, "done")
    candidate = _candidate(context, state, idea, candidate_id, draft.source)
    await asyncio.to_thread(context.archive.add_candidate, candidate)
    return _move(state, candidate_id, "compile")


async def compile(state: BranchState, context: SearchContext) -> BranchState:  # noqa: A001  # a node's name
    """Call compile_kernel."""
    return await _judge(state, context, "compile")


async def verify(state: BranchState, context: SearchContext) -> BranchState:
    """Call verify_kernel."""
    return await _judge(state, context, "verify")


async def benchmark(state: BranchState, context: SearchContext) -> BranchState:
    """Call benchmark_kernel."""
    return await _judge(state, context, "benchmark")


async def _judge(state: BranchState, context: SearchContext, step: str) -> BranchState:
    """Run one step of the current candidate; its failure leads to a repair while attempts are left."""
    candidate_id, attempt = state["candidate_id"], state.get("attempt", 0)
    _announce(state, candidate_id, step)
    try:
        evaluation = await run_step(context, step, candidate_id, Purpose.SEARCH)
    except NotBegun:
        return {"stage": step}  # the graph drains: a resumed search takes the branch up here
    if evaluation is None:
        return {"stage": NEXT[step]}
    is_repairable = evaluation.status is not Status.OK and evaluation.reason_code is not ReasonCode.ENGINE_FAILED
    if is_repairable and attempt < context.settings.repairs:
        return {"stage": "write", "attempt": attempt + 1}
    return {"stage": "done"}


def _move(state: BranchState, candidate_id: str, stage: str) -> BranchState:
    return {"candidate_id": candidate_id, "stage": stage, "finished": [candidate_id]}


async def _is_stored(context: SearchContext, candidate_id: str) -> bool:
    try:
        await asyncio.to_thread(context.archive.candidate, candidate_id)
    except KeyError:
        return False
    return True


async def _request(context: SearchContext, state: BranchState, idea: Idea, candidate_id: str) -> KernelRequest:
    failed_source, failure = await _failure(context, state)
    return KernelRequest(
        subject=await context.subject(state["round"]),
        idea=IdeaDraft.model_validate(idea.to_json()),
        variation=state["variation"],
        rng_seed=context.derived_seed(candidate_id),
        parent=await read_elite(context, idea.parent_id),
        second_parent=await read_elite(context, idea.second_parent_id),
        failed_source=failed_source,
        failure=failure,
    )


async def _failure(context: SearchContext, state: BranchState) -> tuple[str, str]:
    """Return the source of the attempt before and why it failed, both empty at the first attempt."""
    attempt = state.get("attempt", 0)
    if attempt == 0:
        return "", ""
    previous = f"{state['idea_id']}v{state['variation']}a{attempt - 1}"
    candidate = await asyncio.to_thread(context.archive.candidate, previous)
    evaluation = await asyncio.to_thread(context.archive.evaluation, previous)
    return candidate.source, failure_text(evaluation) if evaluation else "it was not judged"


def _candidate(context: SearchContext, state: BranchState, idea: Idea, candidate_id: str, source: str) -> Candidate:
    return Candidate(
        id=candidate_id,
        origin=Origin.MODEL,
        round=state["round"],
        idea_id=idea.id,
        parent_id=idea.parent_id,
        variation=state["variation"],
        attempt=state.get("attempt", 0),
        source=source,
        language=context.target.language,
        interface=context.target.interface,
        model=state["model"],
    )


async def _store_unwritten(
    context: SearchContext, state: BranchState, idea: Idea, candidate_id: str, reason: str
) -> None:
    """Record a branch whose model gave nothing to judge, so that its idea's failure has a reason."""
    await asyncio.to_thread(context.archive.add_candidate, _candidate(context, state, idea, candidate_id, ""))
    await give_up(context, candidate_id, Purpose.SEARCH, ReasonCode.MODEL_FAILED, reason)


def _announce(state: BranchState, candidate_id: str, stage: str) -> None:
    emit(
        {
            "event": "branch_stage",
            "branch": f"{state['idea_id']}v{state['variation']}",
            "idea_id": state["idea_id"],
            "candidate_id": candidate_id,
            "stage": stage,
            "attempt": state.get("attempt", 0),
            "model": state["model"],
        }
    )
