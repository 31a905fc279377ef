"""A/A: a kernel against itself, through the engine, sandbox and judge that every candidate goes through.

    PYTHONPATH=src python benchmarks/aa.py [FORM:MB …] [--device cpu|cuda] [--repeats 20]

A form is a kernel of `aa/` for the reference affine.py: `affine` only moves memory, `padded` is bound by arithmetic. MB
are what a call reads and writes: on an H200 affine:800, affine:4000 and padded:800 take about 0.2, 1 and 3 ms. Each
repeat is one alternating run of two fresh processes. What is true is a ratio of 1, so the figures say how far a
measurement here can be trusted: how many ratios lie within 1 % and 5 % of 1, and how many of the 95 % intervals hold
1. Each entry is written as it ends, beside those that the file holds already.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from dataclasses import replace
from statistics import median
from typing import Any

from form import form_kernel, form_problem
from kernel import built, described
from result import merge_result, provenance

from ridgeline.tools.engine import CompareTask
from ridgeline.tools.engines.local import LocalEngine
from ridgeline.tools.machine.devices import detect_device
from ridgeline.tools.measure.statistics import percentile
from ridgeline.tools.records.problem import DescribedTarget, Device
from ridgeline.tools.records.results import Comparison, FailedComparison
from ridgeline.tools.records.vocabulary import DeviceKind, Purpose

DEFAULT = {DeviceKind.CPU: ["affine:16"], DeviceKind.CUDA: ["affine:800", "affine:4000", "padded:800"]}


async def compare_with_itself(engine: LocalEngine, problem: DescribedTarget, repeats: int) -> list[Comparison]:
    """Return the comparisons of the kernel with itself."""
    kernel = form_kernel(problem)
    build = await built(engine, problem, kernel)
    task = CompareTask(problem=problem, first=kernel, first_build=build, second=kernel, second_build=build)
    task = replace(task, purpose=Purpose.SEARCH)
    return [_figures(await engine.submit(task)) for _ in range(repeats)]


def _figures(found: Comparison | FailedComparison) -> Comparison:
    if isinstance(found, FailedComparison):
        raise SystemExit(f"the kernel failed: {found.reason}")
    return found


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


async def run(device: Device, cases: list[str], repeats: int) -> None:
    """Measure each case and write its entry."""
    engine = LocalEngine()
    try:
        for case in cases:
            problem = await described(engine, form_problem(case, device))
            started = time.perf_counter()
            comparisons = await compare_with_itself(engine, problem, repeats)
            entry = {"measured": provenance(), **figures(comparisons, time.perf_counter() - started)}
            path = merge_result(f"aa-{device.kind.value}", {case: entry}, device=device)
            print(
                f"{case}: {entry['median_ms']:.4g} ms, {entry['within_1_percent']:.0%} within 1 %, in {path}",
                flush=True,
            )
    finally:
        await engine.aclose()


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("cases", nargs="*", metavar="FORM:MB", help="affine or padded, and megabytes read and written")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--repeats", type=int, default=20)
    arguments = parser.parse_args()
    device = detect_device(arguments.device)
    asyncio.run(run(device, arguments.cases or DEFAULT[device.kind], arguments.repeats))


if __name__ == "__main__":
    main()
