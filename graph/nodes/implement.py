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
from ridgeline.graph.search.judging import failure_text, run_step, store
from ridgeline.tools.errors import ModelError, NotBegun
from ridgeline.tools.records.keys import attempt_id, branch_id
from ridgeline.tools.records.results import Evaluation
from ridgeline.tools.records.search import Candidate, Idea
from ridgeline.tools.records.vocabulary import Origin, Purpose, ReasonCode, Status
from ridgeline.tools.steps import Step

if TYPE_CHECKING:
    from ridgeline.checkpoints.archive import Archive
    from ridgeline.graph.search.context import SearchContext
    from ridgeline.graph.state import BranchState, Stage

logger = logging.getLogger(__name__)

NEXT: dict[Step, Stage] = {"compile": "verify", "verify": "benchmark", "benchmark": "done"}


async def write(state: BranchState, context: SearchContext) -> BranchState:
    """Have the model write this attempt's kernel and store it."""
    attempt = state.get("attempt", 0)
    candidate_id = attempt_id(state["idea_id"], state["variation"], attempt)
    if stage := await asyncio.to_thread(_stage_of_stored, context.archive, candidate_id):
        return _move(state, candidate_id, stage)
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


async def _judge(state: BranchState, context: SearchContext, step: Step) -> BranchState:
    """Run one step of the current candidate; its failure leads to a repair while attempts are left."""
    candidate_id, attempt = state["candidate_id"], state.get("attempt", 0)
    _announce(state, candidate_id, step)
    try:
        ended = await run_step(context, step, candidate_id, Purpose.SEARCH)
    except NotBegun:
        return {"stage": step}  # the graph drains: a resumed search takes the branch up here
    if ended is None:
        return {"stage": NEXT[step]}
    is_repairable = isinstance(ended, Evaluation) and ended.status is not Status.OK
    if is_repairable and attempt < context.settings.repairs:
        return {"stage": "write", "attempt": attempt + 1}
    return {"stage": "done"}


def _move(state: BranchState, candidate_id: str, stage: Stage) -> BranchState:
    return {"candidate_id": candidate_id, "stage": stage, "finished": [candidate_id]}


def _stage_of_stored(archive: Archive, candidate_id: str) -> Stage | None:
    """Return the stage after writing for an attempt that an earlier session stored; None for a new attempt."""
    try:
        archive.candidate(candidate_id)
    except KeyError:
        return None
    found = archive.evaluation(candidate_id)
    return "done" if found is not None and found.reason_code is ReasonCode.MODEL_FAILED else "compile"


async def _request(context: SearchContext, state: BranchState, idea: Idea, candidate_id: str) -> KernelRequest:
    failed_source, failure, failure_code = await asyncio.to_thread(_failure, context.archive, state)
    return KernelRequest(
        subject=context.subject,
        baselines=await context.told_baselines(state["round"]),
        idea=IdeaDraft.model_validate(idea.to_json()),
        variation=state["variation"],
        rng_seed=context.derived_seed(candidate_id),
        parent=await read_elite(context, idea.parent_id),
        second_parent=await read_elite(context, idea.second_parent_id),
        failed_source=failed_source,
        failure=failure,
        failure_code=failure_code,
    )


def _failure(archive: Archive, state: BranchState) -> tuple[str, str, ReasonCode]:
    """Return the source of the attempt before, why it failed and the code of that; nothing at the first attempt."""
    attempt = state.get("attempt", 0)
    if attempt == 0:
        return "", "", ReasonCode.NONE
    previous = attempt_id(state["idea_id"], state["variation"], attempt - 1)
    evaluation = archive.evaluation(previous)
    source = archive.candidate(previous).source
    if evaluation is None:
        return source, "it was not judged", ReasonCode.NONE
    return source, failure_text(evaluation), evaluation.reason_code


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
    """Record a branch whose model wrote no kernel, so that the failure of its idea has a reason."""
    await asyncio.to_thread(context.archive.add_candidate, _candidate(context, state, idea, candidate_id, ""))
    evaluation = Evaluation(
        key=f"unwritten:{candidate_id}",
        candidate_id=candidate_id,
        purpose=Purpose.SEARCH,
        status=Status.REFUSED,
        reason_code=ReasonCode.MODEL_FAILED,
        reason=reason,
    )
    await store(context, evaluation)


def _announce(state: BranchState, candidate_id: str, stage: Stage) -> None:
    emit(
        {
            "event": "branch_stage",
            "branch": branch_id(state["idea_id"], state["variation"]),
            "idea_id": state["idea_id"],
            "candidate_id": candidate_id,
            "stage": stage,
            "attempt": state.get("attempt", 0),
            "model": state["model"],
        }
    )
