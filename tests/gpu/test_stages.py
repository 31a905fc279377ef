"""The clocks of stages on a GPU: in a kernel, in `run`, and none in the build that is judged."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from ridgeline.tools.build.compiler import Compiler
from ridgeline.tools.build.stages import stage_names
from ridgeline.tools.engine import CompileTask
from ridgeline.tools.profile.stage_clocks import StageClocks, clock_stages
from ridgeline.tools.records.problem import DescribedTarget, Device
from ridgeline.tools.records.vocabulary import Interface, PrecisionClass, Status
from ridgeline.tools.runner.plan import runner_plan
from ridgeline.tools.sandbox.sandbox import Sandbox
from tests.candidates import candidate_of

from .bench import opened
from .conftest import DESCRIPTION, SIGNATURE

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]

IN_A_KERNEL = """
__global__ void doubled(const float* x, float* out) {
  const int first = blockIdx.x * blockDim.x + threadIdx.x;
  for (long i = first; i < X_NUMEL; i += gridDim.x * blockDim.x) out[i] = 2 * x[i];
  RIDGELINE_STAGE(long one);
  float sum = x[first];
  for (int k = 0; k < 120000; ++k) sum = sum * 0.999f + 0.001f;
  RIDGELINE_STAGE(short one);
  for (int k = 0; k < 40000; ++k) sum = sum * 0.999f + 0.001f;
  if (sum > 1e30f) out[first] = 1;
}
void run(const float* x, float* out, void*, cudaStream_t stream) {
  doubled<<<64, 128, 0, stream>>>(x, out);
}
"""
"""Four warps a multiprocessor, one for each scheduler: where more compete, those that wait are in the first stage."""
IN_RUN = """
template <int TURNS> __global__ void doubled(const float* x, float* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = x[i];
  for (int k = 0; k < TURNS; ++k) sum = sum * 0.999f + 0.001f;
  out[i] = 2 * x[i] + (sum > 1e30f ? 1 : 0);
}
void run(const float* x, float* out, void*, cudaStream_t stream) {
  RIDGELINE_STAGE(long one);
  doubled<3000><<<X_NUMEL / 256, 256, 0, stream>>>(x, out);
  RIDGELINE_STAGE(short one);
  doubled<1000><<<X_NUMEL / 256, 256, 0, stream>>>(x, out);
}
"""


@pytest.fixture
def clock(gpu: Device, sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], StageClocks]:
    folder = opened(tmp_path_factory.mktemp("stages"))
    problem = DescribedTarget(
        name="t",
        reference_source="",
        interface=Interface.C,
        tolerance=PrecisionClass.FP32,
        device=gpu,
        description=DESCRIPTION,
    )

    def of(source: str) -> StageClocks:
        task = CompileTask(problem=problem, candidate=candidate_of(source, language="cu"), profiled=True)
        with asyncio.Runner() as loop:
            [build] = loop.run(Compiler(sandbox, folder, gpu).compile_batch([task]))
        assert build.status is Status.OK, build.log
        return clock_stages(
            runner_plan(problem, build, folder).confined,
            stage_names(source),
            signature=SIGNATURE,
            library=Path(build.library_path or ""),
            device=gpu,
            sandbox=sandbox,
        )

    return of


@pytest.mark.parametrize("source", [IN_A_KERNEL, IN_RUN], ids=["kernel", "run"])
def test_stage_with_thrice_the_work_takes_most_of_the_time(clock: Callable[[str], StageClocks], source: str) -> None:
    clocks = clock(source)
    assert [stage.name for stage in clocks.stages] == ["long one", "short one"], clocks.missing
    first, second = clocks.stages
    assert 1.5 < first.ms / second.ms < 6
    assert clocks.call_ms is not None
    assert first.ms + second.ms == pytest.approx(clocks.call_ms, rel=0.3)
