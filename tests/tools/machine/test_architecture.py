"""What each architecture has, and what is said of a source that asks for more: as nvcc and ptxas themselves say it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ridgeline.tools.build.flags import architecture_flags
from ridgeline.tools.build.messages import explain_log, plain_log, trim_log
from ridgeline.tools.build.toolchain import compiler_path
from ridgeline.tools.machine.architecture import (
    capability,
    has_async_copies,
    has_clusters,
    has_reduced_products,
    has_wgmma,
)
from ridgeline.tools.records.finding import Finding
from ridgeline.tools.records.problem import Device
from ridgeline.tools.records.vocabulary import DeviceKind, ReasonCode

NVCC = compiler_path(DeviceKind.CUDA)
needs_nvcc = pytest.mark.skipif(NVCC is None, reason="needs nvcc")

WGMMA = """__global__ void k(float* x) {
  unsigned long long d = 0;
  float s[4] = {};
  asm volatile("wgmma.fence.sync.aligned;");
  asm volatile("{.reg .pred p; setp.ne.b32 p, 1, 0;"
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %4, p, 1, 1, 0, 0;}"
    : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3]) : "l"(d));
  x[0] = s[0];
}"""
TCGEN05 = '__global__ void k(float* x) { asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;"); }'
SETMAXNREG = '__global__ void k(float* x) { asm volatile("setmaxnreg.inc.sync.aligned.u32 240;"); x[0] = 1; }'
COPY = """__global__ void k(float* x) {
  __shared__ float s[128];
  asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"((unsigned)__cvta_generic_to_shared(s)), "l"(x));
  asm volatile("cp.async.wait_all;");
  x[0] = s[1];
}"""
MMA = """__global__ void k(float* x, unsigned* u) {
  float s[4] = {};
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
    "{%0, %1, %2, %3};" : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3])
    : "r"(u[0]), "r"(u[1]), "r"(u[2]), "r"(u[3]), "r"(u[4]), "r"(u[5]));
  x[0] = s[0];
}"""
CLUSTER = """__global__ void k(float* x) {
  asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;");
}"""
CLUSTER_DIMS = "__global__ void __cluster_dims__(2, 1, 1) k(float* x) { x[0] = 1; }"
STATIC = (
    "__global__ void k(float* x) {{ __shared__ float s[{}]; s[threadIdx.x] = x[0]; __syncthreads(); x[1] = s[9]; }}"
)


def compiled(source: str, arch: str, folder: Path) -> str:
    """Return the messages of nvcc on a source for an architecture as a build's log holds them, "" when it takes it."""
    device = Device(
        kind=DeviceKind.CUDA, name="gpu", arch=arch, uuid="GPU-1", cores=1, memory_bytes=1, cache_bytes=1
    )  # fmt: skip
    (folder / "kernel.cu").write_text(source)
    command = [str(NVCC), "-std=c++17", *architecture_flags(device), "-cubin", "kernel.cu", "-o", "kernel.cubin"]
    done = subprocess.run(command, cwd=folder, capture_output=True)
    return "" if done.returncode == 0 else trim_log(plain_log(done.stdout + done.stderr, folder))


@pytest.mark.first_case
@needs_nvcc
@pytest.mark.parametrize(
    ("source", "arch", "line"),
    [
        (WGMMA, "sm_80", ("wgmma.fence, wgmma.mma_async: these instructions exist on sm_90a only; this GPU is sm_80: "
         "multiply with mma.sync, which sm_80 and later have")),
        (WGMMA, "sm_100a", ("wgmma.fence, wgmma.mma_async: these instructions exist on sm_90a only; this GPU is sm_100a: "
         "multiply with mma.sync, which sm_80 and later have")),
        (TCGEN05, "sm_90a", ("tcgen05.relinquish_alloc_permit: this exists on sm_100a, sm_103a and sm_110a only; this GPU "
         "is sm_90a: multiply with mma.sync, which sm_80 and later have")),
        (COPY, "sm_75", ("cp.async, cp.async.wait_all: these instructions exist on sm_80 and later; this GPU is sm_75: "
         "write this part without it")),
        (CLUSTER, "sm_89", ("barrier.cluster.arrive, barrier.cluster.wait: these instructions exist on sm_90 and later; "
         "this GPU is sm_89: write this part without it")),
        (CLUSTER_DIMS, "sm_89", ("__cluster_dims__: this exists on sm_90 and later; this GPU is sm_89: launch blocks "
         "without clusters")),
        (SETMAXNREG, "sm_89", ('setmaxnreg.inc: this exists on sm_90a and later "a" architectures only; this GPU is sm_89: '
         "leave registers as the compiler shares them out")),
        (STATIC.format(20_000), "sm_80", ("80000 bytes of static shared memory: at most 49152 are static: declare it "
         "extern __shared__ and allow up to 166912 on sm_80 by cudaFuncAttributeMaxDynamicSharedMemorySize")),
        (STATIC.format(30_000), "sm_86", ("120000 bytes of shared memory: a block has at most 101376 on sm_86: make its "
         "tiles smaller")),
    ],
)  # fmt: skip
def test_what_the_gpu_lacks_is_one_line_with_the_next_step(source: str, arch: str, line: str, tmp_path: Path) -> None:
    log = compiled(source, arch, tmp_path)
    assert log
    assert explain_log(log, "void run()", arch) == Finding(code=ReasonCode.COMPILER_FAILED, reason=line)
    assert "/tmp" not in log and "tmpxft" not in log


@needs_nvcc
@pytest.mark.parametrize(
    "arch",
    ["sm_90a", *(pytest.param(a, marks=pytest.mark.slow) for a in ("sm_75", "sm_80", "sm_89", "sm_100a", "sm_120a"))],
)
def test_ptxas_takes_exactly_what_an_architecture_is_said_to_have(arch: str, tmp_path: Path) -> None:
    said = [has_async_copies(arch), has_reduced_products(arch), has_clusters(arch), has_wgmma(arch)]
    assert [not compiled(source, arch, tmp_path) for source in (COPY, MMA, CLUSTER, WGMMA)] == said


@needs_nvcc
def test_an_error_of_another_kind_is_not_taken_for_a_missing_instruction(tmp_path: Path) -> None:
    log = compiled("__global__ void k(float* x) { x[0] = wgmma; }", "sm_80", tmp_path)
    assert 'identifier "wgmma" is undefined' in explain_log(log, "void run()", "sm_80").reason


def test_capability_is_the_number_and_nothing_of_what_is_no_gpu() -> None:
    assert [capability(a) for a in ("sm_75", "sm_90a", "sm_100f", "x86_64-amd-90")] == [75, 90, 100, 0]
