"""A `run` that is not the one of the header, as the compiler and the linker find it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.tools.build.tasks import MakeProblem, MakeTask, needs_nvcc

from ridgeline.tools.build.compiler import Compiler
from ridgeline.tools.records.vocabulary import DeviceKind, ReasonCode, Status
from ridgeline.tools.sandbox.sandbox import Sandbox

pytestmark = pytest.mark.sandboxed
RIGHT = 'extern "C" void run(const float* __restrict__ x, float* __restrict__ out, void* workspace)'
OTHER_SIGNATURES = {
    "": (ReasonCode.LINK_FAILED, "defines no `run`"),
    "void walk(const float* x, float* out, void*) {}": (ReasonCode.LINK_FAILED, "defines no `run`"),
    "void run(const float* x, float* out, int n) {}": (ReasonCode.LINK_FAILED, "defines no `run`"),
    "void run(float* x, float* out, void*) {}": (ReasonCode.LINK_FAILED, "defines no `run`"),
    'extern "C" void run(const float* x, float* out, int n) {}': (ReasonCode.COMPILER_FAILED, "conflicting"),
    "int run(const float* x, float* out, void*) { return 0; }": (ReasonCode.COMPILER_FAILED, "ambiguating"),
    "static void run(const float* x, float* out, void*) {}": (ReasonCode.COMPILER_FAILED, "and later"),
}
ITS_OWN_FAULT = """
int own(int);
float own(int);
void run(const float* x, float* out, void*) {}
"""


async def test_a_run_of_another_signature_is_answered_with_the_right_one(
    compiler: Compiler, make_task: MakeTask
) -> None:
    builds = await compiler.compile_batch([make_task(source) for source in OTHER_SIGNATURES])
    for build, (reason_code, words) in zip(builds, OTHER_SIGNATURES.values(), strict=True):
        assert (build.status, build.reason_code) == (Status.COMPILE_ERROR, reason_code)
        assert words in build.reason
        assert build.reason.endswith(f"it has to be `{RIGHT}`")
    (own,) = await compiler.compile_batch([make_task(ITS_OWN_FAULT)])
    assert "ambiguating" in own.reason
    assert "it has to be" not in own.reason


@needs_nvcc
async def test_a_cuda_run_of_another_signature_is_answered_with_the_right_one(
    tmp_path: Path, sandbox: Sandbox, make_task: MakeTask, make_problem: MakeProblem
) -> None:
    problem = make_problem(kind=DeviceKind.CUDA)
    sources = (
        "void run(const float* x, float* out, void*) {}",
        'extern "C" void run(const float* x, float* out, void*) {}',
        'extern "C" int run(const float* x, float* out, void*, cudaStream_t) { return 0; }',
    )
    compiler = Compiler(sandbox, tmp_path / "cache", problem.device)
    for build in await compiler.compile_batch([make_task(source, problem) for source in sources]):
        assert build.status is Status.COMPILE_ERROR
        assert build.reason.endswith(f"it has to be `{RIGHT.removesuffix(')')}, cudaStream_t stream)`")
