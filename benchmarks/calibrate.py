"""Measure what the judge's thresholds rest on, on this machine, and write the table of all of them.

    PYTHONPATH=src python benchmarks/calibrate.py [MEASUREMENT …] [--device cpu|cuda] [--repeats 5]
    PYTHONPATH=src python benchmarks/calibrate.py --table     (nothing is measured: docs/calibration.md from the results)

Measurements: see MEASUREMENTS below; without names, all of them (4 to 10 minutes). Each entry is written to
`results/calibration-KIND.json` as it ends, with its own date, command and commit; the table quotes them by name. A CPU
has to be idle when it begins (`--busy`: not).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from form import form_kernel, form_problem
from kernel import built, described
from result import merge_result, provenance
from thresholds import PAGE, page

from ridgeline.tools.engine import BenchmarkTask, CompareTask, VerifyTask
from ridgeline.tools.engines.local import LocalEngine
from ridgeline.tools.judge.messages import Idle
from ridgeline.tools.judge.process import JudgeProcess
from ridgeline.tools.machine.devices import detect_device
from ridgeline.tools.machine.locks import DeviceLock
from ridgeline.tools.machine.places import default_cache_dir
from ridgeline.tools.machine.process_use import cpu_seconds
from ridgeline.tools.measure.ceilings import measure_ceilings
from ridgeline.tools.measure.request_cost import nothing_library, usual_cost
from ridgeline.tools.records.problem import DescribedTarget, Device
from ridgeline.tools.records.results import Build, Comparison, FailedComparison, Timing, Verdict
from ridgeline.tools.records.search import Candidate
from ridgeline.tools.records.vocabulary import DeviceKind, Purpose, Status
from ridgeline.tools.runner.plan import runner_plan
from ridgeline.tools.runner.process import RunnerProcess
from ridgeline.tools.sandbox.sandbox import Sandbox, probe_sandbox

CASES = {DeviceKind.CPU: ("affine:16", "padded:16"), DeviceKind.CUDA: ("affine:800", "padded:800")}
"""Some 0.8 ms on 2 cores; 0.2 ms and more on an H200."""
CLASS_ERRORS, ROW_ERRORS = (Path(__file__).parent / name for name in ("class_errors.py", "row_errors.py"))
IDLE_S = 0.5
MOST_LOAD = 0.7
WAITS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """The engine, the device and the repeats that all measurements share."""

    engine: LocalEngine
    device: Device
    repeats: int

    @property
    def cases(self) -> tuple[str, ...]:
        """Return the kernels of `aa/` that are measured here, the lightest first."""
        return CASES[self.device.kind]

    async def kernel(self, case: str) -> tuple[DescribedTarget, Candidate, Build]:
        """Return one of `aa/`'s problems with its kernel, built."""
        problem = await described(self.engine, form_problem(case, self.device))
        candidate = form_kernel(problem)
        return problem, candidate, await built(self.engine, problem, candidate)

    async def timings(self, case: str, purpose: Purpose) -> list[Timing]:
        """Return `repeats` timings of a kernel, each in a new process; those that were refused are left out."""
        problem, candidate, build = await self.kernel(case)
        verdict = await self.engine.submit(VerifyTask(problem=problem, candidate=candidate, build=build))
        task = BenchmarkTask(problem=problem, candidate=candidate, build=build, verdict=verdict, purpose=purpose)
        found = [await self.engine.submit(task) for _ in range(self.repeats)]
        return [timing for timing in found if timing.median_ms is not None and timing.witness_ms is not None]


def _compared(found: Comparison | FailedComparison, kernel: Candidate) -> Comparison:
    if isinstance(found, FailedComparison):
        raise SystemExit(f"{kernel.id} failed beside itself: {found.reason}")
    return found


async def measure_aa(bench: Bench) -> dict[str, Any]:
    """A kernel against itself: how far a ratio is from 1."""
    problem, candidate, build = await bench.kernel(bench.cases[0])
    task = CompareTask(problem=problem, first=candidate, first_build=build, second=candidate, second_build=build)
    found = [await bench.engine.submit(replace(task, purpose=Purpose.EVALUATE)) for _ in range(2 * bench.repeats)]
    compared = [_compared(each, candidate) for each in found]
    return {
        "ratios": [c.ratio for c in compared],
        "largest_distance_from_1": max(abs(c.ratio - 1) for c in compared),
        "intervals_that_hold_1": sum(c.ratio_ci95[0] <= 1 <= c.ratio_ci95[1] for c in compared) / len(compared),
    }


async def measure_witness(bench: Bench) -> dict[str, Any]:
    """An honest kernel's two clocks: how far they are apart, as a part of the time."""
    timings = [t for case in bench.cases for t in await bench.timings(case, Purpose.SEARCH)]
    apart = [abs((t.witness_ms or 0.0) / (t.median_ms or 1.0) - 1) for t in timings]
    return {"timings": len(apart), "apart_median": median(apart), "apart_largest": max(apart)}


async def measure_retiming(bench: Bench) -> dict[str, Any]:
    """One kernel timed in new processes, as a certificate does: its slowest median over its fastest."""
    times = [t.median_ms or 0.0 for t in await bench.timings(bench.cases[0], Purpose.CERTIFY)]
    ratios = [t.speedup or 0.0 for t in await bench.timings(bench.cases[0], Purpose.SEARCH)]
    return {
        "certify_ms": times,
        "certify_spread": max(times) / min(times) - 1,
        "search_speedup_spread": max(ratios) / min(ratios) - 1,
    }


async def measure_request(bench: Bench) -> dict[str, Any]:
    """Return the cost of a request beside the work that it asks for: microseconds, over new processes."""
    async with DeviceLock(bench.device.uuid).exclusive():
        with _nothing(bench.device) as (sandbox, plan, judge):
            costs = [1e6 * usual_cost(sandbox, plan, judge).request_s for _ in range(bench.repeats)]
    return {"us": costs, "us_median": median(costs), "us_largest": max(costs)}


async def measure_idle(bench: Bench) -> dict[str, Any]:
    """Return the share of a core that an honest runner uses while it has nothing to do."""
    shares = []
    async with DeviceLock(bench.device.uuid).exclusive():
        with _nothing(bench.device) as (sandbox, plan, judge):
            for _ in range(bench.repeats):
                with RunnerProcess(sandbox, plan, judge.problem) as runner:
                    runner.loop((0,))
                    runner.cont()
                    before = cpu_seconds(runner.pid)
                    await asyncio.sleep(IDLE_S)
                    shares.append((cpu_seconds(runner.pid) - before) / IDLE_S)
    return {"share_largest": max(shares), "shares": shares}


async def measure_gpu_wait(bench: Bench) -> dict[str, Any]:
    """Return the time that an idle GPU takes for next to nothing: milliseconds by the judge."""
    async with DeviceLock(bench.device.uuid).exclusive():
        with _nothing(bench.device) as (_, _, judge):
            waits = sorted(1e3 * judge.ask(Idle()).seconds for _ in range(WAITS))
    return {"ms_median": median(waits), "ms_largest": waits[-1]}


async def measure_ceiling(bench: Bench) -> dict[str, Any]:
    """The memory's ceiling, measured anew: its slowest figure over its fastest."""
    async with DeviceLock(bench.device.uuid).exclusive():
        rates = [measure_ceilings(bench.device).bandwidth[-1].fastest for _ in range(bench.repeats)]
    return {"gbps": rates, "slowest_over_fastest": min(rates) / max(rates)}


async def measure_classes(bench: Bench) -> dict[str, Any]:
    """Errors of each class's arithmetic against float64, by PyTorch alone: see class_errors.py."""
    async with DeviceLock(bench.device.uuid).exclusive():
        return await _printed(CLASS_ERRORS, bench.device.kind.value)


async def measure_rows(_bench: Bench) -> dict[str, Any]:
    """Errors of single rows beside large values, by PyTorch alone: see row_errors.py."""
    return await _printed(ROW_ERRORS)


async def _printed(script: Path, *arguments: str) -> dict[str, Any]:
    """Return the JSON that a script prints in a process of its own."""
    command = [sys.executable, str(script), *arguments]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


async def measure_trials(bench: Bench) -> dict[str, Any]:
    """Honest fp32 kernels' errors over their gates, trial by trial: the largest part of a gate that one uses."""
    used: dict[str, float] = {}
    for case in bench.cases:
        problem, candidate, build = await bench.kernel(case)
        task = VerifyTask(problem=problem, candidate=candidate, build=build, purpose=Purpose.CERTIFY, extra_trials=20)
        verdict: Verdict = await bench.engine.submit(task)
        used[case] = max(t.rel_error / t.gate for t in verdict.trials if t.gate)
    return {"largest_part_of_a_gate": max(used.values()), "by_kernel": used}


Measure = Callable[[Bench], Awaitable[dict[str, Any]]]
MEASUREMENTS: dict[str, Measure] = {
    "aa": measure_aa,
    "witness": measure_witness,
    "retiming": measure_retiming,
    "request": measure_request,
    "idle": measure_idle,
    "gpu_wait": measure_gpu_wait,
    "ceiling": measure_ceiling,
    "classes": measure_classes,
    "rows": measure_rows,
    "trials": measure_trials,
}
GPU_ONLY, CPU_ONLY = {"gpu_wait"}, {"rows"}


@contextmanager
def _nothing(device: Device) -> Iterator[tuple[Sandbox, Any, JudgeProcess]]:
    """Give the sandbox, the plan of a library that does nothing, and a judge with the affine problem."""
    cache = default_cache_dir()
    build = Build(key="nothing", status=Status.OK, library_path=str(nothing_library(cache, device)))
    problem = form_problem(CASES[device.kind][0], device)
    judge = JudgeProcess(problem, os.urandom(16), cache)
    try:
        plan = runner_plan(problem.described(judge.problem.description), build, cache)
        yield Sandbox(probe_sandbox().tier), plan, judge
    finally:
        judge.close()


async def run(names: list[str], device: Device, repeats: int) -> None:
    """Measure and write each entry, each with an engine of its own: two judges' tensors need not fit the device at once."""
    for name in names:
        started = time.perf_counter()
        engine = LocalEngine()
        try:
            figures = await MEASUREMENTS[name](Bench(engine=engine, device=device, repeats=repeats))
        finally:
            await engine.aclose()
        spent = {"seconds": time.perf_counter() - started, "load_average": os.getloadavg()[1]}
        entry = {"measured": provenance(), **spent, **figures}
        merge_result(f"calibration-{device.kind.value}", {name: entry}, device=device)
        print(f"{name}: {entry}", flush=True)


def main() -> None:
    """Measure, then write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", metavar="MEASUREMENT", help=", ".join(MEASUREMENTS))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--table", action="store_true", help="measure nothing, write the table")
    parser.add_argument("--busy", action="store_true", help="measure although other programs use the processor")
    arguments = parser.parse_args()
    if not arguments.table:
        device = detect_device(arguments.device)
        load = os.getloadavg()[0]
        if device.kind is DeviceKind.CPU and load > MOST_LOAD and not arguments.busy:
            raise SystemExit(f"load average {load:.1f}: end what else runs here and begin again, or --busy")
        usual = [n for n in MEASUREMENTS if n not in (CPU_ONLY if device.kind is DeviceKind.CUDA else GPU_ONLY)]
        asyncio.run(run(arguments.names or usual, device, arguments.repeats))
    PAGE.write_text(page())
    print(f"the table is in {PAGE}")


if __name__ == "__main__":
    main()
