"""Our times of twenty CUDA kernels beside those of Triton's timer and of PyTorch's profiler.

    PYTHONPATH=src python benchmarks/agreement.py [KERNEL …] [--device cuda]    (needs torch and triton; 20 s a kernel)

The kernels are the shipped CUDA seeds, those of `aa/`, and those of `agreement/`: all Ridgeline's own. Each is timed by
Ridgeline as a search times a candidate (judge, sandbox, alternation with eager), then the same build by
`agreement_timers.py` in a process that knows nothing of Ridgeline's timing. `results/agreement-cuda.json` has the times
and their ratios; what is asked is agreement with the profiler within 3 % on kernels over 100 us. A profiler changes what
it looks at: CUDA events around the same calls without it, in the same process, tell by how much.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from form import form_problem
from kernel import described, kernel_of
from result import RESULTS, merge_result, provenance

from ridgeline.graph.session.on_device import on_device
from ridgeline.problems.spec import load_problem, shipped_problems
from ridgeline.tools.engine import BenchmarkTask, CompileTask, Engine, VerifyTask
from ridgeline.tools.engines.local import LocalEngine
from ridgeline.tools.machine.devices import detect_device
from ridgeline.tools.machine.locks import DeviceLock
from ridgeline.tools.records.problem import DescribedTarget, Device, Target
from ridgeline.tools.records.results import Build, Timing
from ridgeline.tools.records.search import Candidate
from ridgeline.tools.records.vocabulary import Interface, PrecisionClass, Status

HERE = Path(__file__).parent
TIMERS = HERE / "agreement_timers.py"
TIMERS_LIMIT_S = 180
READY = "ready"
"""The line that the other timers print when their imports are done."""
LONG_MS = 0.1
WANTED = 0.03
MEGABYTES_OF_AA = 2000  # 0.5 ms for `affine` on an H200


def kernels() -> dict[str, Path]:
    """Return the twenty kernels by name: problem/seed for the shipped ones."""
    shipped = [
        (f"{name}/{path.stem}", path)
        for name, problem in shipped_problems().items()
        for path in sorted((problem.parent / "seeds").glob("*.cu"))
    ]
    own = [(path.stem, path) for folder in ("aa", "agreement") for path in sorted((HERE / folder).glob("*.cu"))]
    return dict(shipped + own)


def problem_of(name: str, path: Path, device: Device) -> Target:
    """Return the problem that a kernel solves."""
    if "/" in name:
        return on_device(load_problem(shipped_problems()[name.split("/", maxsplit=1)[0]]), device)
    if path.parent.name == "aa":
        return form_problem(f"{name}:{MEGABYTES_OF_AA}", device)
    source = path.with_suffix(".py").read_text()
    return Target(
        name=name, reference_source=source, interface=Interface.C, tolerance=PrecisionClass.FP32, device=device
    )


@dataclass(frozen=True, slots=True)
class Prepared:
    """A kernel with its problem, built."""

    problem: DescribedTarget
    candidate: Candidate
    build: Build


def candidate_of(problem: DescribedTarget, path: Path) -> Candidate:
    """Return a kernel's file as a candidate."""
    return kernel_of(problem, path.read_text(), name=path.stem)


async def prepared(engine: Engine, name: str, path: Path, device: Device) -> Prepared:
    """Return a kernel described, by a judge on the device, and built; the kernel itself has not run."""
    problem = await described(engine, problem_of(name, path, device))
    candidate = candidate_of(problem, path)
    build = await engine.submit(CompileTask(problem=problem, candidate=candidate))
    return Prepared(problem, candidate, build)


async def compare(engine: Engine, kernel: Prepared, device: Device) -> dict[str, Any]:
    """Return one kernel's times by the three timers."""
    problem, candidate, build = kernel.problem, kernel.candidate, kernel.build
    if build.status is not Status.OK:
        return {"failed": build.reason}
    with OtherTimers(device) as others:
        verdict = await engine.submit(VerifyTask(problem=problem, candidate=candidate, build=build))
        if verdict.status is not Status.OK:
            return {"failed": f"{verdict.status}: {verdict.reason}"}
        if absent := await asyncio.to_thread(others.wait_until_ready):
            return {"failed": absent}
        task = BenchmarkTask(problem=problem, candidate=candidate, build=build, verdict=verdict)
        timing = await engine.submit(task)
        if timing.median_ms is None:
            return {"failed": f"{timing.status}: {timing.reason}"}
        await engine.aclose()  # the judge holds gigabytes of the GPU, and the timers shall be alone on it
        async with DeviceLock(device.uuid).exclusive():
            return entry_of(timing, await asyncio.to_thread(others.times, problem, build))


class OtherTimers:
    """A process with Triton's timer and the profiler: imports at once, and touches the GPU when it is asked.

    Its imports keep cores busy for seconds, so none of our timings begins before it is ready.
    """

    def __init__(self, device: Device) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(TIMERS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"CUDA_VISIBLE_DEVICES": device.uuid},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def wait_until_ready(self) -> str:
        """Return "" once the process has done its imports, or why it never will."""
        assert self._process.stdout is not None
        limit = threading.Timer(TIMERS_LIMIT_S, self._process.kill)
        limit.start()
        try:
            if any(line.strip() == READY for line in iter(self._process.stdout.readline, "")):
                return ""
        finally:
            limit.cancel()
        _, complained = self._process.communicate()
        return f"the other timers did not get ready: {self._complaint(complained)}"

    def times(self, problem: DescribedTarget, build: Build) -> dict[str, Any]:
        """Return what both say of a build; {"failed": why} when they say nothing."""
        request = {
            "library": build.library_path,
            "reference": problem.reference_source,
            "signature": problem.description.signature.to_json(),
            "cache_bytes": problem.device.cache_bytes,
        }
        try:
            printed, complained = self._process.communicate(json.dumps(request) + "\n", timeout=TIMERS_LIMIT_S)
        except subprocess.TimeoutExpired:
            return {"failed": f"no answer within {TIMERS_LIMIT_S} s"}
        if self._process.returncode != 0:
            return {"failed": self._complaint(complained)}
        found: dict[str, Any] = json.loads(printed.splitlines()[-1])
        return found

    def _complaint(self, complained: str) -> str:
        said = complained.strip().splitlines()
        return said[-1] if said else f"exit status {self._process.returncode}"


def entry_of(timing: Timing, others: dict[str, Any]) -> dict[str, Any]:
    """Return a kernel's entry with the ratios of our time to the others'."""
    ours = timing.median_ms or 0.0
    entry = {"measured": provenance(), "ridgeline_ms": ours, "labels": [label.value for label in timing.labels]}
    entry |= {"clocks": timing.to_json()["clocks"], "witness_ms": timing.witness_ms, **others}
    for name in ("do_bench", "do_bench_short", "profiler", "events"):
        if others.get(f"{name}_ms"):
            entry[f"ridgeline_over_{name}"] = ours / others[f"{name}_ms"]
    return entry


def summary(entries: dict[str, dict[str, Any]]) -> str:
    """Return how many of the long kernels agree with the profiler, and which do not: then what events say of them."""
    long = {n: e for n, e in entries.items() if e.get("ridgeline_over_profiler") and e["profiler_ms"] > LONG_MS}
    apart = [name for name, entry in long.items() if abs(entry["ridgeline_over_profiler"] - 1) > WANTED]
    unmeasured = [name for name, entry in entries.items() if not entry.get("ridgeline_over_profiler")]
    named = "; ".join(
        [*(_apart(name, long[name]) for name in apart), *(f"{name} has no figure" for name in unmeasured)]
    )
    return f"{len(long) - len(apart)} of {len(long)} kernels over {1e3 * LONG_MS:.0f} us within {WANTED:.0%}. {named}"


def _apart(name: str, entry: dict[str, Any]) -> str:
    over_events = entry.get("ridgeline_over_events")
    told = "" if over_events is None else f" ({over_events:.3f} over events)"
    return f"{name} {entry['ridgeline_over_profiler']:.3f}{told}"


async def run(chosen: dict[str, Path], device: Device) -> None:
    """Measure each kernel and write its entry as it ends."""
    engine = LocalEngine()
    try:
        kernels = await asyncio.gather(*(prepared(engine, name, path, device) for name, path in chosen.items()))
    finally:
        await engine.aclose()
    for name, kernel in zip(chosen, kernels, strict=True):
        engine = LocalEngine()
        try:
            entry = await compare(engine, kernel, device)
        finally:
            await engine.aclose()
        merge_result("agreement-cuda", {name: entry}, device=device)
        print(json.dumps({name: entry}), flush=True)


def main() -> None:
    """Measure and print how well the timers agree."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("kernels", nargs="*", help="names as in the results; without any, all")
    parser.add_argument("--device", default="cuda")
    arguments = parser.parse_args()
    known = kernels()
    chosen = {name: known[name] for name in arguments.kernels} or known
    asyncio.run(run(chosen, detect_device(arguments.device)))
    print(summary(json.loads((RESULTS / "agreement-cuda.json").read_text())["figures"]))


if __name__ == "__main__":
    main()
