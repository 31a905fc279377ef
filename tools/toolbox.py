"""The four steps of a candidate's life as LangChain tools: ids in, short JSON out, the records in the store.

A tool never returns a source or a compiler's log: both stay in the store, under the keys that the results name. What
the store already holds under a candidate's evaluation key is returned and not measured again.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from langchain_core.tools import BaseTool, StructuredTool

from ridgeline.tools.engine import BenchmarkTask, CandidateStore, CompileTask, Engine, ProfileTask, VerifyTask
from ridgeline.tools.records.codec import Record
from ridgeline.tools.records.keys import evaluation_key
from ridgeline.tools.records.problem import DescribedTarget
from ridgeline.tools.records.results import Build, Profile, Timing, Verdict
from ridgeline.tools.records.search import Candidate
from ridgeline.tools.records.vocabulary import Purpose, Status

RecordT = TypeVar("RecordT", bound=Record)
Step = Callable[[str], Awaitable[str]]

REASON_CHARS = 1000  # a wrong signature is answered with the right one


def make_toolbox(
    engine: Engine, store: CandidateStore, target: DescribedTarget, *, purpose: Purpose = Purpose.SEARCH
) -> list[BaseTool]:
    """Return compile_kernel, verify_kernel, benchmark_kernel and profile_kernel, each taking a `candidate_id`.

    `target` has to be described. Each result is a JSON object: candidate_id, status, reason_code, reason, key (of the
    stored record), build_key and the step's numbers. An infrastructure failure is raised, not returned.
    """
    steps = Steps(engine, store, target, purpose)
    return [_tool(name, text, step) for name, text, step in _described(steps)]


def make_source_toolbox(
    engine: Engine,
    store: CandidateStore,
    target: DescribedTarget,
    keep: Callable[[str], str],
    *,
    purpose: Purpose = Purpose.SEARCH,
) -> list[BaseTool]:
    """Return the tools for binding to a model: `compile_kernel` takes a whole `source`, the others the id it returns.

    For a host application whose own agent writes kernels and calls tools itself; Ridgeline's search asks its models for
    text and uses `make_toolbox`. `keep` stores a source as a candidate, durably, and returns its id.
    """
    steps = Steps(engine, store, target, purpose)

    async def compile_source(source: str) -> str:
        candidate_id = await asyncio.to_thread(keep, source)
        return await steps.compile(candidate_id)

    text = "Store one complete kernel source and compile it. Returns its candidate_id for the other tools."
    first = StructuredTool.from_function(coroutine=compile_source, name="compile_kernel", description=text)
    return [first, *(_tool(name, text, step) for name, text, step in _described(steps)[1:])]


class Steps:
    """The steps behind the tools; each makes sure of the ones before it."""

    def __init__(self, engine: Engine, store: CandidateStore, target: DescribedTarget, purpose: Purpose) -> None:
        self._engine = engine
        self._store = store
        self._target = target
        self._purpose = purpose
        self._builds: dict[str, Build] = {}

    async def compile(self, candidate_id: str) -> str:
        """Compile the candidate, or take it from the build cache."""
        return await self._once_built(candidate_id, self._told_of_build)

    async def verify(self, candidate_id: str) -> str:
        """Check the candidate against the reference."""
        return await self._once_built(candidate_id, self._verified)

    async def benchmark(self, candidate_id: str) -> str:
        """Time the candidate against eager PyTorch; one that is not correct is not timed."""
        return await self._once_built(candidate_id, self._benchmarked)

    async def profile(self, candidate_id: str) -> str:
        """Say what limits the candidate."""
        return await self._once_built(candidate_id, self._profiled)

    async def _once_built(self, candidate_id: str, step: Callable[[Candidate, Build], Awaitable[str]]) -> str:
        """Return the step's answer, or why there is nothing to take it on."""
        try:
            candidate = await asyncio.to_thread(self._store.candidate, candidate_id)
        except KeyError:
            return _unknown(candidate_id)
        build = await self._build(candidate)
        return await (step if build.status is Status.OK else self._told_of_build)(candidate, build)

    async def _told_of_build(self, candidate: Candidate, build: Build) -> str:
        return _result(candidate.id, build, build.key, build, build_s=build.build_s, cached=build.cached)

    async def _verified(self, candidate: Candidate, build: Build) -> str:
        verdict = await self._verdict(candidate, build)
        numbers = {"rel_error": verdict.rel_error, "precision_class": verdict.precision_class}
        return _result(candidate.id, build, self._key(build), verdict, **numbers, labels=list(verdict.labels))

    async def _benchmarked(self, candidate: Candidate, build: Build) -> str:
        verdict = await self._verdict(candidate, build)
        if verdict.status is not Status.OK:
            return _result(candidate.id, build, self._key(build), verdict)
        timing = await self._timing(candidate, build, verdict)
        numbers = {name: getattr(timing, name) for name in ("median_ms", "reference_ms", "speedup", "speedup_ci95")}
        return _result(candidate.id, build, self._key(build), timing, **numbers, labels=list(timing.labels))

    async def _profiled(self, candidate: Candidate, build: Build) -> str:
        profile = await self._profile(candidate, build)
        return json.dumps({"candidate_id": candidate.id, "status": "ok", "key": self._key(build), **profile.to_json()})

    def _key(self, build: Build) -> str:
        return evaluation_key(build.key, self._target, self._purpose)

    async def _build(self, candidate: Candidate) -> Build:
        """Return the candidate's build: asked of the compiler, whose cache alone knows whether the toolchain changed."""
        if candidate.id not in self._builds:
            build = await self._engine.submit(CompileTask(problem=self._target, candidate=candidate))
            await asyncio.to_thread(self._store.save, "builds", build.key, candidate.id, build)
            self._builds[candidate.id] = build
        return self._builds[candidate.id]

    async def _verdict(self, candidate: Candidate, build: Build) -> Verdict:
        async def measure() -> Verdict:
            task = VerifyTask(problem=self._target, candidate=candidate, build=build, purpose=self._purpose)
            return await self._engine.submit(task)

        return await self._once("verdicts", Verdict, candidate, build, measure)

    async def _timing(self, candidate: Candidate, build: Build, verdict: Verdict) -> Timing:
        async def measure() -> Timing:
            return await self._engine.submit(
                BenchmarkTask(
                    problem=self._target, candidate=candidate, build=build, verdict=verdict, purpose=self._purpose
                )
            )

        return await self._once("timings", Timing, candidate, build, measure)

    async def _profile(self, candidate: Candidate, build: Build) -> Profile:
        async def measure() -> Profile:
            stored = await asyncio.to_thread(self._store.find, "timings", self._key(build))
            timing = Timing.from_json(stored) if stored else None
            task = ProfileTask(problem=self._target, candidate=candidate, build=build, timing=timing)
            return await self._engine.submit(task)

        return await self._once("profiles", Profile, candidate, build, measure)

    async def _once(
        self,
        table: str,
        record_type: type[RecordT],
        candidate: Candidate,
        build: Build,
        measure: Callable[[], Awaitable[RecordT]],
    ) -> RecordT:
        """Return what the store holds under the evaluation key, else measure it and store it."""
        key = self._key(build)
        stored = await asyncio.to_thread(self._store.find, table, key)
        if stored is not None:
            return record_type.from_json(stored)
        record = await measure()
        await asyncio.to_thread(self._store.save, table, key, candidate.id, record)
        return record


def _described(steps: Steps) -> Sequence[tuple[str, str, Step]]:
    return (
        ("compile_kernel", "Compile a stored candidate. Run this first.", steps.compile),
        ("verify_kernel", "Check a candidate against the PyTorch reference on secret inputs.", steps.verify),
        (
            "benchmark_kernel",
            "Time a correct candidate against eager PyTorch; speedup above 1 is faster.",
            steps.benchmark,
        ),
        (
            "profile_kernel",
            "Say whether a candidate is memory- or compute-bound and how far from the floor.",
            steps.profile,
        ),
    )


def _tool(name: str, description: str, step: Step) -> BaseTool:
    async def call(candidate_id: str) -> str:
        return await step(candidate_id)

    return StructuredTool.from_function(coroutine=call, name=name, description=description)


def _result(candidate_id: str, build: Build, key: str, record: Build | Verdict | Timing, **numbers: Any) -> str:
    reason = " ".join(record.reason.split())[:REASON_CHARS]
    result = {
        "candidate_id": candidate_id,
        "status": record.status,
        "reason_code": record.reason_code,
        "reason": reason,
    }
    return json.dumps({**result, "key": key, "build_key": build.key, **numbers})


def _unknown(candidate_id: str) -> str:
    reason = f"there is no candidate {candidate_id[:80]!r}"
    return json.dumps({"candidate_id": candidate_id[:80], "status": "refused", "reason_code": "none", "reason": reason})
