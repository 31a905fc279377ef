"""Interfaces `torch` and `module` on a GPU: a kernel through each way in, honest and with ways to cheat beside it."""

from __future__ import annotations

import pytest

from ridgeline.tools.records.vocabulary import ReasonCode, Status

from .bench import Bench, Outcome, report

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(900)]

REFERENCE = """import torch
from torch import nn
class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))
    def forward(self, x):
        return torch.relu(x) * self.scale + self.bias
def get_inputs():
    return [torch.randn(32768, 4096)]
def get_init_inputs():
    return [4096]
"""
KERNEL = """
__global__ void affine(const float* x, const float* scale, const float* bias, float* out, long n, long width) {
  for (long i = blockIdx.x * long(blockDim.x) + threadIdx.x; i < n; i += long(gridDim.x) * blockDim.x) {
    const float v = x[i] > 0 ? x[i] : 0.0f;
    out[i] = v * scale[i % width] + bias[i % width];
  }
}
"""
EXTENSION = (
    KERNEL
    + """
torch::Tensor forward(torch::Tensor x, torch::Tensor scale, torch::Tensor bias) {
  CHEAT
  affine<<<4096, 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
      x.const_data_ptr<float>(), scale.const_data_ptr<float>(), bias.const_data_ptr<float>(),
      out.mutable_data_ptr<float>(), x.numel(), x.size(1));
  return RESULT;
}
"""
)
NEW = "auto out = torch::empty_like(x);"
EXTENSIONS = {
    "honest": (NEW, "out"),
    "returns its input": (NEW, "x"),
    "keeps one output": ("static torch::Tensor out = torch::empty_like(x);", "out"),
    "allows TF32": (f"at::globalContext().setAllowTF32CuBLAS(true); {NEW}", "out"),
    "writes its input": ("auto out = x;", "out.clone()"),
}
INLINE = f'''import torch
from torch import nn
from torch.utils.cpp_extension import load_inline
CUDA = """{KERNEL}
torch::Tensor affine_relu(torch::Tensor x, torch::Tensor scale, torch::Tensor bias, torch::Tensor out) {{
  affine<<<4096, 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
      x.const_data_ptr<float>(), scale.const_data_ptr<float>(), bias.const_data_ptr<float>(),
      out.mutable_data_ptr<float>(), x.numel(), x.size(1));
  return out;
}}
"""
CPP = "torch::Tensor affine_relu(torch::Tensor x, torch::Tensor scale, torch::Tensor bias, torch::Tensor out);"
ext = load_inline(
    "affine_inline",
    CPP,
    "#include <torch/extension.h>\\n#include <c10/cuda/CUDAStream.h>\\n" + CUDA,
    functions=["affine_relu"],
    extra_cuda_cflags=["-O3", "-arch=sm_70"],
)
def kernel(x, scale, bias, out):
    ext.affine_relu(x, scale, bias, out)
'''
TRITON = """import torch
import triton
import triton.language as tl
from torch import nn
@triton.jit
def affine(x_ptr, scale_ptr, bias_ptr, out_ptr, width, BLOCK: tl.constexpr):
    row, column = tl.program_id(0), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = column < width
    x = tl.load(x_ptr + row.to(tl.int64) * width + column, mask=inside)
    scale, bias = tl.load(scale_ptr + column, mask=inside), tl.load(bias_ptr + column, mask=inside)
    tl.store(out_ptr + row.to(tl.int64) * width + column, tl.maximum(x, 0.0) * scale + bias, mask=inside)
def kernel(x, scale, bias, out):
    affine[(x.shape[0], triton.cdiv(x.shape[1], 1024))](x, scale, bias, out, x.shape[1], BLOCK=1024)
"""
MODEL = """
class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))
    def forward(self, x):
        CHEAT
        kernel(x, self.scale, self.bias, out)
        return RESULT
"""
NEW_TENSOR = "out = torch.empty_like(x)"
MODULES = {
    "honest": (NEW_TENSOR, "out"),
    "returns its input": (NEW_TENSOR, "x"),
    "keeps one output": ("out = self.out = getattr(self, 'out', torch.empty_like(x))", "out"),
    "allows TF32": (f"torch.backends.cuda.matmul.allow_tf32 = True; {NEW_TENSOR}", "out"),
    "writes its input": ("out = x", "out.clone()"),
}
EXPECTED = {
    "honest": (Status.OK, ReasonCode.NONE),
    "returns its input": (Status.WRONG, ReasonCode.OUTPUT_ALIASES_INPUT),
    "keeps one output": (Status.WRONG, ReasonCode.STALE_OUTPUT),
    "allows TF32": (Status.WRONG, ReasonCode.STATE_CHANGED),
    "writes its input": (Status.RUNTIME_ERROR, ReasonCode.CUDA_ERROR),
}


def variants(source: str, cheats: dict[str, tuple[str, str]]) -> dict[str, str]:
    return {name: source.replace("CHEAT", does).replace("RESULT", gives) for name, (does, gives) in cheats.items()}


def judged(bench: Bench, interface: str, sources: dict[str, str]) -> dict[str, Outcome]:
    problem = bench.problem(REFERENCE, interface=interface, name=interface)
    outcomes = {}
    for name, (candidate, build) in bench.build(problem, sources).items():
        outcomes[name] = bench.judge(problem, candidate, build, timed=name == "honest")
        timing, verdict = outcomes[name].timing, outcomes[name].verdict
        report(
            f"interface_{interface}",
            kernel=name,
            said=outcomes[name].said(),
            build_s=build.build_s,
            verify_s=verdict.verify_s if verdict else None,
            median_ms=timing.median_ms if timing else None,
            reference_ms=timing.reference_ms if timing else None,
        )
    return outcomes


@pytest.mark.parametrize(
    ("interface", "source", "cheats"),
    [
        pytest.param("torch", EXTENSION, EXTENSIONS, id="torch"),
        pytest.param("module", INLINE + MODEL, MODULES, id="load_inline"),
        pytest.param("module", TRITON + MODEL, MODULES, id="triton"),
    ],
)
def test_an_honest_kernel_is_timed_and_every_cheat_is_rejected(bench, interface, source, cheats) -> None:
    outcomes = judged(bench, interface, variants(source, cheats))
    said = {name: (outcome.last.status, outcome.last.reason_code) for name, outcome in outcomes.items()}
    assert said == EXPECTED, {name: outcome.said() for name, outcome in outcomes.items()}


SEVERAL = """import torch
from torch import nn
class Model(nn.Module):
    def forward(self, x, mask):
        x.mul_(2)
        return {"sum": x.sum(1), "top": (x.argmax(1), mask.any(1))}
def get_inputs():
    return [torch.randn(4096, 2048), torch.rand(4096, 64) > 0.9]
"""


def test_a_module_returns_dicts_integers_and_what_became_of_an_input(bench) -> None:
    problem = bench.problem(SEVERAL, interface="module", name="several")
    honest = SEVERAL.partition("def get_inputs")[0].replace("class Model(", "class ModelNew(")
    sources = {"honest": honest, "leaves its input": honest.replace("x.mul_(2)", "x = x * 2")}
    outcomes = bench.run(problem, sources, timed=False)
    assert outcomes["honest"].last.status is Status.OK, outcomes["honest"].said()
    assert outcomes["leaves its input"].last.status is Status.WRONG
