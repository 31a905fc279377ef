"""The reference's own operations as a candidate: what is true is a speedup of 1.

    PYTHONPATH=src python benchmarks/own_operations.py [--device cpu|cuda] [--interface module|torch] [--repeats 5]

As a `module` the candidate is the reference's file, so both sides run the same Python and the same operations of PyTorch. As
`torch` it calls the same operations from C++: what it gains is what a call of each costs in Python. It is built, verified and
timed as a search does. `results/own-operations-KIND.json` holds every timing by size, those of `torch`
`own-operations-torch-KIND.json`.
"""

from __future__ import annotations

import argparse
import asyncio
from statistics import median
from typing import Any

from kernel import built, described, kernel_of, verified
from result import write_sizes

from ridgeline.tools.engine import BenchmarkTask
from ridgeline.tools.engines.local import LocalEngine
from ridgeline.tools.machine.devices import detect_device
from ridgeline.tools.records.problem import Device, Target
from ridgeline.tools.records.results import Timing
from ridgeline.tools.records.vocabulary import DeviceKind, Interface, PrecisionClass, Status

SIZES = {
    DeviceKind.CPU: ((8, 64), (128, 512), (1024, 1024), (3072, 2048)),
    DeviceKind.CUDA: ((256, 256), (8192, 4096), (16384, 16384), (32768, 16384)),
}
"""Some 10 us to 15 ms on 2 cores, and 25 us to 5 ms on an H200, where judging twice as much would not find room."""
SOURCE = """
import torch
from torch import nn

class {name}(nn.Module):
    def forward(self, x, y):
        return torch.relu(x * y + x)

def get_inputs():
    return [torch.randn({rows}, {cols}), torch.randn({rows}, {cols})]

def get_init_inputs():
    return []
"""
TORCH = """
#include <torch/extension.h>
torch::Tensor forward(torch::Tensor x, torch::Tensor y) { return torch::relu(x * y + x); }
"""
NAMES = {Interface.MODULE: "own-operations", Interface.TORCH: "own-operations-torch"}


async def measure(
    engine: LocalEngine, device: Device, interface: Interface, *, rows: int, cols: int, repeats: int
) -> dict[str, Any]:
    """Return the timings of one size and their median speedup."""
    target = Target(
        name="own",
        reference_source=SOURCE.format(name="Model", rows=rows, cols=cols),
        interface=interface,
        tolerance=PrecisionClass.FP32,
        device=device,
    )
    problem = await described(engine, target)
    module = SOURCE.format(name="ModelNew", rows=rows, cols=cols)
    kernel = kernel_of(problem, module if interface is Interface.MODULE else TORCH, name="own")
    build = await built(engine, problem, kernel)
    verdict = await verified(engine, problem, kernel, build)
    task = BenchmarkTask(problem=problem, candidate=kernel, build=build, verdict=verdict)
    timings: list[Timing] = [await engine.submit(task) for _ in range(repeats)]
    accepted = [t for t in timings if t.status is Status.OK]
    return {
        "rows": rows,
        "cols": cols,
        "accepted": len(accepted),
        "timed": repeats,
        "ms": median(t.median_ms or 0.0 for t in accepted) if accepted else None,
        "speedup": median(t.speedup or 0.0 for t in accepted) if accepted else None,
        "speedups": [t.speedup for t in accepted],
        "reasons": sorted({t.reason for t in timings if t.reason}),
        "labels": sorted({str(label) for t in accepted for label in t.labels}),
    }


async def run(device: Device, interface: Interface, repeats: int) -> None:
    """Measure every size."""
    engine = LocalEngine()
    found = []
    try:
        for rows, cols in SIZES[device.kind]:
            found.append(await measure(engine, device, interface, rows=rows, cols=cols, repeats=repeats))
            print(found[-1], flush=True)
            write_sizes(NAMES[interface], found, device)
    finally:
        await engine.aclose()


def main() -> None:
    """Read the arguments."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--interface", type=Interface, choices=list(NAMES), default=Interface.MODULE)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    asyncio.run(run(detect_device(arguments.device), arguments.interface, arguments.repeats))


if __name__ == "__main__":
    main()
