"""A kernel that a benchmark measures: a source as a candidate, its problem described, its build and verdict."""

from __future__ import annotations

from ridgeline.tools.engine import CompileTask, DescribeTask, Engine, VerifyTask
from ridgeline.tools.records.problem import DescribedTarget, Target
from ridgeline.tools.records.results import Build, Verdict
from ridgeline.tools.records.search import Candidate
from ridgeline.tools.records.vocabulary import Origin, Status


def kernel_of(problem: Target, source: str, *, name: str) -> Candidate:
    """Return a source as a candidate for a problem, as of a file given for judgement."""
    return Candidate(
        id=name,
        origin=Origin.FILE,
        round=0,
        idea_id=None,
        parent_id=None,
        source=source,
        language=problem.language,
        interface=problem.interface,
    )


async def described(engine: Engine, target: Target) -> DescribedTarget:
    """Return a problem with what a judge on the device says of its reference."""
    return target.described(await engine.submit(DescribeTask(problem=target)))


async def built(engine: Engine, problem: DescribedTarget, kernel: Candidate) -> Build:
    """Return a kernel's build; one line that says why ends the benchmark when it does not build."""
    build = await engine.submit(CompileTask(problem=problem, candidate=kernel))
    if build.status is not Status.OK:
        raise SystemExit(f"{kernel.id} does not build: {build.reason}")
    return build


async def verified(engine: Engine, problem: DescribedTarget, kernel: Candidate, build: Build) -> Verdict:
    """Return a kernel's verdict for a search; one line that says why ends the benchmark when it is not accepted."""
    verdict = await engine.submit(VerifyTask(problem=problem, candidate=kernel, build=build))
    if verdict.status is not Status.OK:
        raise SystemExit(f"{kernel.id} is not accepted: {verdict.reason}")
    return verdict
