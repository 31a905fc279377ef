"""A/A: a kernel against itself, through the engine, sandbox and judge that every candidate goes through.

    PYTHONPATH=src python benchmarks/aa.py [--problem quickstart] [--seed 0] [--repeats 20]

Each repeat is one alternating run of two fresh processes. What is true is a ratio of 1, so the figures say how far a
measurement here can be trusted: how many ratios lie within 1 % and 5 % of 1, and how many of the 95 % intervals hold 1.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from statistics import median
from typing import Any

from result import write_result

from ridgeline.problems.spec import load_problem, shipped_problems
from ridgeline.tools.engine import CompareTask, CompileTask, DescribeTask, ProblemOnDevice
from ridgeline.tools.hardware import detect_device
from ridgeline.tools.local_engine import LocalEngine, on_device
from ridgeline.tools.records import Build, Candidate, Comparison, Origin, Status
from ridgeline.tools.statistics import percentile


async def compare_with_itself(
    engine: LocalEngine, problem: ProblemOnDevice, candidate: Candidate, build: Build, repeats: int
) -> list[Comparison]:
    """Return the comparisons of a candidate with itself."""
    task = CompareTask(problem=problem, first=candidate, first_build=build, second=candidate, second_build=build)
    comparisons = []
    for number in range(repeats):
        comparisons.append(await engine.submit(task))
        low, high = comparisons[-1].ratio_ci95
        print(f"{number + 1:3}/{repeats}  ratio {comparisons[-1].ratio:.4f}  95 % interval {low:.4f} to {high:.4f}")
    return comparisons


def figures(comparisons: list[Comparison]) -> dict[str, Any]:
    """Return what the ratios say of the measurement."""
    ratios = [c.ratio for c in comparisons]
    count = len(ratios)
    return {
        "repeats": count,
        "ratio_median": median(ratios),
        "ratio_p5": percentile(ratios, 5),
        "ratio_p95": percentile(ratios, 95),
        "within_1_percent": sum(abs(r - 1) <= 0.01 for r in ratios) / count,
        "within_5_percent": sum(abs(r - 1) <= 0.05 for r in ratios) / count,
        "intervals_that_hold_1": sum(c.ratio_ci95[0] <= 1 <= c.ratio_ci95[1] for c in comparisons) / count,
        "interval_width_median": median(c.ratio_ci95[1] - c.ratio_ci95[0] for c in comparisons),
        "median_ms": median(c.first_ms for c in comparisons),
        "ratios": ratios,
    }


async def run(arguments: argparse.Namespace) -> None:
    """Build the seed kernel, compare it with itself, write the result."""
    spec = load_problem(shipped_problems()[arguments.problem])
    device = detect_device(arguments.device)
    stem, source = spec.seed_sources(device.kind.value)[arguments.seed]
    problem = on_device(spec, device)
    candidate = Candidate(
        id=f"seed-{stem}",
        origin=Origin.SEED,
        round=0,
        idea_id=None,
        parent_id=None,
        source=source,
        language=problem.language,
    )
    engine = LocalEngine()
    started = time.perf_counter()
    try:
        description = await engine.submit(DescribeTask(problem=problem))
        problem = ProblemOnDevice.from_json(problem.to_json() | {"description": description.to_json()})
        build = await engine.submit(CompileTask(problem=problem, candidate=candidate))
        if build.status is not Status.OK:
            raise SystemExit(f"{candidate.id} does not build: {build.reason}")
        comparisons = await compare_with_itself(engine, problem, candidate, build, arguments.repeats)
    finally:
        await engine.aclose()
    facts = {"problem": spec.name, "kernel": candidate.id, "seconds": time.perf_counter() - started}
    print(write_result("aa", facts | figures(comparisons), device=device))


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--problem", default="quickstart", help="a shipped problem of interface c")
    parser.add_argument("--seed", type=int, default=0, help="which of its seed kernels")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--repeats", type=int, default=20)
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
