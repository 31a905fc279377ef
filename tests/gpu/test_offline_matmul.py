"""Composed contractions on a GPU, each feature by itself: `pytest -m gpu tests/gpu/test_offline_matmul.py`.

With RIDGELINE_GPU_REPORT=FILE every kernel's time is appended to FILE as a line of JSON.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass

import pytest

from ridgeline.graph.offline.composer import compatible, with_added
from ridgeline.graph.offline.matmul.cuda import MatmulCuda
from ridgeline.graph.offline.matmul.cuda_text import (
    ASYNC,
    GROUPED,
    PERSISTENT,
    SPLIT,
    TENSOR,
    VECTOR,
    WARPGROUP,
    WIDE,
)
from ridgeline.graph.requests import Subject
from ridgeline.tools.records import Baselines, Floor, Status

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
HEADLINE = {
    "fp32": Case(PRODUCT, ("4096, 4096", "4096, 4096"), tolerance="fp32"),
    "tf32": Case(PRODUCT, ("4096, 4096", "4096, 4096")),
    "fp16": Case(PRODUCT, ("4096, 4096", "4096, 4096"), dtype="float16", tolerance="fp16"),
}
COMPOSITIONS = (
    (),
    (VECTOR,),
    (ASYNC,),
    (TENSOR,),
    (TENSOR, VECTOR),
    (TENSOR, ASYNC),
    (TENSOR, ASYNC, WIDE),
    (TENSOR, ASYNC, SPLIT),
    (TENSOR, ASYNC, GROUPED, PERSISTENT, WIDE),
    (WARPGROUP,),
    (WARPGROUP, WIDE),
    (WARPGROUP, GROUPED),
    (WARPGROUP, PERSISTENT),
    (WARPGROUP, GROUPED, PERSISTENT, WIDE),
)


def composer_of(problem) -> MatmulCuda:
    floor = Floor(floor_ms=0.1, compute_floor_ms=0.1, bound="compute", bandwidth_gbps=4270.0, gflops=50000.0)
    return MatmulCuda(
        Subject(
            problem_name=problem.name, reference_source=problem.reference_source, header="", interface="c",
            language="cu", tolerance=problem.tolerance, device=problem.device, description=problem.description,
            baselines=Baselines(device=problem.device, entries=(), floor=floor),
        )
    )  # fmt: skip


def sources_of(composer: MatmulCuda, variations=(0, 1, 2)) -> dict[str, str]:
    """Return the source of each composition that applies, in each variation."""
    usable = {*composer.applicable(), GROUPED, PERSISTENT, WIDE}
    chosen = [c for c in COMPOSITIONS if set(c) <= usable and compatible(composer, c)]
    return {f"{'+'.join(c) or 'none'}/{v}": composer.emit(frozenset(c), v) for c in chosen for v in variations}


def report(name: str, **facts: object) -> None:
    path = os.environ.get("RIDGELINE_GPU_REPORT")
    if path:
        with open(path, "a", encoding="utf-8") as lines:
            lines.write(json.dumps({"test": name, **facts}) + "\n")


@pytest.mark.parametrize("name", CASES)
def test_every_composition_is_correct(bench, name: str) -> None:
    problem = bench.problem(CASES[name].reference, CASES[name].tolerance, name)
    outcomes = bench.run(problem, sources_of(composer_of(problem)), timed=False)
    wrong = {}
    for kernel, outcome in outcomes.items():
        error = outcome.verdict.rel_error if outcome.verdict else None
        report(name, kernel=kernel, said=outcome.said(), rel_error=error)
        if outcome.last.status is not Status.OK:
            wrong[kernel] = outcome.said()
    assert not wrong, "\n".join(f"{kernel}: {said}" for kernel, said in wrong.items())


@pytest.mark.parametrize("name", HEADLINE)
def test_headline_sizes_are_timed(bench, name: str) -> None:
    problem = bench.problem(HEADLINE[name].reference, HEADLINE[name].tolerance, f"matmul_{name}")
    composer = composer_of(problem)
    units = {"fp32": ((ASYNC,), (ASYNC, GROUPED, PERSISTENT))}.get(
        name,
        ((TENSOR, ASYNC, GROUPED), (WARPGROUP,), (WARPGROUP, GROUPED), (WARPGROUP, GROUPED, PERSISTENT, WIDE)),
    )
    sources = {f"{'+'.join(c)}/{v}": composer.emit(frozenset(c), v) for c in units for v in (0, 1)}
    outcomes = bench.run(problem, sources)
    for kernel, outcome in outcomes.items():
        timing = outcome.timing
        report(f"headline_{name}", kernel=kernel, said=outcome.said(), median_ms=timing.median_ms if timing else None,
               reference_ms=timing.reference_ms if timing else None)  # fmt: skip
    assert all(o.last.status is Status.OK for o in outcomes.values()), [o.said() for o in outcomes.values()]


def test_a_unit_replaces_another(bench) -> None:
    problem = bench.problem(CASES["fp16_nn"].reference, "fp16", "fp16_nn")
    composer = composer_of(problem)
    assert with_added(composer, {TENSOR, ASYNC, GROUPED}, WARPGROUP) == {WARPGROUP, GROUPED}
