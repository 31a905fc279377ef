"""Composed convolutions on a GPU, each structure by itself: `pytest -m gpu tests/gpu/test_offline_conv.py`.

With RIDGELINE_GPU_REPORT=FILE every kernel's time is appended to FILE as a line of JSON.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass

import pytest

from ridgeline.graph.offline.composer import Composer, compatible
from ridgeline.graph.offline.convolution.composers import convolution
from ridgeline.graph.offline.convolution.structures import Gpu
from ridgeline.graph.requests import Subject
from ridgeline.tools.records import Baselines, Floor, Status

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]

REFERENCE = """import torch
import torch.nn.functional as F
from torch import nn
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d({layer}, dtype=torch.{dtype})
    def forward(self, x):
        return {result}
def get_inputs():
    return [torch.randn({size}, dtype=torch.{dtype})]
def get_init_inputs():
    return []
"""


@dataclass(frozen=True)
class Case:
    layer: str
    size: str
    result: str = "self.conv(x)"
    dtype: str = "float32"
    tolerance: str = "tf32"

    @property
    def reference(self) -> str:
        return REFERENCE.format(layer=self.layer, size=self.size, result=self.result, dtype=self.dtype)


ALEXNET = "3, 96, 11, stride=4, padding=2"
RELU, POOLED = "F.relu(self.conv(x))", "F.max_pool2d(F.relu(self.conv(x)), 3, 2)"
CASES = {
    "alexnet": Case(ALEXNET, "3, 3, 63, 79"),
    "alexnet_relu": Case(ALEXNET, "3, 3, 63, 80", RELU),
    "alexnet_pool": Case(ALEXNET, "3, 3, 95, 92", POOLED),
    "alexnet_pool_fp32": Case(ALEXNET, "3, 3, 95, 92", POOLED, tolerance="fp32"),
    "square": Case("64, 128, 3, padding=1", "2, 64, 28, 28", RELU),
    "square_fp32": Case("64, 128, 3, padding=1", "2, 64, 28, 28", RELU, tolerance="fp32"),
    "pointwise": Case("33, 70, 1, bias=False", "3, 33, 17, 19"),
    "dilated": Case("5, 21, (3, 2), stride=(2, 3), padding=(3, 1), dilation=2", "2, 5, 39, 171"),
    "wide_pool": Case("4, 40, 5, stride=2, padding=2", "2, 4, 33, 260", "F.max_pool2d(self.conv(x), 3, 2, 1)"),
    "ceiling": Case("2, 9, 3, stride=3", "5, 2, 32, 34", "F.max_pool2d(self.conv(x), 2, ceil_mode=True)"),
    "bf16": Case("8, 24, 3, stride=2, padding=1", "2, 8, 35, 38", RELU, dtype="bfloat16", tolerance="bf16"),
    "fp16": Case("8, 24, 3, padding=1", "2, 8, 35, 38", POOLED, dtype="float16", tolerance="fp16"),
}
HEADLINE = {
    "conv2d": Case(ALEXNET, "100, 3, 224, 224"),
    "conv2d_fp32": Case(ALEXNET, "100, 3, 224, 224", tolerance="fp32"),
    "conv2d_relu_maxpool": Case(ALEXNET, "100, 3, 224, 224", POOLED),
    "conv2d_relu_maxpool_fp32": Case(ALEXNET, "100, 3, 224, 224", POOLED, tolerance="fp32"),
}
COPIES = (Gpu.RESIDENT, Gpu.ASYNC, Gpu.VECTOR)


def compositions_of(composer: Composer) -> list[frozenset[str]]:
    """Return the structures one by one with each way of multiplying, and all of them together."""
    usable = frozenset(composer.applicable())
    units = [frozenset[str](), *(frozenset({u}) for u in (Gpu.MMA, Gpu.WGMMA) if u in usable)]
    more = [s for s in usable if s not in (Gpu.MMA, Gpu.WGMMA)]
    found = [unit | {s} for unit in units for s in sorted(more)]
    found += [unit | usable.intersection(COPIES) for unit in units]
    found += [unit | frozenset(more) for unit in units]
    return [c for c in dict.fromkeys([*units, *found]) if compatible(composer, c)]


def composer_of(problem) -> Composer:
    floor = Floor(floor_ms=0.04, compute_floor_ms=0.04, bound="memory", bandwidth_gbps=4270.0, gflops=50000.0)
    return convolution(
        Subject(
            problem_name=problem.name, reference_source=problem.reference_source, header="", interface="c",
            language="cu", tolerance=problem.tolerance, device=problem.device, description=problem.description,
            baselines=Baselines(device=problem.device, entries=(), floor=floor),
        )
    )  # fmt: skip


def report(name: str, **facts: object) -> None:
    path = os.environ.get("RIDGELINE_GPU_REPORT")
    if path:
        with open(path, "a", encoding="utf-8") as lines:
            lines.write(json.dumps({"test": name, **facts}) + "\n")


def named(composer: Composer, compositions: list[frozenset[str]], variations: tuple[int, ...]) -> dict[str, str]:
    return {f"{'+'.join(sorted(c)) or 'none'}/{v}": composer.emit(c, v) for c in compositions for v in variations}


@pytest.mark.parametrize("name", CASES)
def test_every_composition_is_correct(bench, name: str) -> None:
    problem = bench.problem(CASES[name].reference, CASES[name].tolerance, name)
    composer = composer_of(problem)
    outcomes = bench.run(problem, named(composer, compositions_of(composer), (0, 1)), timed=False)
    wrong = {}
    for kernel, outcome in outcomes.items():
        error = outcome.verdict.rel_error if outcome.verdict else None
        report(name, kernel=kernel, said=outcome.said(), rel_error=error)
        if outcome.last.status is not Status.OK:
            wrong[kernel] = outcome.said()
    assert not wrong, "\n".join(f"{kernel}: {said}" for kernel, said in wrong.items())


@pytest.mark.parametrize("name", HEADLINE)
def test_headline_sizes_are_timed(bench, name: str) -> None:
    problem = bench.problem(HEADLINE[name].reference, HEADLINE[name].tolerance, name)
    composer = composer_of(problem)
    outcomes = bench.run(problem, named(composer, compositions_of(composer), (0,)))
    for kernel, outcome in outcomes.items():
        timing = outcome.timing
        report(f"headline_{name}", kernel=kernel, said=outcome.said(), median_ms=timing.median_ms if timing else None,
               reference_ms=timing.reference_ms if timing else None)  # fmt: skip
    assert all(o.last.status is Status.OK for o in outcomes.values()), [o.said() for o in outcomes.values()]
