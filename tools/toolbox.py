"""The four steps of a candidate's life as LangChain tools: ids in, short JSON out, the records beside it.

The answer for a model is the message's content, which never holds a source or a compiler's log. The records for a
program are the message's `artifact`: `Measured` of a step, `Profile` of the profile, None of an unknown candidate. Each
is stored before the tool answers, and what is stored is not measured again.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from langchain_core.tools import BaseTool, StructuredTool
from langchain_core.tools.base import ArgsSchema

from ridgeline.tools.build.stages import has_profile_build
from ridgeline.tools.engine import CompileTask, Engine, MeasurementStore, ProfileTask
from ridgeline.tools.engines.remembering import RememberingEngine
from ridgeline.tools.engines.steps import Measured, Step, take_steps
from ridgeline.tools.machine.threads import run_whole
from ridgeline.tools.records.keys import evaluation_key
from ridgeline.tools.records.problem import DescribedTarget
from ridgeline.tools.records.results import Build, Profile, Timing, Verdict
from ridgeline.tools.records.search import Candidate
from ridgeline.tools.records.vocabulary import Purpose, Status

Answer = tuple[str, Measured | Profile | None]
"""A tool's content and its artifact."""

REASON_CHARS = 1000  # a wrong signature is answered with the right one


def make_toolbox(
    engine: RememberingEngine, target: DescribedTarget, *, purpose: Purpose = Purpose.SEARCH
) -> list[BaseTool]:
    """Return compile_kernel, verify_kernel, benchmark_kernel and profile_kernel, each taking a `candidate_id`.

    The content of each answer is a JSON object: candidate_id, status, reason_code, reason, key (of the stored record),
    build_key and the step's numbers. An infrastructure failure is raised, not returned.
    """
    return [_tool(name, text, call) for name, text, call in _described(KernelTools(engine, target, purpose))]


def make_source_toolbox(
    engine: Engine,
    store: MeasurementStore,
    target: DescribedTarget,
    keep: Callable[[str], str],
    *,
    purpose: Purpose = Purpose.SEARCH,
) -> list[BaseTool]:
    """Return the tools for binding to a model: `compile_kernel` takes a whole `source`, the others the id it returns.

    For a host application whose own agent writes kernels and calls tools itself; Ridgeline's search asks its models for
    text and uses `make_toolbox`. `keep` stores a source as a candidate, durably, and returns its id.
    """
    tools = KernelTools(RememberingEngine(engine, store), target, purpose)

    async def compile_source(source: str) -> Answer:
        candidate_id = await run_whole(keep, source)
        return await tools.compile(candidate_id)

    text = "Store one complete kernel source and compile it. Returns its candidate_id for the other tools."
    first = StructuredTool.from_function(
        coroutine=compile_source, name="compile_kernel", description=text, response_format="content_and_artifact"
    )
    return [first, *(_tool(name, text, call) for name, text, call in _described(tools)[1:])]


class KernelTools:
    """The functions behind the tools; each makes sure of the steps before its own."""

    def __init__(self, engine: RememberingEngine, target: DescribedTarget, purpose: Purpose) -> None:
        self._engine = engine
        self._target = target
        self._purpose = purpose
        self._builds: dict[str, Build] = {}

    async def compile(self, candidate_id: str) -> Answer:
        """Compile the candidate, or take it from the build cache."""
        return await self._take(candidate_id, "compile")

    async def verify(self, candidate_id: str) -> Answer:
        """Check the candidate against the reference."""
        return await self._take(candidate_id, "verify")

    async def benchmark(self, candidate_id: str) -> Answer:
        """Time the candidate against eager PyTorch; one that is not correct is not timed."""
        return await self._take(candidate_id, "benchmark")

    async def profile(self, candidate_id: str) -> Answer:
        """Say what limits the candidate."""
        candidate = await self._candidate(candidate_id)
        if candidate is None:
            return _unknown(candidate_id), None
        build = await self._build(candidate)
        if build.status is not Status.OK:
            return await self._take(candidate_id, "compile")
        key = evaluation_key(build.key, self._target, self._purpose)
        profile = await self._engine.find(Profile, key)
        if profile is None:
            task = ProfileTask(
                problem=self._target,
                candidate=candidate,
                build=build,
                purpose=self._purpose,
                timing=await self._steady_timing(key),
                profile_build=await self._profile_build(candidate),
            )
            profile = await self._engine.submit(task)
        told = {name: value for name, value in profile.to_json().items() if name != "details"}
        return json.dumps({"candidate_id": candidate_id, "status": "ok", "key": key, **told}), profile

    async def _take(self, candidate_id: str, upto: Step) -> Answer:
        candidate = await self._candidate(candidate_id)
        if candidate is None:
            return _unknown(candidate_id), None
        build = await self._build(candidate)
        taken = await take_steps(self._engine, self._target, candidate, build, purpose=self._purpose, upto=upto)
        return _content(taken, upto), taken

    async def _candidate(self, candidate_id: str) -> Candidate | None:
        try:
            return await run_whole(self._engine.store.candidate, candidate_id)
        except KeyError:
            return None

    async def _steady_timing(self, key: str) -> Timing | None:
        """Return a candidate's timing with its median at eager's own time, so that two diagnoses can be compared."""
        timing, verdict = await self._engine.find(Timing, key), await self._engine.find(Verdict, key)
        baselines = await run_whole(self._engine.store.baselines)
        if timing is None or baselines is None:
            return timing
        return replace(timing, median_ms=baselines.steady_ms(timing, verdict.precision_class if verdict else None))

    async def _profile_build(self, candidate: Candidate) -> Build | None:
        """Return the build that a profile looks into beside the judged one; None where none tells more."""
        if not has_profile_build(candidate.source, self._target.device.kind, self._target.interface):
            return None
        return await self._engine.submit(CompileTask(problem=self._target, candidate=candidate, profiled=True))

    async def _build(self, candidate: Candidate) -> Build:
        """Return the candidate's build, the same for all steps of a session: another compiler makes another build."""
        if candidate.id not in self._builds:
            self._builds[candidate.id] = await self._engine.submit(
                CompileTask(problem=self._target, candidate=candidate)
            )
        return self._builds[candidate.id]


Call = Callable[[str], Awaitable[Answer]]


def _described(tools: KernelTools) -> Sequence[tuple[str, str, Call]]:
    return (
        ("compile_kernel", "Compile a stored candidate. Run this first.", tools.compile),
        ("verify_kernel", "Check a candidate against the PyTorch reference on secret inputs.", tools.verify),
        (
            "benchmark_kernel",
            "Time a correct candidate against eager PyTorch; speedup above 1 is faster.",
            tools.benchmark,
        ),
        (
            "profile_kernel",
            "Say whether a candidate is memory- or compute-bound and how far from the floor.",
            tools.profile,
        ),
    )


def _tool(name: str, description: str, call: Call) -> BaseTool:
    async def tool(candidate_id: str) -> Answer:
        return await call(candidate_id)

    tool.__annotations__ = {"candidate_id": str, "return": Answer}  # LangChain would compile their text at each call
    return StructuredTool.from_function(
        coroutine=tool,
        name=name,
        description=description,
        args_schema=_arguments(name),
        response_format="content_and_artifact",
    )


@cache
def _arguments(name: str) -> ArgsSchema | None:
    """Return the arguments of a tool that takes an id, made once: pydantic takes milliseconds for each toolbox's."""

    async def tool(candidate_id: str) -> Answer:
        raise NotImplementedError

    return StructuredTool.from_function(coroutine=tool, name=name, description=name).args_schema


def _content(taken: Measured, upto: Step) -> str:
    """Return what a model is told of the last step taken, with the numbers of the step it asked for."""
    build, verdict, timing = taken.build, taken.verdict, taken.timing
    if verdict is None:
        return _result(taken, build.key, build_s=build.build_s, cached=build.cached)
    if upto == "verify":
        numbers = {name: getattr(verdict, name) for name in ("rel_error", "precision_class", "margin")}
        return _result(taken, taken.key, **numbers, labels=list(verdict.labels))
    if timing is None:
        return _result(taken, taken.key)
    numbers = {name: getattr(timing, name) for name in ("median_ms", "reference_ms", "speedup", "speedup_ci95")}
    return _result(taken, taken.key, **numbers, labels=list(timing.labels))


def _result(taken: Measured, key: str, **numbers: Any) -> str:
    result = {
        "candidate_id": taken.candidate_id,
        "status": taken.last.status,
        "reason_code": taken.last.reason_code,
        "reason": " ".join(taken.last.reason.split())[:REASON_CHARS],
    }
    return json.dumps({**result, "key": key, "build_key": taken.build.key, **numbers})


def _unknown(candidate_id: str) -> str:
    reason = f"there is no candidate {candidate_id[:80]!r}"
    return json.dumps({"candidate_id": candidate_id[:80], "status": "refused", "reason_code": "none", "reason": reason})
