"""The headline problems: what their references cost by formula, and that every shipped CUDA seed builds for Hopper."""

from __future__ import annotations

import math
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.one_unit import Part, one_unit, units
from tests.tools.conftest import candidate_of, exp_problem

from ridgeline.problems.spec import load_problem, shipped_problems
from ridgeline.problems.syntax import substitute_sizes
from ridgeline.tools.build import messages
from ridgeline.tools.build.compiler import Compiler
from ridgeline.tools.engine import CompileTask
from ridgeline.tools.judge.worker.graph_export import export_graph, flop_count
from ridgeline.tools.records.precision import accepted_classes
from ridgeline.tools.records.problem import ArgSpec, Signature
from ridgeline.tools.records.vocabulary import DeviceKind, PrecisionClass, Role, Status
from ridgeline.tools.sandbox.sandbox import Sandbox

pytestmark = pytest.mark.long

HALF = (4, 16, 4096, 64), (4, 16, 4096, 128)
CONV = {"x": (100, 3, 224, 224), "conv_weight": (96, 3, 11, 11), "conv_bias": (96,)}
NORM = (64, 256, 256)
CUDA_SHAPES: dict[str, dict[str, tuple[int, ...]]] = {
    "matmul": {"a": (4096, 4096), "b": (4096, 4096), "out": (4096, 4096)},
    "matmul_fp16": {"a": (4096, 4096), "b": (4096, 4096), "out": (4096, 4096)},
    "conv2d": {**CONV, "out": (100, 96, 55, 55)},
    "conv2d_relu_maxpool": {**CONV, "out": (100, 96, 27, 27)},
    "softmax": {"x": (4096, 65536), "out": (4096, 65536)},
    "layernorm": {"x": (16, *NORM), "norm_weight": NORM, "norm_bias": NORM, "out": (16, *NORM)},
    "attention_fp16": {"q": HALF[0], "k": HALF[0], "v": HALF[0], "out": HALF[0]},
    "attention_fp16_d128": {"q": HALF[1], "k": HALF[1], "v": HALF[1], "out": HALF[1]},
}


def _attention(heads: int, tokens: int, depth: int) -> int:
    """Count what the exported, decomposed attention does: two products, softmax and its check for masked rows."""
    scores = heads * tokens * tokens
    scaled = 2 * heads * tokens * depth  # queries and keys
    return 4 * scores * depth + (12 + 4) * scores + heads * tokens + scaled


CONVOLVED = 2 * 4 * 12 * 12
COSTS = {
    "matmul": ({"M": 8, "K": 16, "N": 4}, 2 * 8 * 16 * 4),
    "matmul_fp16": ({"M": 8, "K": 16, "N": 4}, 2 * 8 * 16 * 4),
    "conv2d": ({"BATCH": 2, "FILTERS": 4, "HEIGHT": 51, "WIDTH": 51}, 2 * CONVOLVED * 3 * 11 * 11),
    "conv2d_relu_maxpool": (
        {"BATCH": 2, "FILTERS": 4, "HEIGHT": 51, "WIDTH": 51},
        CONVOLVED * (2 * 3 * 11 * 11 + 1 + 1),  # a ReLU and a maximum for each
    ),
    "softmax": ({"ROWS": 4, "COLS": 32}, 12 * 4 * 32),
    "layernorm": ({"BATCH": 2, "FEATURES": 4, "HEIGHT": 4, "WIDTH": 4}, 8 * 2 * 64),
    "attention_fp16": ({"BATCH": 1, "HEADS": 2, "TOKENS": 16, "DEPTH": 8}, _attention(2, 16, 8)),
    "attention_fp16_d128": ({"BATCH": 1, "HEADS": 2, "TOKENS": 16, "DEPTH": 16}, _attention(2, 16, 16)),
}


def namespace(source: str) -> dict[str, Any]:
    scope: dict[str, Any] = {}
    exec(source, scope)
    return scope


def cuda_signature(name: str) -> Signature:
    dtype = "float16" if "fp16" in name else "float32"
    args = []
    for argument, shape in CUDA_SHAPES[name].items():
        role = Role.OUTPUT if argument == "out" else Role.PARAMETER if "_" in argument else Role.INPUT
        strides = tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))
        args.append(ArgSpec(name=argument, role=role, shape=shape, strides=strides, dtype=dtype))
    return Signature(args=tuple(args))


@pytest.mark.parametrize("name", CUDA_SHAPES)
def test_the_cuda_problem_has_the_sizes_of_the_original_work(name: str) -> None:
    scope = namespace(load_problem(shipped_problems()[name]).reference_source("cuda"))
    with torch.device("meta"):
        inputs = scope["get_inputs"]()
        module = scope["Model"](*scope["get_init_inputs"]())
        out = module(*inputs)
    shapes = [s for argument, s in CUDA_SHAPES[name].items() if argument != "out" and "_" not in argument]
    assert [tuple(x.shape) for x in inputs] == shapes
    assert tuple(out.shape) == CUDA_SHAPES[name]["out"]
    assert out.dtype is (torch.float16 if "fp16" in name else torch.float32)


@pytest.mark.parametrize("name", ["matmul_fp16", "attention_fp16", "attention_fp16_d128"])
def test_half_precision_is_bf16_on_the_cpu_and_judged_as_that(name: str) -> None:
    spec = load_problem(shipped_problems()[name])
    assert "DTYPE = 'bfloat16'" in spec.reference_source("cpu")
    assert accepted_classes(PrecisionClass(spec.tolerance), ("bfloat16",)) == (PrecisionClass.BF16,)
    assert accepted_classes(PrecisionClass(spec.tolerance), ("float16",)) == (PrecisionClass.FP16,)


@pytest.mark.parametrize("name", COSTS)
def test_the_operations_of_a_headline_problem_follow_the_textbook(name: str) -> None:
    sizes, expected = COSTS[name]
    scope = namespace(substitute_sizes(load_problem(shipped_problems()[name]).reference_source("cpu"), sizes, name))
    module = scope["Model"](*scope["get_init_inputs"]()).eval()
    assert flop_count(export_graph(module, scope["get_inputs"]())) == expected


@pytest.mark.thorough
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
async def test_every_cuda_seed_builds_for_hopper_without_a_warning(
    tmp_path: Path, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that ask for the same headers in one unit; a GPU's tests build each by itself."""
    problem = exp_problem(kind=DeviceKind.CUDA)
    seeds = {
        f"{name}_{stem}": Part(name=f"{name}_{stem}", signature=cuda_signature(name), source=source)
        for name in CUDA_SHAPES
        for stem, source in load_problem(shipped_problems()[name]).seed_sources("cuda")
    }
    tasks = []
    for unit in units(seeds.values(), DeviceKind.CUDA):
        described = replace(problem, description=replace(problem.description, signature=unit[0].signature))
        candidate = candidate_of(one_unit(unit, DeviceKind.CUDA), language="cu")
        tasks.append(CompileTask(problem=described, candidate=candidate))
    monkeypatch.setattr(messages, "LOG_BYTES", 1 << 20)  # a warning may come after what ptxas says of many kernels
    builds = await Compiler(sandbox, tmp_path / "cache", problem.device).compile_batch(tasks)
    assert [b.log for b in builds if b.status is not Status.OK or "warning" in b.log] == []
    assert {part.signature for part in seeds.values()} == {cuda_signature(name) for name in CUDA_SHAPES}


@pytest.mark.parametrize("seed", ["online_mma.cu", "online_tiles.cpp"])
def test_attention_s_seeds_are_one_kernel_for_both_depths(seed: str) -> None:
    """A problem's folder stands by itself, so each has its copy; a mend of one is a mend of both."""
    folders = [shipped_problems()[name].parent / "seeds" for name in ("attention_fp16", "attention_fp16_d128")]
    assert len({(folder / seed).read_text() for folder in folders}) == 1
