"""References whose own kernels fail on the GPU for values that were made for them: they are judged without those."""

from __future__ import annotations

import pytest

from ridgeline.tools.records.vocabulary import Status

from .bench import report

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300), pytest.mark.usefixtures("nvcc")]

PROBABILITIES = """import torch
import torch.nn.functional as F
from torch import nn
class Model(nn.Module):
    def forward(self, x, target):
        return F.binary_cross_entropy(x, target, reduction="none")
def get_inputs():
    return [torch.rand(8192, 4096), torch.rand(8192, 4096)]
"""
CROSS_ENTROPY = """#include "problem.h"
__global__ void cross_entropy(const float* x, const float* target, float* out) {
  for (int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x; i < X_NUMEL; i += int64_t(gridDim.x) * blockDim.x)
    out[i] = (target[i] - 1) * fmaxf(log1pf(-x[i]), -100) - target[i] * fmaxf(logf(x[i]), -100);
}
void run(const float* x, const float* target, float* out, void*, cudaStream_t stream) {
  cross_entropy<<<4096, 256, 0, stream>>>(x, target, out);
}
"""
BENT_ROW = """
__global__ void bend(float* row) {
  for (int64_t i = threadIdx.x; i < X_SHAPE_1; i += blockDim.x) row[i] += 0.00042f * fmaxf(row[i] - 1, -row[i]);
}
"""
NEAR_A_LIMIT = CROSS_ENTROPY.replace("void run", f"{BENT_ROW}void run").replace(
    "(x, target, out);", "(x, target, out);\n  bend<<<1, 1024, 0, stream>>>(out + 7 * X_SHAPE_1);"
)
"""One row has two thirds of the error that a row may have: the judge asks what sums lose, with operands a little off."""
SIGNED = ("mixed_signs", "few_signs", "opposite_signs")
LENGTHS = """import torch
from torch import nn
class Model(nn.Module):
    def forward(self, x, lengths):
        torch._assert_async((lengths == 4096).all())
        return x * 2
def get_inputs():
    return [torch.randn(8192, 4096), torch.full((8192,), 4096)]
"""
DOUBLE = """#include "problem.h"
__global__ void twice(const float* x, float* out) {
  for (int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x; i < X_NUMEL; i += int64_t(gridDim.x) * blockDim.x)
    out[i] = 2 * x[i];
}
void run(const float* x, const int64_t*, float* out, void*, cudaStream_t stream) {
  twice<<<4096, 256, 0, stream>>>(x, out);
}
"""


@pytest.mark.parametrize(
    ("reference", "kernel", "left_out"),
    [
        pytest.param(
            PROBABILITIES,
            CROSS_ENTROPY,
            {
                "shifted",
                "row_scaled",
                "blocked",
                "outliers",
                "few_outliers",
                *(f"{trial} {name}" for trial in SIGNED for name in ("x", "target")),
            },
            id="probabilities",
        ),
        pytest.param(LENGTHS, DOUBLE, {"not_varied lengths"}, id="lengths"),
    ],
)
def test_a_reference_is_judged_without_the_values_that_lose_the_gpu(bench, reference, kernel, left_out) -> None:
    problem = bench.problem(reference, name="lost")
    skipped = {trial.name: trial.reason for trial in problem.description.skipped_trials}
    outcome = bench.run(problem, {"honest": kernel})["honest"]
    report("lost_gpu", skipped=skipped, said=outcome.said())
    assert {name for name, why in skipped.items() if "on the GPU" in why} == left_out
    assert outcome.last.status is Status.OK, outcome.said()


def test_a_kernel_near_a_limit_does_not_end_the_judge(bench) -> None:
    problem = bench.problem(PROBABILITIES, name="near")
    outcomes = bench.run(problem, {"near": NEAR_A_LIMIT, "honest": CROSS_ENTROPY})
    report("near_a_limit", said={name: outcome.said() for name, outcome in outcomes.items()})
    assert outcomes["near"].last.status in (Status.OK, Status.WRONG)  # by the draw
    assert outcomes["honest"].last.status is Status.OK
