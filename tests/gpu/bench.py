"""What tests on a GPU judge with: a sandbox, a judge that stays up, builds from one cache."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from pathlib import Path

from ridgeline.tools.compiler import Compiler
from ridgeline.tools.engine import BenchmarkTask, CompileTask, DescribeTask, ProblemOnDevice, ProfileTask, VerifyTask
from ridgeline.tools.evaluator import Evaluator
from ridgeline.tools.records import Build, Candidate, Device, Origin, Profile, Purpose, Status, Timing, Verdict
from ridgeline.tools.sandbox import Sandbox, probe_sandbox


@dataclass
class Outcome:
    """How far one source came."""

    build: Build
    verdict: Verdict | None = None
    timing: Timing | None = None

    @property
    def last(self) -> Build | Verdict | Timing:
        return self.timing or self.verdict or self.build

    def said(self) -> str:
        return f"{self.last.status} {self.last.reason_code} {self.last.reason}"


@dataclass
class Bench:
    """One evaluator for the whole session; it keeps the judge of the problem at hand."""

    device: Device
    folder: Path
    evaluator: Evaluator = field(init=False)

    def __post_init__(self) -> None:
        self.sandbox = Sandbox(probe_sandbox(allow_unsafe=False).tier)
        self.evaluator = Evaluator(self.device, cache_dir=self.folder, sandbox=self.sandbox)
        (self.folder / "tmp").mkdir(exist_ok=True)

    def problem(self, reference: str, tolerance: str = "fp32", name: str = "probe") -> ProblemOnDevice:
        bare = ProblemOnDevice(
            name=name, reference_source=reference, interface="c", tolerance=tolerance, device=self.device
        )
        bare = replace(bare, call_timeout_s=10.0)
        return replace(bare, description=self.evaluator.describe(DescribeTask(problem=bare)))

    def build(self, problem: ProblemOnDevice, sources: dict[str, str]) -> dict[str, tuple[Candidate, Build]]:
        candidates = [
            Candidate(id=name, origin=Origin.SEED, round=0, idea_id=None, parent_id=None, source=source, language="cu")
            for name, source in sources.items()
        ]
        compiler = Compiler(self.sandbox, self.folder, self.device)
        tasks = [CompileTask(problem=problem, candidate=candidate) for candidate in candidates]
        builds = asyncio.run(compiler.compile_batch(tasks))
        return {c.id: (c, b) for c, b in zip(candidates, builds, strict=True)}

    def judge(
        self,
        problem: ProblemOnDevice,
        candidate: Candidate,
        build: Build,
        *,
        timed: bool = True,
        purpose: Purpose = Purpose.SEARCH,
    ) -> Outcome:
        outcome = Outcome(build)
        if build.status is not Status.OK:
            return outcome
        outcome.verdict = self.evaluator.verify(VerifyTask(problem=problem, candidate=candidate, build=build))
        if outcome.verdict.status is not Status.OK or not timed:
            return outcome
        task = BenchmarkTask(
            problem=problem, candidate=candidate, build=build, verdict=outcome.verdict, purpose=purpose
        )
        outcome.timing = self.evaluator.benchmark(task)
        return outcome

    def run(self, problem: ProblemOnDevice, sources: dict[str, str], *, timed: bool = True) -> dict[str, Outcome]:
        built = self.build(problem, sources)
        return {name: self.judge(problem, *pair, timed=timed) for name, pair in built.items()}

    def profile(self, problem: ProblemOnDevice, candidate: Candidate, outcome: Outcome) -> Profile:
        task = ProfileTask(problem=problem, candidate=candidate, build=outcome.build, timing=outcome.timing)
        return self.evaluator.profile(task)
