"""A candidate's way through the judge: compile, verify, benchmark. The first step that fails is its last."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from ridgeline.tools.engine import BenchmarkTask, Engine, VerifyTask
from ridgeline.tools.records.keys import evaluation_key
from ridgeline.tools.records.problem import DescribedTarget
from ridgeline.tools.records.results import Build, Evaluation, Timing, Verdict
from ridgeline.tools.records.search import Candidate
from ridgeline.tools.records.vocabulary import Purpose, Status

Step = Literal["compile", "verify", "benchmark"]

STEPS: tuple[Step, ...] = ("compile", "verify", "benchmark")


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The results of the steps that one candidate took for one purpose."""

    candidate_id: str
    purpose: Purpose
    key: str  # of the evaluation
    build: Build
    verdict: Verdict | None = None
    timing: Timing | None = None

    @property
    def last(self) -> Build | Verdict | Timing:
        """Return the result of the last step that was taken."""
        return self.timing or self.verdict or self.build

    @property
    def is_over(self) -> bool:
        """Say whether no step is left: the last one failed, or it was the benchmark."""
        return self.timing is not None or self.last.status is not Status.OK

    @property
    def steps_s(self) -> float:
        """Return the seconds that the steps took; a cached build took none."""
        build_s = 0.0 if self.build.cached else self.build.build_s
        verify_s = self.verdict.verify_s if self.verdict else 0.0
        return build_s + verify_s + (self.timing.benchmark_s if self.timing else 0.0)

    def evaluation(self, *, total_s: float) -> Evaluation:
        """Return the evaluation that the steps of a candidate add up to once they are over."""
        last = self.last
        return Evaluation(
            key=self.key,
            candidate_id=self.candidate_id,
            purpose=self.purpose,
            status=last.status,
            reason_code=last.reason_code,
            reason=last.reason,
            build=self.build,
            verdict=self.verdict,
            timing=self.timing,
            total_s=total_s,
        )


async def take_steps(
    engine: Engine,
    problem: DescribedTarget,
    candidate: Candidate,
    build: Build,
    *,
    purpose: Purpose,
    upto: Step = "benchmark",
) -> Measured:
    """Return the results of a built candidate's steps, those after `upto` not taken.

    Raises:
        EngineError, InputError: as the engine does.
    """
    key = evaluation_key(build.key, problem, purpose)
    begun = Measured(candidate_id=candidate.id, purpose=purpose, key=key, build=build)
    return await take_further(engine, problem, candidate, begun, upto=upto)


async def take_further(
    engine: Engine, problem: DescribedTarget, candidate: Candidate, taken: Measured, *, upto: Step = "benchmark"
) -> Measured:
    """Return a candidate's results with those of the steps up to `upto` that it has not taken yet.

    Raises:
        EngineError, InputError: as the engine does.
    """
    build, verdict, purpose = taken.build, taken.verdict, taken.purpose
    if taken.is_over or upto == "compile":
        return taken
    if verdict is None:
        verify = VerifyTask(problem=problem, candidate=candidate, build=build, purpose=purpose)
        verdict = await engine.submit(verify)
        taken = replace(taken, verdict=verdict)
    if taken.is_over or upto == "verify":
        return taken
    benchmark = BenchmarkTask(problem=problem, candidate=candidate, build=build, verdict=verdict, purpose=purpose)
    timing = await engine.submit(benchmark)
    return replace(taken, timing=timing)
