"""What tests on a GPU judge with: a sandbox, a judge that stays up, builds from one cache."""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import dataclass, field, replace
from pathlib import Path

from ridgeline.graph.session.on_device import on_device
from ridgeline.problems.spec import load_problem
from ridgeline.tools.build.compiler import Compiler
from ridgeline.tools.engine import BenchmarkTask, CompareTask, CompileTask, DescribeTask, VerifyTask
from ridgeline.tools.local.evaluator import Evaluator
from ridgeline.tools.records.problem import DescribedTarget, Device, Target
from ridgeline.tools.records.results import Build, Comparison, Timing, Verdict
from ridgeline.tools.records.search import Candidate
from ridgeline.tools.records.vocabulary import DeviceKind, Interface, PrecisionClass, Purpose, Status
from ridgeline.tools.sandbox.sandbox import Sandbox, Tier, probe_sandbox
from tests.candidates import candidate_of

HOPPER = Device(
    kind=DeviceKind.CUDA,
    name="a Hopper GPU",
    arch="sm_90a",
    uuid="GPU-0",
    cores=132,
    memory_bytes=140 << 30,
    cache_bytes=60 << 20,
)


def report(name: str, **facts: object) -> None:
    """Append figures to the file that a measuring run asks for with RIDGELINE_GPU_REPORT."""
    path = os.environ.get("RIDGELINE_GPU_REPORT")
    if path:
        with open(path, "a", encoding="utf-8") as lines:
            lines.write(json.dumps({"test": name, **facts}) + "\n")


def opened(folder: Path) -> Path:
    """Let confined code read what lies in a folder of pytest's."""
    for path in (folder, *folder.parents[:2]):
        path.chmod(0o755)
    return folder


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
    tier: Tier | None = None  # None: the best one here
    evaluator: Evaluator = field(init=False)

    def __post_init__(self) -> None:
        self.sandbox = Sandbox(self.tier or probe_sandbox(allow_unsafe=False).tier)
        self.evaluator = Evaluator(self.device, cache_dir=self.folder, sandbox=self.sandbox)
        (self.folder / "tmp").mkdir(exist_ok=True)

    def problem(
        self, reference: str, tolerance: str = "fp32", name: str = "probe", *, interface: str = "c"
    ) -> DescribedTarget:
        bare = Target(
            name=name,
            reference_source=reference,
            interface=Interface(interface),
            tolerance=PrecisionClass(tolerance),
            device=self.device,
        )
        return self._described(replace(bare, call_timeout_s=10.0))

    def problem_of_file(self, path: Path) -> DescribedTarget:
        """Return the problem of a problem.yaml at the sizes that it has on a GPU."""
        return self._described(on_device(load_problem(path), self.device))

    def _described(self, bare: Target) -> DescribedTarget:
        return bare.described(self.evaluator.describe(DescribeTask(problem=bare)))

    def rest(self) -> None:
        """Leave the GPU to another program, which finds it busy while a judge of ours is there; the next task starts it."""
        self.evaluator.forget_judge()

    def build(self, problem: DescribedTarget, sources: dict[str, str]) -> dict[str, tuple[Candidate, Build]]:
        candidates = [
            candidate_of(source, name=name, language=problem.language, interface=problem.interface)
            for name, source in sources.items()
        ]
        compiler = Compiler(self.sandbox, self.folder, self.device)
        tasks = [CompileTask(problem=problem, candidate=candidate) for candidate in candidates]
        builds = asyncio.run(compiler.compile_batch(tasks))
        return {c.id: (c, b) for c, b in zip(candidates, builds, strict=True)}

    def judge(
        self,
        problem: DescribedTarget,
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

    def run(self, problem: DescribedTarget, sources: dict[str, str], *, timed: bool = True) -> dict[str, Outcome]:
        built = self.build(problem, sources)
        return {name: self.judge(problem, *pair, timed=timed) for name, pair in built.items()}

    def compare(
        self, problem: DescribedTarget, first: tuple[Candidate, Build], second: tuple[Candidate, Build]
    ) -> Comparison:
        """Time two kernels in one alternating run of two fresh processes."""
        task = CompareTask(
            problem=problem,
            first=first[0],
            first_build=first[1],
            second=second[0],
            second_build=second[1],
            purpose=Purpose.EVALUATE,
        )
        found = self.evaluator.compare(task)
        assert isinstance(found, Comparison), found
        return found

    def assert_correct(self, problem: DescribedTarget, sources: dict[str, str]) -> None:
        """Assert that every source is accepted, and report each."""
        outcomes = self.run(problem, sources, timed=False)
        for kernel, outcome in outcomes.items():
            error = outcome.verdict.rel_error if outcome.verdict else None
            report(problem.name, kernel=kernel, said=outcome.said(), rel_error=error)
        wrong = [f"{kernel}: {o.said()}" for kernel, o in outcomes.items() if o.last.status is not Status.OK]
        assert not wrong, "\n".join([f"{problem.name}: {len(wrong)} of {len(sources)}", *wrong])

    def assert_timed(self, problem: DescribedTarget, sources: dict[str, str]) -> None:
        """Assert that every source is accepted and timed, and report its time and eager's."""
        outcomes = self.run(problem, sources)
        for kernel, outcome in outcomes.items():
            timing = outcome.timing
            report(
                f"headline_{problem.name}",
                kernel=kernel,
                said=outcome.said(),
                median_ms=timing.median_ms if timing else None,
                reference_ms=timing.reference_ms if timing else None,
            )
        wrong = [f"{kernel}: {o.said()}" for kernel, o in outcomes.items() if o.last.status is not Status.OK]
        assert not wrong, "\n".join(wrong)
