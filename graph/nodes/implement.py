"""One branch: a model writes a kernel, the tools judge it, and a failure goes back for repair."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ridgeline.checkpoints.history.implementations import end_of
from ridgeline.graph.models.failures import ModelUnavailable
from ridgeline.graph.models.replies import UnreadableReply
from ridgeline.graph.models.requests import IdeaDraft, KernelRequest
from ridgeline.graph.search.branch import announce, branch_of_state, move
from ridgeline.graph.search.budget import exhausted, spent
from ridgeline.graph.search.events import warn
from ridgeline.graph.search.ideas.blocks import block_of
from ridgeline.graph.search.judging.judging import failure_text, run_step, store
from ridgeline.graph.search.ranking.elites import read_elite
from ridgeline.graph.search.repairs.mending import Try, best_of, mended_words, read_tries
from ridgeline.graph.search.way_on import repair_or_end
from ridgeline.tools.engines.steps import Step
from ridgeline.tools.errors import ModelError, NotBegun, OutOfBudget
from ridgeline.tools.machine.logs import logger_of
from ridgeline.tools.machine.threads import run_whole
from ridgeline.tools.records.keys import attempt_id, write_id
from ridgeline.tools.records.results import Evaluation
from ridgeline.tools.records.search import Candidate, Idea
from ridgeline.tools.records.vocabulary import Origin, Purpose, ReasonCode, Status

if TYPE_CHECKING:
    from ridgeline.checkpoints.archive import Archive
    from ridgeline.graph.search.context import SearchContext
    from ridgeline.graph.state import BranchState, Stage

logger = logger_of(__name__)

NEXT: dict[Step, Stage] = {"compile": "verify", "verify": "benchmark", "benchmark": "done"}


async def write(state: BranchState, context: SearchContext) -> BranchState:
    """Have the model write this attempt's kernel and store it."""
    branch = branch_of_state(state)
    update: BranchState = {}
    try:
        update = await _write(state, context)
        return update
    finally:
        if update.get("stage") != "compile":
            context.sibling_repairs.end(branch)


async def _write(state: BranchState, context: SearchContext) -> BranchState:
    attempt = state.get("attempt", 0)
    candidate_id = attempt_id(state["idea_id"], state["variation"], attempt)
    if stage := await run_whole(_stage_of_stored, context.archive, candidate_id):
        return move(state, candidate_id, stage)
    if over := exhausted(context.budget, await spent(context)):
        warn(f"{candidate_id}: not written: {over}")
        return {"stage": "done"}
    announce(state, candidate_id, "write")
    idea = await run_whole(context.archive.idea, state["idea_id"])
    request = await _request(context, state, idea, candidate_id)
    try:
        draft = await context.journalled_models.write(write_id(candidate_id), state["model"], request)
    except OutOfBudget as error:
        warn(f"{candidate_id}: not written: {error}")
        return {"stage": "done"}
    except NotBegun:
        # the graph drains: a resumed search takes the branch up here, or waits for the reply again
        return {"stage": "write"}
    except (ModelError, ModelUnavailable, UnreadableReply) as error:
        if isinstance(error, ModelError) and not context.models.drop(state["model"]):
            raise
        warn(f"{candidate_id}: not written: {error}")
        await _store_unwritten(context, state, idea, candidate_id, f"{state['model']} wrote no kernel: {error}")
        return move(state, candidate_id, "done")
    candidate = _candidate(context, state, idea, candidate_id, draft.source)
    await run_whole(context.archive.add_candidate, candidate)
    return move(state, candidate_id, "compile")


async def compile(state: BranchState, context: SearchContext) -> BranchState:  # noqa: A001  # a node's name
    """Call compile_kernel."""
    branch = branch_of_state(state)
    update: BranchState = {}
    try:
        update = await _judge(state, context, "compile")
        return update
    finally:
        is_built = update.get("stage") == NEXT["compile"]
        context.sibling_repairs.end(branch, state["candidate_id"] if is_built else None)


async def verify(state: BranchState, context: SearchContext) -> BranchState:
    """Call verify_kernel."""
    return await _judge(state, context, "verify")


async def benchmark(state: BranchState, context: SearchContext) -> BranchState:
    """Call benchmark_kernel."""
    return await _judge(state, context, "benchmark")


async def _judge(state: BranchState, context: SearchContext, step: Step) -> BranchState:
    """Run one step of the current candidate; its failure leads to a repair while attempts are left.

    One that does not build is mended first where that costs no call.
    """
    candidate_id = state["candidate_id"]
    announce(state, candidate_id, step)
    try:
        ended = await run_step(context, step, candidate_id, Purpose.SEARCH)
    except NotBegun:
        return {"stage": step}  # the graph drains: a resumed search takes the branch up here
    if ended is None:
        return {"stage": NEXT[step]}
    if isinstance(ended, Evaluation) and ended.status is Status.COMPILE_ERROR:
        return {"stage": "mend"}
    is_repairable = isinstance(ended, Evaluation) and ended.status is not Status.OK
    return await repair_or_end(state, context) if is_repairable else {"stage": "done"}


def _stage_of_stored(archive: Archive, candidate_id: str) -> Stage | None:
    """Return the stage after writing for an attempt that an earlier session stored; None for a new attempt."""
    try:
        archive.candidate(candidate_id)
    except KeyError:
        return None
    found = archive.evaluation(candidate_id)
    return "done" if found is not None and found.reason_code is ReasonCode.MODEL_FAILED else "compile"


async def _request(context: SearchContext, state: BranchState, idea: Idea, candidate_id: str) -> KernelRequest:
    failed = await run_whole(_failed, context.archive, state)
    if failed is not None and failed.is_unbuilt:  # its siblings with this error wait for this branch from here on
        context.sibling_repairs.begin(failed.signature, branch_of_state(state), state["model"])
    evaluation = failed.evaluation if failed else None
    request = KernelRequest(
        subject=context.subject,
        baselines=await context.told_baselines(state["round"]),
        idea=IdeaDraft.model_validate(idea.to_json()),
        variation=state["variation"],
        rng_seed=context.derived_seed(candidate_id),
        parent=await read_elite(context.archive, idea.parent_id),
        second_parent=await read_elite(context.archive, idea.second_parent_id),
        plan=idea.plans[state["variation"]] if state["variation"] < len(idea.plans) else "",
        block=await run_whole(block_of, context.archive, idea),
        failed_source=failed.candidate.source if failed else "",
        failure=_failure_words(failed) if failed else "",
        failure_code=evaluation.reason_code if evaluation else ReasonCode.NONE,
        earlier=await run_whole(_earlier, context.archive, state),
    )
    return context.ablation.of_kernel(request)


def _failed(archive: Archive, state: BranchState) -> Try | None:
    """Return what a repair starts from: the attempt before, or what was made of it without a call and is nearer."""
    attempt = state.get("attempt", 0)
    if attempt == 0:
        return None
    return best_of(read_tries(archive, attempt_id(state["idea_id"], state["variation"], attempt - 1)))


def _earlier(archive: Archive, state: BranchState) -> tuple[str, ...]:
    """Return how the attempts before the last one ended: what was tried already."""
    ids = (attempt_id(state["idea_id"], state["variation"], n) for n in range(state.get("attempt", 0) - 1))
    tries = (tried for each in ids if (tried := read_tries(archive, each)))
    return tuple(ended for tried in tries if (ended := end_of(archive, best_of(tried).candidate.id)))


def _failure_words(failed: Try) -> str:
    if failed.evaluation is None:
        return "it was not judged"
    return "\n\n".join(filter(None, (failure_text(failed.evaluation), mended_words(failed.candidate))))


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
    await run_whole(context.archive.add_candidate, _candidate(context, state, idea, candidate_id, ""))
    evaluation = Evaluation(
        key=f"unwritten:{candidate_id}",
        candidate_id=candidate_id,
        purpose=Purpose.SEARCH,
        status=Status.REFUSED,
        reason_code=ReasonCode.MODEL_FAILED,
        reason=reason,
    )
    await store(context, evaluation)
