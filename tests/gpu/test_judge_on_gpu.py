"""The judge on a GPU: honest kernels, and kernels that end badly, after which the next one is unharmed."""

from __future__ import annotations

import secrets

import pytest

from ridgeline.tools.judge.messages import Renew, TimeRenewals
from ridgeline.tools.judge.process import JudgeProcess
from ridgeline.tools.measure.distrust import RENEWAL_SLOWDOWN
from ridgeline.tools.records.vocabulary import PrecisionClass, ReasonCode, Status

from .affine import REFERENCE, with_defect
from .bench import report

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]

R, S = ReasonCode, Status
DEFECTS = {
    "ENDLESS": (S.TIMEOUT, R.CALL_TIMEOUT, ""),
    "ILLEGAL": (S.RUNTIME_ERROR, R.CUDA_ERROR, ""),
    "WRITES_INPUT": (S.RUNTIME_ERROR, R.CUDA_ERROR, ""),
    "ALLOCATES": (S.RUNTIME_ERROR, R.CUDA_ERROR, "run left an error behind: out of memory"),
    "BAD_LAUNCH": (S.RUNTIME_ERROR, R.CUDA_ERROR, ""),
    "HALF": (S.WRONG, R.OUTPUT_NOT_WRITTEN, ""),
    "PAST_THE_END": (S.RUNTIME_ERROR, R.OUT_OF_BOUNDS, "writing 12 bytes past the end of `out`: "),
    "EXITS": (S.RUNTIME_ERROR, R.EXITED, ""),
    "POINTER_CACHE": (S.WRONG, R.STALE_OUTPUT, ""),
    "TRAPS": (S.RUNTIME_ERROR, R.CUDA_ERROR, ""),
}
"""How each ends: status, code and what the reason holds, as on an H200."""
SINES = """import torch
from torch import nn
class Model(nn.Module):
    def forward(self, x):
        return torch.sin(x) + 1
def get_inputs():
    return [torch.randn(131072, 4096)]
def get_init_inputs():
    return []
"""
SINE = """__global__ void sine(const float* x, float* out) {
  const int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  out[i] = sinf(x[i]) + 1;
}
void run(const float* x, float* out, void*, cudaStream_t stream) {
  TAKE
  sine<<<X_NUMEL / 256, 256, 0, stream>>>(x, out);
}
"""
TAKES_ALL = """void* taken;
  for (size_t size = size_t(8) << 30; size >= size_t(256) << 20; size /= 2)
    while (cudaMalloc(&taken, size) == cudaSuccess) {}
  cudaGetLastError();"""
"""Takes the GPU's memory, which the judge needs for its own sums over 2 GiB, and leaves no error behind."""
ROOM_TO_SPARE = 100 * 10**9
"""Memory of a GPU, in bytes, on which the judge may hold what it needs for them already: an H200 was seen to."""


@pytest.fixture(scope="module")
def problem(bench):
    return bench.problem(REFERENCE)


@pytest.fixture(scope="module")
def built(bench, problem):
    return bench.build(problem, {name: with_defect(name) for name in ("HONEST", "SIDE_STREAM", *DEFECTS)})


def test_a_renewal_takes_as_long_as_usual_while_nobody_else_uses_the_gpu(bench, problem, tmp_path) -> None:
    bench.rest()
    judge = JudgeProcess(problem, secrets.token_bytes(32), tmp_path)
    try:
        alone = judge.ask(TimeRenewals()).slowdown
        report("renewals", again=alone, beside_nobody=judge.ask(Renew()).slowdown)
        assert 0.5 < alone < 2
        assert judge.ask(Renew()).slowdown < RENEWAL_SLOWDOWN
    finally:
        judge.close()


def test_an_honest_kernel_is_timed_against_eager(bench, problem, built) -> None:
    outcome = bench.judge(problem, *built["HONEST"])
    assert outcome.last.status is S.OK, outcome.said()
    assert outcome.verdict is not None
    assert outcome.verdict.precision_class is PrecisionClass.FP32
    timing = outcome.timing
    assert timing is not None
    report("honest", timing=timing.to_json(), verdict_s=outcome.verdict.verify_s)
    assert timing.speedup > 1
    assert timing.witness_ms == pytest.approx(timing.median_ms, rel=0.1)
    assert timing.clocks["sm_mhz"] > 0


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_bad_end_is_told_and_leaves_the_next_kernel_unharmed(bench, problem, built, defect: str) -> None:
    status, code, reason = DEFECTS[defect]
    outcome = bench.judge(problem, *built[defect])
    report(defect, said=outcome.said())
    assert outcome.last.status is status, outcome.said()
    assert outcome.last.reason_code is code, outcome.said()
    assert reason in outcome.last.reason, outcome.said()
    after = bench.judge(problem, *built["HONEST"], timed=False)
    assert after.last.status is S.OK, after.said()


def test_after_bad_ends_a_kernel_still_takes_as_long_as_itself(bench, problem, built) -> None:
    def tie(after: str) -> None:
        found = bench.compare(problem, built["HONEST"], built["HONEST"])
        report("tie", after=after, ratio=found.ratio, first_ms=found.first_ms)
        assert found.ratio == pytest.approx(1, abs=0.01), after

    tie("nothing")
    for defect in ("ENDLESS", "ILLEGAL", "ALLOCATES"):
        assert bench.judge(problem, *built[defect]).last.status is not S.OK
        tie(defect)


def test_work_on_a_side_stream_is_told_by_its_witness(bench, problem, built) -> None:
    """The device is drained before the clock stops; the host's events on the given stream then disagree with it.

    Where requests wait for cores they may not; then all of the work was timed.
    """
    outcome = bench.judge(problem, *built["SIDE_STREAM"])
    report("side_stream", said=outcome.said())
    if outcome.last.reason_code is not R.WITNESS_DISAGREES:
        honest = bench.judge(problem, *built["HONEST"])
        assert outcome.timing is not None and outcome.last.status is S.OK, outcome.said()
        assert honest.timing is not None and outcome.timing.median_ms >= 0.95 * honest.timing.median_ms, outcome.said()


def test_who_takes_all_of_the_memory_is_told_and_leaves_the_next_kernel_unharmed(bench) -> None:
    problem = bench.problem(SINES, name="sines")
    built = bench.build(problem, {"greedy": SINE.replace("TAKE", TAKES_ALL), "honest": SINE.replace("TAKE", "")})
    outcome = bench.judge(problem, *built["greedy"])
    report("takes_all", said=outcome.said())
    if outcome.last.status is not S.OK or bench.device.memory_bytes < ROOM_TO_SPARE:
        assert outcome.last.status is S.RUNTIME_ERROR, outcome.said()
        assert outcome.last.reason_code is R.OUT_OF_MEMORY, outcome.said()
    after = bench.judge(problem, *built["honest"])
    assert after.last.status is S.OK, after.said()
