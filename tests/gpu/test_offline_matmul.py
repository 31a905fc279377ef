"""Composed contractions on a GPU, each feature by itself."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from ridgeline.graph.offline.composer import compatible
from ridgeline.graph.offline.matmul.cuda.composer import MatmulCuda
from ridgeline.graph.offline.matmul.cuda.structures import Structure
from ridgeline.graph.search.context import subject_of

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]

REFERENCE = """import torch
import torch.nn.functional as F
from torch import nn
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        {setup}
    def forward(self, {arguments}):
        return {result}
def get_inputs():
    return [{inputs}]
def get_init_inputs():
    return []
"""


@dataclass(frozen=True)
class Case:
    result: str
    inputs: tuple[str, ...]
    setup: str = "pass"
    dtype: str = "float32"
    tolerance: str = "tf32"

    @property
    def reference(self) -> str:
        dtype = "" if self.dtype == "float32" else f".to(torch.{self.dtype})"
        made = [f"torch.randn({i[:-1]}){dtype}.transpose(-1, -2)" if i.endswith("T") else f"torch.randn({i}){dtype}"
                for i in self.inputs]  # fmt: skip
        names = "abcd"[: len(self.inputs)]
        return REFERENCE.format(
            setup=self.setup, arguments=", ".join(names), result=self.result, inputs=", ".join(made)
        )  # fmt: skip


PRODUCT = "a @ b"
LINEAR = "F.gelu(self.linear(a)) * 0.5 + b"
CASES = {
    # One operand order each: nt is k-major on both sides, the simplest for descriptors.
    "fp16_nt": Case(PRODUCT, ("512, 512", "640, 512T"), dtype="float16", tolerance="fp16"),
    "fp16_nn": Case(PRODUCT, ("512, 512", "512, 640"), dtype="float16", tolerance="fp16"),
    "fp16_tt": Case(PRODUCT, ("512, 512T", "640, 512T"), dtype="float16", tolerance="fp16"),
    "fp16_tn": Case(PRODUCT, ("512, 512T", "512, 640"), dtype="float16", tolerance="fp16"),
    "bf16_odd": Case(PRODUCT, ("515, 333", "333, 257"), dtype="bfloat16", tolerance="bf16"),
    "bf16_edge": Case(PRODUCT, ("1000, 712", "712, 1304"), dtype="bfloat16", tolerance="bf16"),
    "fp16_batched": Case(PRODUCT, ("3, 2, 200, 72", "3, 2, 72, 136"), dtype="float16", tolerance="fp16"),
    "tf32_nt": Case(PRODUCT, ("512, 512", "640, 512T")),
    "tf32_nn": Case(PRODUCT, ("512, 512", "512, 640")),
    "tf32_tt": Case(PRODUCT, ("512, 512T", "640, 512T")),
    "tf32_tn": Case(PRODUCT, ("512, 512T", "512, 640")),
    "tf32_odd": Case(PRODUCT, ("515, 333", "333, 257")),
    "tf32_batched": Case(PRODUCT, ("5, 200, 72", "72, 136")),
    "tf32_linear": Case(LINEAR, ("1000, 500", "1000, 300"), "self.linear = nn.Linear(500, 300)"),
    "fp32_nn": Case(PRODUCT, ("512, 512", "512, 640"), tolerance="fp32"),
    "fp32_tt": Case(PRODUCT, ("512, 512T", "640, 512T"), tolerance="fp32"),
    "fp32_odd": Case(PRODUCT, ("515, 333", "333, 257"), tolerance="fp32"),
    "fp32_linear": Case(LINEAR, ("1000, 500", "1000, 300"), "self.linear = nn.Linear(500, 300)", tolerance="fp32"),
}
ONE_OF_EACH_DTYPE = ("fp16_tn", "bf16_odd", "tf32_linear", "fp32_linear")
HEADLINE = {
    "fp32": Case(PRODUCT, ("4096, 4096", "4096, 4096"), tolerance="fp32"),
    "tf32": Case(PRODUCT, ("4096, 4096", "4096, 4096")),
    "fp16": Case(PRODUCT, ("4096, 4096", "4096, 4096"), dtype="float16", tolerance="fp16"),
}
COMPOSITIONS = (
    (),
    (Structure.VECTOR,),
    (Structure.ASYNC,),
    (Structure.TENSOR,),
    (Structure.TENSOR, Structure.VECTOR),
    (Structure.TENSOR, Structure.ASYNC),
    (Structure.TENSOR, Structure.ASYNC, Structure.WIDE),
    (Structure.TENSOR, Structure.ASYNC, Structure.SPLIT),
    (Structure.TENSOR, Structure.ASYNC, Structure.GROUPED, Structure.PERSISTENT, Structure.WIDE),
    (Structure.WARPGROUP,),
    (Structure.WARPGROUP, Structure.WIDE),
    (Structure.WARPGROUP, Structure.GROUPED),
    (Structure.WARPGROUP, Structure.PERSISTENT),
    (Structure.WARPGROUP, Structure.CLUSTER),
    (Structure.WARPGROUP, Structure.GROUPED, Structure.PERSISTENT, Structure.WIDE),
    (Structure.WARPGROUP, Structure.GROUPED, Structure.PERSISTENT, Structure.WIDE, Structure.CLUSTER),
)


TIMED = {
    "fp32": ((Structure.ASYNC,), (Structure.ASYNC, Structure.GROUPED, Structure.PERSISTENT)),
    "tensor cores": (
        (Structure.TENSOR, Structure.ASYNC, Structure.GROUPED),
        (Structure.WARPGROUP,),
        (Structure.WARPGROUP, Structure.GROUPED),
        (Structure.WARPGROUP, Structure.GROUPED, Structure.PERSISTENT, Structure.WIDE),
        (Structure.WARPGROUP, Structure.GROUPED, Structure.PERSISTENT, Structure.WIDE, Structure.CLUSTER),
    ),
}


def composer_of(problem) -> MatmulCuda:
    """Return the problem's composer, which has to offer every unit that this tolerance and architecture allow."""
    composer = MatmulCuda(subject_of(problem))
    units = set() if problem.tolerance == "fp32" else {Structure.TENSOR}
    if units and problem.device.arch == "sm_90a":
        units.add(Structure.WARPGROUP)
    assert units == {Structure.TENSOR, Structure.WARPGROUP} & set(composer.applicable())
    return composer


def sources_of(composer: MatmulCuda, variations: tuple[int, ...]) -> dict[str, str]:
    """Return the source of each composition that applies, in each variation."""
    usable = {*composer.applicable(), Structure.GROUPED, Structure.PERSISTENT, Structure.WIDE}
    usable |= {Structure.CLUSTER} if Structure.WARPGROUP in usable else set()
    chosen = [c for c in COMPOSITIONS if set(c) <= usable and compatible(composer, c)]
    return {f"{'+'.join(c) or 'none'}/{v}": composer.write_source(frozenset(c), v) for c in chosen for v in variations}


@pytest.mark.parametrize("name", ONE_OF_EACH_DTYPE)
def test_each_structure_is_correct_in_each_dtype(bench, name: str) -> None:
    problem = bench.problem(CASES[name].reference, CASES[name].tolerance, name)
    bench.assert_correct(problem, sources_of(composer_of(problem), (0,)))


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_every_composition_is_correct(bench, name: str) -> None:
    problem = bench.problem(CASES[name].reference, CASES[name].tolerance, name)
    bench.assert_correct(problem, sources_of(composer_of(problem), (0, 1, 2)))


@pytest.mark.slow
@pytest.mark.parametrize("name", HEADLINE)
def test_headline_sizes_are_timed(bench, name: str) -> None:
    problem = bench.problem(HEADLINE[name].reference, HEADLINE[name].tolerance, f"matmul_{name}")
    composer = composer_of(problem)
    compositions = TIMED["fp32" if name == "fp32" else "tensor cores"]
    bench.assert_timed(
        problem, {f"{'+'.join(c)}/{v}": composer.write_source(frozenset(c), v) for c in compositions for v in (0, 1)}
    )
