"""A deterministic engine in memory, and a problem for it: graph logic without compilers and clocks.

A kernel's source says how it behaves: `speed 1.5` (speedup), `certified 1.0` (that of its certificate),
`fails compile|verify|fresh secrets|sanitizer|benchmark|compare`,
`crashes engine`, `needs HEADER`, `lacks NAME` (see `_build_error`); tunables multiply the speed as `factor NAME VALUE F`
lines say. A reference that says `fails describe` is refused.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from ridgeline.graph.search.sources.tuning import parse_tunables
from ridgeline.tools.engine import (
    BaselineTask,
    BenchmarkTask,
    CompareTask,
    CompileTask,
    DescribeTask,
    NextBaselineTask,
    ProfileTask,
    Task,
    VerifyTask,
)
from ridgeline.tools.errors import BadReferenceError, EngineError
from ridgeline.tools.records.baselines import Baseline, Baselines, Floor
from ridgeline.tools.records.finding import Finding
from ridgeline.tools.records.fix_it import FixIt
from ridgeline.tools.records.problem import ArgSpec, Description, Device, Signature, Target
from ridgeline.tools.records.reference_mode import ReferenceMode
from ridgeline.tools.records.results import Build, Comparison, FailedComparison, OwnWork, Profile, Timing, Verdict
from ridgeline.tools.records.search import Candidate
from ridgeline.tools.records.vocabulary import DeviceKind, Interface, PrecisionClass, Purpose, ReasonCode, Role, Status

EAGER_MS = 10.0
DEVICE = Device(
    kind=DeviceKind.CPU, name="Test CPU", arch="test-1", uuid="cpu", cores=2, memory_bytes=2**33, cache_bytes=2**24
)
SIGNATURE = Signature(
    args=(
        ArgSpec(name="x", role=Role.INPUT, shape=(4, 8), strides=(8, 1)),
        ArgSpec(name="out", role=Role.OUTPUT, shape=(4, 8), strides=(8, 1)),
    )
)
DESCRIPTION = Description(
    signature=SIGNATURE,
    reference_graph={"schema_version": 1, "nodes": [{"name": "n", "op": "aten::softmax"}], "inputs": ["x"]},
    compulsory_bytes=256,
    flops=0,
    reference_sha256="0" * 64,
    torch_version="2.13",
)


def target() -> Target:
    """Return the problem that the engine measures."""
    return Target(
        name="toy",
        reference_source="class Model: ...",
        interface=Interface.C,
        tolerance=PrecisionClass.FP32,
        device=DEVICE,
    )


def speed_of(source: str) -> float:
    """Return the speedup that a source states, tunables included."""
    speed = float(re.search(r"speed ([\d.]+)", source).group(1)) if "speed " in source else 1.0
    current = {t.name: t.current for t in parse_tunables(source)}
    for name, value, factor in re.findall(r"factor (\w+) (\w+) ([\d.]+)", source):
        if current.get(name) == value:
            speed *= float(factor)
    return speed


class MemoryEngine:
    """An Engine whose measurements are what the sources say; `log` (a file) gets one line a measurement."""

    pytorch_ms: ClassVar = {"eager": EAGER_MS, "compile": 0.8 * EAGER_MS}

    def __init__(self, *, floor_ms: float = 0.1, delay_s: float = 0.0, log: Path | None = None) -> None:
        self.counts: Counter[str] = Counter()
        self.floor_ms = floor_ms
        self.delay_s = delay_s
        self.log = log

    async def submit(self, task: Task[Any]) -> Any:
        """Answer at once."""
        name = type(task).__name__
        candidate = getattr(task, "candidate", None)
        self.counts[f"{name}:{candidate.id}" if candidate else name] += 1
        if self.delay_s:
            await asyncio.sleep(self.delay_s)
        if candidate is not None and f"crashes {name}" in candidate.source:
            raise EngineError("the judge died")
        answer = getattr(self, f"_{name.removesuffix('Task').lower()}")(task)
        if self.log is not None and candidate is not None:
            with self.log.open("a") as file:
                purpose = getattr(task, "purpose", "")
                file.write(json.dumps({"task": name, "candidate": candidate.id, "purpose": purpose}) + "\n")
        return answer

    async def aclose(self) -> None:
        """Nothing runs."""

    def _describe(self, task: DescribeTask) -> Description:
        if "fails describe" in task.problem.reference_source:
            raise BadReferenceError("reference.py: forward() raised RuntimeError: fails describe")
        return DESCRIPTION

    def _baseline(self, task: BaselineTask) -> Baselines:
        modes = ("eager",) if task.eager_only else tuple(self.pytorch_ms)
        entries = tuple(self._timed_by_pytorch(mode) for mode in modes)
        floor = Floor(floor_ms=self.floor_ms, compute_floor_ms=0.0, bound="memory", bandwidth_gbps=10.0, gflops=100.0)
        pending = tuple(ReferenceMode(mode) for mode in self.pytorch_ms if mode not in modes)
        return Baselines(device=task.problem.device, entries=entries, floor=floor, pending=pending)

    def _nextbaseline(self, task: NextBaselineTask) -> Baselines:
        mode, *rest = task.after.pending
        return replace(task.after, entries=(*task.after.entries, self._timed_by_pytorch(mode)), pending=tuple(rest))

    def _timed_by_pytorch(self, mode: str) -> Baseline:
        return Baseline(
            name=ReferenceMode(mode),
            precision_class=PrecisionClass.FP32,
            median_ms=self.pytorch_ms[mode],
            samples=50,
        )

    def _compile(self, task: CompileTask) -> Build:
        key = hashlib.sha256(f"{task.candidate.source}{task.sanitized}".encode()).hexdigest()
        if "fails compile" in task.candidate.source:
            reason, code = "expected ';' before '}'", ReasonCode.COMPILER_FAILED
            return Build(key=key, status=Status.COMPILE_ERROR, reason_code=code, reason=reason, log="k.cpp:3: error")
        if error := _build_error(task.candidate.source):
            return Build(key=key, status=Status.COMPILE_ERROR, reason_code=ReasonCode.COMPILER_FAILED, **error)
        return Build(key=key, status=Status.OK, library_path="/nowhere.so")

    def _verify(self, task: VerifyTask) -> Verdict:
        fails = "fails sanitizer" if task.sanitized else "fails verify"
        if fails in task.candidate.source:
            return Verdict(status=Status.WRONG, reason_code=ReasonCode.WRONG_VALUES, reason="row 3 differs")
        if task.own_secrets and "fails fresh secrets" in task.candidate.source:
            return Verdict(
                status=Status.WRONG, reason_code=ReasonCode.WRONG_VALUES, reason="shifted (secret 2) differs"
            )
        return Verdict(status=Status.OK, rel_error=1e-7, precision_class=PrecisionClass.FP32, sandbox_tier="A")

    def _benchmark(self, task: BenchmarkTask) -> Timing:
        if "fails benchmark" in task.candidate.source:
            return Timing(status=Status.UNTRUSTED, reason_code=ReasonCode.WITNESS_DISAGREES, reason="clocks disagree")
        again = re.search(r"certified ([\d.]+)", task.candidate.source) if task.purpose is Purpose.CERTIFY else None
        speed = float(again.group(1)) if again else speed_of(task.candidate.source)
        return Timing(
            status=Status.OK,
            median_ms=EAGER_MS / speed,
            reference_ms=EAGER_MS,
            speedup=speed,
            speedup_ci95=(speed * 0.99, speed * 1.01),
            samples=50,
            benchmark_s=0.5,
        )

    def _compare(self, task: CompareTask) -> Comparison | FailedComparison:
        for place, candidate in enumerate((task.first, task.second)):
            if "fails compare" in candidate.source:
                finding = Finding(code=ReasonCode.CRASHED, reason="killed by SIGSEGV during a call")
                return FailedComparison(finding=finding, at_fault=place)
        ratio = speed_of(task.second.source) / speed_of(task.first.source)
        return Comparison(ratio=ratio, ratio_ci95=(ratio * 0.99, ratio * 1.01), first_ms=1.0, second_ms=1.0, blocks=5)

    def _profile(self, task: ProfileTask) -> Profile:
        return Profile(
            bound="memory",
            fraction_of_floor=0.5,
            achieved_gbps=5.0,
            achieved_gflops=None,
            notes=("scalar",),
            own_work=OwnWork(share=1.0, how="it links libc.so.6"),
            median_ms=task.timing.median_ms if task.timing else None,
        )


def _build_error(source: str) -> dict[str, Any]:
    """Return what a compiler says of a source: `needs NAME` lacks a header that a fix-it adds, `lacks NAME` one without."""
    needs = [n for n in re.findall(r"needs (\w+)", source) if f"#include <{n}>" not in source]
    lacks = [n for n in re.findall(r"lacks (\w+)", source) if f"has {n}" not in source]
    if not (needs or lacks):
        return {}
    line = next(i for i, text in enumerate(source.splitlines(), 1) if f" {[*needs, *lacks][0]}" in text)
    fix_its = tuple(FixIt(line=1, column=1, end_column=1, text=f"#include <{name}>\n") for name in needs)
    reason = f"kernel.cpp:{line}:5: error: '{[*needs, *lacks][0]}' was not declared in this scope"
    return {"reason": reason, "log": reason, "errors": len(needs) + len(lacks), "fix_its": fix_its}


def seed_kernel(speed: float, stem: str = "naive") -> tuple[str, str]:
    """Return a seed kernel's stem and source."""
    return stem, f"// speed {speed}\n"


def kernel_ids(candidates: list[Candidate]) -> list[str]:
    """Return the ids, in order."""
    return [candidate.id for candidate in candidates]
