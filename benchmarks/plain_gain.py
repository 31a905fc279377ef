"""Hold the judge's gain of a kernel against that of two plain loops, as a user would write them, in one fresh process.

    PYTHONPATH=src python benchmarks/plain_gain.py [MB …] [--device cpu|cuda] [--repeats 5]

The kernel is `aa/affine` (see form.py), built as the engine builds it. The loops take turns of blocks, eager PyTorch and
the kernel through ctypes, over as many sets of inputs as the judge has, or as fit beside it. Eager's result of a set is
kept until the set comes again, and the kernel has an output for each set. Their process has no variable of Ridgeline's in
its environment, and takes turns with the judge; a ratio is the judge's gain / the loops' within one turn.
`results/plain-gain-KIND.json` holds the medians by size.
"""

from __future__ import annotations

import argparse
import asyncio
from statistics import median
from typing import Any

from form import form_kernel, form_problem
from kernel import built, described, verified
from plain_loop import PlainLoop, sets_beside
from result import write_sizes

from ridgeline.tools.engine import BenchmarkTask
from ridgeline.tools.engines.local import LocalEngine
from ridgeline.tools.judge.set_count import count_sets
from ridgeline.tools.machine.devices import detect_device
from ridgeline.tools.records.problem import DescribedTarget, Device
from ridgeline.tools.records.results import Timing
from ridgeline.tools.records.vocabulary import DeviceKind, Role, Status

SIZES_MB = {DeviceKind.CPU: (0.1, 1.0, 16.0, 128.0), DeviceKind.CUDA: (16.0, 400.0, 1500.0)}
"""Megabytes that a call reads and writes."""
LOOP_S = 2.0
LOOPS = """
import ctypes, sys, time
from statistics import median
import torch
names = {"__name__": "reference"}
exec(sys.argv[1], names)
n_sets, device = int(sys.argv[3]), sys.argv[4]
library = ctypes.CDLL(sys.argv[2])
model = names["Model"](*names["get_init_inputs"]()).to(device)
sets = [[each.to(device) for each in names["get_inputs"]()] for _ in range(n_sets)]
results = [None] * n_sets
outputs = [torch.zeros_like(inputs[0]) for inputs in sets]
weights = [each.detach() for each in model.parameters()]
end = [None] if device == "cpu" else [None, ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)]
given = [
    [*(ctypes.c_void_p(each.data_ptr()) for each in (*inputs, *weights, output)), *end]
    for inputs, output in zip(sets, outputs)
]
wait = torch.cuda.synchronize if device == "cuda" else (lambda: None)
def eager(first, calls):
    for i in range(first, first + calls):
        results[i % n_sets] = model(*sets[i % n_sets])
def kernel(first, calls):
    for i in range(first, first + calls):
        library.run(*given[i % n_sets])
def block(side, first, calls):
    began = time.perf_counter()
    side(first, calls)
    wait()
    return (time.perf_counter() - began) / calls
with torch.no_grad():
    for side in (eager, kernel):
        block(side, 0, n_sets)
    assert all(torch.allclose(one, other, rtol=1e-5, atol=1e-5) for one, other in zip(results, outputs))
    for line in sys.stdin:
        calls = max(3, min(n_sets, int(0.012 / block(eager, 0, 5))))
        ended, times, first = time.perf_counter() + float(line), {eager: [], kernel: []}, 0
        while time.perf_counter() < ended:
            for side in (eager, kernel, kernel, eager):
                times[side].append(block(side, first, calls))
                first += calls
        print(*(1e3 * median(each) for each in times.values()), flush=True)
"""


def sets_of(problem: DescribedTarget) -> int:
    """Return how many sets of inputs and outputs a loop rotates over, where tensors are whole pages, as those of a form."""
    device = problem.device
    set_bytes = sum(arg.spanned_bytes for arg in problem.description.signature.with_role(Role.INPUT, Role.OUTPUT))
    n_sets = count_sets(set_bytes, kind=device.kind, cache_bytes=device.cache_bytes, memory_bytes=device.memory_bytes)
    return sets_beside(n_sets, set_bytes, device)


async def compare(engine: LocalEngine, megabytes: float, device: Device, repeats: int) -> dict[str, Any]:
    """Return one size's gains in the judge and in the loops, and their ratio, medians over turns."""
    problem = await described(engine, form_problem(f"affine:{megabytes}", device))
    n_sets = sets_of(problem)
    kernel = form_kernel(problem)
    build = await built(engine, problem, kernel)
    verdict = await verified(engine, problem, kernel, build)
    task = BenchmarkTask(problem=problem, candidate=kernel, build=build, verdict=verdict)
    timings: list[Timing] = []
    loops = PlainLoop(LOOPS, problem.reference_source, build.library_path, n_sets, device.kind.value)
    try:
        plain = []
        for _ in range(repeats):
            plain.append(await asyncio.to_thread(loops.loop, LOOP_S))
            timings.append(await engine.submit(task))
    finally:
        loops.close()
    turns = [(timing, each) for timing, each in zip(timings, plain, strict=True) if timing.status is Status.OK]
    gains = [(timing.speedup or 0.0, eager_ms / kernel_ms) for timing, (eager_ms, kernel_ms) in turns]
    return {
        "megabytes": megabytes,
        "n_sets": n_sets,
        "judge_ms": median(timing.median_ms or 0.0 for timing, _ in turns),
        "loop_ms": median(kernel_ms for _, (_, kernel_ms) in turns),
        "judge_gain": median(judged for judged, _ in gains),
        "loop_gain": median(looped for _, looped in gains),
        "ratio": median(judged / looped for judged, looped in gains),
        "ratios": [judged / looped for judged, looped in gains],
        "labels": sorted({str(label) for timing, _ in turns for label in timing.labels}),
        "reasons": sorted({timing.reason for timing in timings if timing.reason}),
    }


async def run(device: Device, sizes: list[float], repeats: int) -> None:
    """Measure every size."""
    engine = LocalEngine()
    found = []
    try:
        for megabytes in sizes:
            found.append(await compare(engine, megabytes, device, repeats))
            print(found[-1], flush=True)
            write_sizes("plain-gain", found, device)
    finally:
        await engine.aclose()


def main() -> None:
    """Read the arguments."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("sizes", nargs="*", type=float, metavar="MB", help="megabytes that a call reads and writes")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    device = detect_device(arguments.device)
    asyncio.run(run(device, arguments.sizes or list(SIZES_MB[device.kind]), arguments.repeats))


if __name__ == "__main__":
    main()
