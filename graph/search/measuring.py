"""One candidate through the judge: compile, verify, benchmark, each a real tool call, and the evaluation they add up to."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import logging
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from ridgeline.checkpoints.over_pytorch import speedup_vs_best
from ridgeline.graph.search.events import emit
from ridgeline.tools.errors import EngineError, NotBegun
from ridgeline.tools.records.keys import evaluation_key
from ridgeline.tools.records.results import Build, Evaluation, Timing, Verdict
from ridgeline.tools.records.search import Candidate
from ridgeline.tools.records.vocabulary import DeviceKind, Origin, Purpose, ReasonCode, Status
from ridgeline.tools.toolbox import make_toolbox

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool

    from ridgeline.checkpoints.archive import Archive
    from ridgeline.graph.search.context import SearchContext

logger = logging.getLogger(__name__)

T = TypeVar("T")

STEPS = ("compile", "verify", "benchmark")
LOG_SHOWN = 6000
"""Characters of a compiler's messages that go back to the model; the first errors are repeated in the reason."""


async def call_tool(context: SearchContext, step: str, candidate_id: str, purpose: Purpose) -> dict[str, Any]:
    """Issue one tool call through LangGraph's tool node and return the tool's answer.

    Raises EngineError and InputError as the tool does: the tool node is told to handle nothing.
    """
    from langchain_core.messages import AIMessage
    from langgraph.prebuilt import ToolNode

    toolbox = await _toolbox(context, purpose)
    name = f"{step}_kernel"
    call = {"name": name, "args": {"candidate_id": candidate_id}, "id": f"{candidate_id}:{purpose}:{step}"}
    message = AIMessage(content="", tool_calls=[{**call, "type": "tool_call"}])
    with context.pauses.step():
        answer = await ToolNode(toolbox, handle_tool_errors=False).ainvoke({"messages": [message]})
    result: dict[str, Any] = json.loads(answer["messages"][-1].text)
    if "key" not in result:
        raise EngineError(f"{candidate_id}: {name}: {result.get('reason', 'an answer without a key')}")
    return result


async def _toolbox(context: SearchContext, purpose: Purpose) -> list[BaseTool]:
    """Return the search's tools for this purpose, made once: they remember which builds they have."""
    if purpose not in context.toolboxes:
        problem = await context.described()
        context.toolboxes[purpose] = make_toolbox(context.engine, context.archive, problem, purpose=purpose)
    return context.toolboxes[purpose]


async def run_step(context: SearchContext, step: str, candidate_id: str, purpose: Purpose) -> Evaluation | None:
    """Run one step of a candidate; return its evaluation when that step was its last.

    Idempotent: what was measured before is found in the archive, not measured again. An engine that fails is told apart
    from a kernel that fails by the reason; the branch ends, its siblings go on.
    """
    try:
        answer = await call_tool(context, step, candidate_id, purpose)
    except EngineError as error:
        logger.exception("%s: the engine failed", candidate_id)
        context.engine_failed.add((candidate_id, purpose))
        reason = f"the engine failed, the kernel may be sound: {error}"
        return await give_up(context, candidate_id, purpose, ReasonCode.ENGINE_FAILED, reason)
    build_key = str(answer["build_key"])  # of this answer: another compiler since the last step made another build
    key = evaluation_key(build_key, await context.described(), purpose)
    pieces = await asyncio.to_thread(read_pieces, context.archive, build_key, key, step)
    evaluation = await asyncio.to_thread(assemble, context.archive, candidate_id, purpose, pieces)
    if evaluation is not None:
        await store(context, evaluation)
    return evaluation


async def evaluate(context: SearchContext, candidate: Candidate, purpose: Purpose) -> Evaluation:
    """Store a candidate, take it through all steps and return its evaluation; a finished one is returned at once.

    One that an earlier session could not judge, because its engine failed, is judged now.
    """
    await asyncio.to_thread(context.archive.add_candidate, candidate)
    found = await asyncio.to_thread(context.archive.evaluation, candidate.id, purpose)
    if found is not None and is_due_again(context, found):
        found = None
    for step in STEPS:
        if found is not None:
            break
        found = await run_step(context, step, candidate.id, purpose)
    if found is None:
        raise EngineError(f"{candidate.id}: the benchmark tool left no timing")
    return found


async def gather_or_cancel(*work: Coroutine[Any, Any, T]) -> list[T]:
    """Return all results, or end all the work before an exception is raised.

    NotBegun waits for the work that had begun: a stop drops only the work that waits for its turn. Any other exception
    cancels the rest. Otherwise the rest would go on with an engine that is being closed, and kernels would be stored as
    ones that the engine failed on.
    """
    tasks = [asyncio.ensure_future(each) for each in work]
    try:
        return await asyncio.gather(*tasks)
    except NotBegun:
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


def is_due_again(context: SearchContext, evaluation: Evaluation) -> bool:
    """Say whether an evaluation is only an engine's failure of an earlier session: a kernel is tried once a session."""
    failed_now = (evaluation.candidate_id, evaluation.purpose) in context.engine_failed
    return evaluation.reason_code is ReasonCode.ENGINE_FAILED and not failed_now


async def measure_again(context: SearchContext) -> None:
    """Judge the kernels of this search that an earlier session's engine failed on."""
    for evaluation in await asyncio.to_thread(context.archive.evaluations):
        if evaluation.purpose in (Purpose.SEARCH, Purpose.TUNE) and is_due_again(context, evaluation):
            candidate = await asyncio.to_thread(context.archive.candidate, evaluation.candidate_id)
            await evaluate(context, candidate, evaluation.purpose)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pieces:
    """What the archive holds of one candidate for one purpose, up to a step."""

    key: str
    build: Build
    verdict: Verdict | None
    timing: Timing | None

    @property
    def last(self) -> Build | Verdict | Timing:
        """Return the piece that decides: the first that is not ok, else the newest."""
        pieces = [piece for piece in (self.build, self.verdict, self.timing) if piece is not None]
        return next((piece for piece in pieces if piece.status is not Status.OK), pieces[-1])

    @property
    def total_s(self) -> float:
        """Return the seconds that the pieces took; a cached build took none."""
        build_s = 0.0 if self.build.cached else self.build.build_s
        verify_s = self.verdict.verify_s if self.verdict else 0.0
        return build_s + verify_s + (self.timing.benchmark_s if self.timing else 0.0)


def read_pieces(archive: Archive, build_key: str, key: str, step: str) -> Pieces:
    """Return the stored pieces up to and including `step`; EngineError when there is not even a build."""
    reached = STEPS.index(step)
    build = archive.find("builds", build_key)
    verdict = archive.find("verdicts", key) if reached >= 1 else None
    timing = archive.find("timings", key) if reached >= 2 else None
    if build is None:
        raise EngineError(f"the {step} tool stored no build under {build_key}")
    return Pieces(
        key=key,
        build=Build.from_json(dict(build)),
        verdict=Verdict.from_json(dict(verdict)) if verdict else None,
        timing=Timing.from_json(dict(timing)) if timing else None,
    )


def assemble(archive: Archive, candidate_id: str, purpose: Purpose, pieces: Pieces) -> Evaluation | None:
    """Return the evaluation that the pieces add up to, or None when the next step is due."""
    last = pieces.last
    if last.status is Status.OK and pieces.timing is None:
        return None
    evaluation = Evaluation(
        key=pieces.key,
        candidate_id=candidate_id,
        purpose=purpose,
        status=last.status,
        reason_code=last.reason_code,
        reason=last.reason,
        build=pieces.build,
        verdict=pieces.verdict,
        timing=pieces.timing,
        total_s=pieces.total_s,
    )
    return dataclasses.replace(evaluation, speedup_vs_best=speedup_vs_best(evaluation, archive.baselines()))


async def store(context: SearchContext, evaluation: Evaluation) -> None:
    """Store an evaluation and its cost, and tell the viewers."""
    await asyncio.to_thread(context.archive.add_evaluation, evaluation)
    on_gpu = context.target.device.kind is DeviceKind.CUDA
    gpu_s = evaluation.timing.benchmark_s if on_gpu and evaluation.timing else 0.0
    gpu_s += evaluation.verdict.verify_s if on_gpu and evaluation.verdict else 0.0
    entry = f"{evaluation.candidate_id}:{evaluation.purpose}"
    cpu_s = evaluation.total_s - gpu_s
    if evaluation.total_s > 0:  # an entry is charged once: one of nothing would hide the cost of a later measurement
        await asyncio.to_thread(
            context.archive.charge, entry, cpu_s=cpu_s, gpu_s=gpu_s, wall_s=evaluation.total_s, what=evaluation.purpose
        )
    candidate = await asyncio.to_thread(context.archive.candidate, evaluation.candidate_id)
    timing = evaluation.timing
    logger.info(
        "%s: %s %s", candidate.id, evaluation.status, f"{evaluation.speedup:.3f}x" if evaluation.speedup else ""
    )
    emit(
        {
            "event": "candidate_done",
            "candidate_id": candidate.id,
            "idea_id": candidate.idea_id,
            "branch": f"{candidate.idea_id}v{candidate.variation}" if candidate.origin is Origin.MODEL else "",
            "origin": candidate.origin.value,
            "status": evaluation.status.value,
            "reason": evaluation.reason,
            "median_ms": timing.median_ms if timing else None,
            "speedup": evaluation.speedup,
        }
    )


async def give_up(
    context: SearchContext, candidate_id: str, purpose: Purpose, reason_code: ReasonCode, reason: str
) -> Evaluation:
    """Store and return the evaluation of a candidate that could not be judged for a reason outside of it."""
    evaluation = Evaluation(
        key=f"unjudged:{candidate_id}:{purpose}",
        candidate_id=candidate_id,
        purpose=purpose,
        status=Status.REFUSED,
        reason_code=reason_code,
        reason=reason,
    )
    await store(context, evaluation)
    return evaluation


def failure_text(evaluation: Evaluation) -> str:
    """Return why a candidate failed, for the model that repairs it."""
    log = evaluation.build.log if evaluation.build and evaluation.status is Status.COMPILE_ERROR else ""
    head = f"{evaluation.status} ({evaluation.reason_code}): {evaluation.reason}"
    trials = [t for t in (evaluation.verdict.trials if evaluation.verdict else ()) if not t.passed and not t.skipped]
    lines = [f"- trial {t.name}: relative error {t.rel_error:.3g}, allowed {t.gate:.3g}" for t in trials]
    return "\n".join([head, *lines, log[-LOG_SHOWN:]]).strip()
