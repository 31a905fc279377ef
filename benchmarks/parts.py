"""Parts of the time of one full evaluation: build, load, verify, time, and everything else.

    PYTHONPATH=src python benchmarks/parts.py [FORM:MB …] [--device cpu|cuda] [--repeats 5]

A form is a kernel of `aa/` (see aa.py); affine:4000 takes about 1 ms on an H200. One evaluation is what a search does
for one candidate, through the engine and its processes: three tasks, each measured from its asking to its answer. The
evaluator's judge stays up between candidates, as in a search; runners do not, verdict and timing each start one:

- `build`: the compile task; a library that is in the cache is only found there;
- `load_for_verdict`, `load_for_timing`: the start of either runner (sandbox, program, on a GPU its context, the judge's
  memory, the candidate's library) until it stood ready;
- `verify`: the verdict's trials, from its runner's start to the last comparison, without the load;
- `time`: the timing's warm-up, blocks and checks;
- `other`: the rest of the three tasks: locks, messages between processes, runners' ends.

`cold` evaluates a source that was never built, `cached` the same one again; figures are medians over the repeats. What a
search pays once is apart: `judge_start_s`, and `first`, the first evaluation of all, during which the host program is
built and the device's ceilings and a request's cost are measured where they are not known. Each entry is written as it
ends, beside those that the file holds already.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from form import form_kernel, form_problem
from kernel import built, described, verified
from result import merge_result, provenance

from ridgeline.tools.engine import BenchmarkTask
from ridgeline.tools.engines.local import LocalEngine
from ridgeline.tools.machine.devices import detect_device
from ridgeline.tools.records.problem import DescribedTarget, Device, Target
from ridgeline.tools.records.results import Timing, Verdict
from ridgeline.tools.records.search import Candidate
from ridgeline.tools.records.vocabulary import DeviceKind, Status

DEFAULT = {DeviceKind.CPU: ["affine:16"], DeviceKind.CUDA: ["affine:4000"]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """One evaluation's seconds by part."""

    build_s: float
    load_for_verdict_s: float
    verify_s: float
    load_for_timing_s: float
    time_s: float
    other_s: float
    total_s: float

    def to_json(self) -> dict[str, float]:
        """Return the parts by name."""
        return {name: getattr(self, name) for name in self.__slots__}


def parts_of(build_s: float, verdict: Verdict, timing: Timing, total_s: float) -> Parts:
    """Return the parts of an evaluation that took `total_s`, its compile task included."""
    named_s = build_s + verdict.verify_s + timing.load_s + timing.benchmark_s
    return Parts(
        build_s=build_s,
        load_for_verdict_s=verdict.load_s,
        verify_s=verdict.verify_s - verdict.load_s,
        load_for_timing_s=timing.load_s,
        time_s=timing.benchmark_s,
        other_s=total_s - named_s,
        total_s=total_s,
    )


def median_parts(parts: list[Parts]) -> dict[str, float]:
    """Return the median of each part over several evaluations."""
    columns = [each.to_json() for each in parts]
    return {name: median(column[name] for column in columns) for name in columns[0]}


async def evaluate(
    engine: LocalEngine, problem: DescribedTarget, kernel: Candidate, *, is_cached: bool
) -> tuple[Parts, Timing]:
    """Return the parts of one evaluation and its timing."""
    started = time.perf_counter()
    build = await built(engine, problem, kernel)
    build_s = time.perf_counter() - started
    if build.cached is not is_cached:
        raise SystemExit(f"{kernel.id} is not built as it should be: cached is {build.cached}")
    verdict = await verified(engine, problem, kernel, build)
    timing = await engine.submit(BenchmarkTask(problem=problem, candidate=kernel, build=build, verdict=verdict))
    if timing.status is not Status.OK:
        raise SystemExit(f"the kernel cannot be timed: {timing.reason}")
    return parts_of(build_s, verdict, timing, time.perf_counter() - started), timing


async def measure(engine: LocalEngine, target: Target, repeats: int) -> dict[str, Any]:
    """Return a case's figures."""
    started = time.perf_counter()
    problem = await described(engine, target)
    judge_start_s = time.perf_counter() - started
    first, _ = await evaluate(engine, problem, form_kernel(problem), is_cached=False)
    cold: list[Parts] = []
    cached: list[Parts] = []
    times_ms: list[float] = []
    for number in range(repeats):
        kernel = form_kernel(problem, note=f"source {number}")
        for found, is_cached in ((cold, False), (cached, True)):
            parts, timing = await evaluate(engine, problem, kernel, is_cached=is_cached)
            found.append(parts)
            times_ms.append(timing.median_ms or 0.0)
    return {
        "repeats": repeats,
        "kernel_ms": median(times_ms),
        "judge_start_s": judge_start_s,
        "first": first.to_json(),
        "cold": median_parts(cold),
        "cached": median_parts(cached),
        "all_cold": [parts.to_json() for parts in cold],
        "all_cached": [parts.to_json() for parts in cached],
    }


async def run(device: Device, cases: list[str], repeats: int, cache: Path) -> None:
    """Measure each case and write its entry."""
    for case in cases:
        engine = LocalEngine(cache_dir=cache, log=cache / "engine.log")
        try:
            figures = await measure(engine, form_problem(case, device), repeats)
        finally:
            await engine.aclose()
        path = merge_result(f"parts-{device.kind.value}", {case: {"measured": provenance(), **figures}}, device=device)
        for which in ("cold", "cached"):
            print(f"{case} {which}: {json.dumps({k: round(v, 3) for k, v in figures[which].items()})}", flush=True)
        print(path)


def main() -> None:
    """Read the arguments and run with a build cache of its own, which is empty."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("cases", nargs="*", metavar="FORM:MB", help="affine or padded, and megabytes read and written")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    device = detect_device(arguments.device)
    with tempfile.TemporaryDirectory(prefix="ridgeline-parts-", dir="/var/tmp") as folder:
        Path(folder).chmod(0o755)  # builds run as another user
        asyncio.run(run(device, arguments.cases or DEFAULT[device.kind], arguments.repeats, Path(folder)))


if __name__ == "__main__":
    main()
