"""Composed convolutions on a GPU, each structure by itself."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from ridgeline.graph.offline.composer import Composer, compatible
from ridgeline.graph.offline.convolution.cuda.composer import ConvolutionCuda
from ridgeline.graph.offline.convolution.cuda.structures import Structure
from ridgeline.graph.search.context import subject_of

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
ONE_OF_EACH_DTYPE = ("alexnet_pool", "alexnet_pool_fp32", "bf16", "fp16")
HEADLINE = {
    "conv2d": Case(ALEXNET, "100, 3, 224, 224"),
    "conv2d_fp32": Case(ALEXNET, "100, 3, 224, 224", tolerance="fp32"),
    "conv2d_relu_maxpool": Case(ALEXNET, "100, 3, 224, 224", POOLED),
    "conv2d_relu_maxpool_fp32": Case(ALEXNET, "100, 3, 224, 224", POOLED, tolerance="fp32"),
}
COPIES = (Structure.RESIDENT, Structure.ASYNC, Structure.VECTOR)


def compositions_of(composer: Composer) -> list[frozenset[str]]:
    """Return the structures one by one with each way of multiplying, and all of them together."""
    usable = frozenset(composer.applicable())
    units = [frozenset[str](), *(frozenset({u}) for u in (Structure.MMA, Structure.WGMMA) if u in usable)]
    more = [s for s in usable if s not in (Structure.MMA, Structure.WGMMA)]
    found = [unit | {s} for unit in units for s in sorted(more)]
    found += [unit | usable.intersection(COPIES) for unit in units]
    found += [unit | frozenset(more) for unit in units]
    return [c for c in dict.fromkeys([*units, *found]) if compatible(composer, c)]


def composer_of(problem) -> Composer:
    """Return the problem's composer, which has to offer every unit that this tolerance and architecture allow."""
    composer = ConvolutionCuda(subject_of(problem))
    units = set() if problem.tolerance == "fp32" else {Structure.MMA}
    if units and problem.device.arch == "sm_90a":
        units.add(Structure.WGMMA)
    assert units == {Structure.MMA, Structure.WGMMA} & set(composer.applicable())
    return composer


def sources_of(composer: Composer, variations: tuple[int, ...]) -> dict[str, str]:
    return {
        f"{'+'.join(sorted(c)) or 'none'}/{v}": composer.write_source(c, v)
        for c in compositions_of(composer)
        for v in variations
    }


@pytest.mark.parametrize("name", ONE_OF_EACH_DTYPE)
def test_each_structure_is_correct_in_each_dtype(bench, name: str) -> None:
    problem = bench.problem(CASES[name].reference, CASES[name].tolerance, name)
    bench.assert_correct(problem, sources_of(composer_of(problem), (0,)))


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_every_composition_is_correct(bench, name: str) -> None:
    problem = bench.problem(CASES[name].reference, CASES[name].tolerance, name)
    bench.assert_correct(problem, sources_of(composer_of(problem), (0, 1)))


@pytest.mark.slow
@pytest.mark.parametrize("name", HEADLINE)
def test_headline_sizes_are_timed(bench, name: str) -> None:
    problem = bench.problem(HEADLINE[name].reference, HEADLINE[name].tolerance, name)
    bench.assert_timed(problem, sources_of(composer_of(problem), (0,)))
