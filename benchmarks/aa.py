"""A/A: a kernel against itself, through the engine, sandbox and judge that every candidate goes through.

    PYTHONPATH=src python benchmarks/aa.py [--device cpu|cuda] [--mb 16 …] [--repeats 20]

The kernel reads and writes so many megabytes: on an H200 800, 4000 and 12000 take about 0.2, 1 and 3 ms. Each repeat
is one alternating run of two fresh processes. What is true is a ratio of 1, so the figures say how far a measurement here
can be trusted: how many ratios lie within 1 % and 5 % of 1, and how many of the 95 % intervals hold 1.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from result import write_result

from ridgeline.tools.engine import CompareTask, CompileTask, DescribeTask, ProblemOnDevice
from ridgeline.tools.hardware import detect_device
from ridgeline.tools.local_engine import LocalEngine
from ridgeline.tools.records import Candidate, Comparison, Device, DeviceKind, Origin, Purpose, Status
from ridgeline.tools.statistics import percentile

FOLDER = Path(__file__).parent / "aa"
DEFAULT_MB = {DeviceKind.CPU: [16.0], DeviceKind.CUDA: [800.0, 4000.0, 12000.0]}
ROW_BYTES = 4096 * 4


async def compare_with_itself(engine: LocalEngine, problem: ProblemOnDevice, repeats: int) -> list[Comparison]:
    """Return the comparisons of the kernel with itself."""
    source = (FOLDER / f"affine.{problem.language}").read_text()
    kernel = Candidate(
        id="affine", origin=Origin.SEED, round=0, idea_id=None, parent_id=None, source=source, language=problem.language
    )
    build = await engine.submit(CompileTask(problem=problem, candidate=kernel))
    if build.status is not Status.OK:
        raise SystemExit(f"the kernel does not build: {build.reason}")
    task = CompareTask(problem=problem, first=kernel, first_build=build, second=kernel, second_build=build)
    task = replace(task, purpose=Purpose.SEARCH)
    return [await engine.submit(task) for _ in range(repeats)]


def figures(comparisons: list[Comparison], seconds: float) -> dict[str, Any]:
    """Return what the ratios say of the measurement."""
    ratios = [c.ratio for c in comparisons]
    count = len(ratios)
    return {
        "repeats": count,
        "seconds": seconds,
        "median_ms": median(c.first_ms for c in comparisons),
        "ratio_median": median(ratios),
        "ratio_p5": percentile(ratios, 5),
        "ratio_p95": percentile(ratios, 95),
        "within_1_percent": sum(abs(r - 1) <= 0.01 for r in ratios) / count,
        "within_5_percent": sum(abs(r - 1) <= 0.05 for r in ratios) / count,
        "intervals_that_hold_1": sum(c.ratio_ci95[0] <= 1 <= c.ratio_ci95[1] for c in comparisons) / count,
        "interval_width_median": median(c.ratio_ci95[1] - c.ratio_ci95[0] for c in comparisons),
        "ratios": ratios,
    }


async def run(device: Device, megabytes: list[float], repeats: int) -> dict[str, Any]:
    """Return the figures of each size."""
    reference = (FOLDER / "reference.py").read_text()
    found: dict[str, Any] = {}
    engine = LocalEngine()
    try:
        for size in megabytes:
            rows = max(int(size * 1e6 / 2 / ROW_BYTES), 1)
            sized = reference.replace("ROWS = 2048", f"ROWS = {rows}")
            problem = ProblemOnDevice(name="aa", reference_source=sized, interface="c", tolerance="fp32", device=device)
            problem = replace(problem, description=await engine.submit(DescribeTask(problem=problem)))
            started = time.perf_counter()
            comparisons = await compare_with_itself(engine, problem, repeats)
            entry = figures(comparisons, time.perf_counter() - started)
            found[f"{size:g} MB"] = entry
            print(f"{size:g} MB: {entry['median_ms']:.4g} ms, {entry['within_1_percent']:.0%} within 1 %", flush=True)
    finally:
        await engine.aclose()
    return found


def main() -> None:
    """Read the arguments, run, write the result."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--mb", type=float, nargs="+", help="megabytes read and written by a call")
    parser.add_argument("--repeats", type=int, default=20)
    arguments = parser.parse_args()
    device = detect_device(arguments.device)
    found = asyncio.run(run(device, arguments.mb or DEFAULT_MB[device.kind], arguments.repeats))
    print(write_result(f"aa-{device.kind.value}", found, device=device))


if __name__ == "__main__":
    main()
