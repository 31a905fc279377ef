"""A GPU works inside, through the device nodes that were given, and not without them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ridgeline.tools.sandbox.sandbox import Confined, Sandbox, claim_workdir

NODES = tuple(
    path
    for path in ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia0")
    if Path(path).exists()
)
needs_gpu = pytest.mark.skipif("/dev/nvidiactl" not in NODES, reason="needs an NVIDIA GPU")
pytestmark = pytest.mark.timeout(120)

PROGRAM = r"""
#include <dlfcn.h>
#include <cstdio>
#include <cstring>
template <class F> F symbol(void* library, const char* name) { return reinterpret_cast<F>(dlsym(library, name)); }
int main() {
  void* cuda = dlopen("libcuda.so.1", RTLD_NOW);
  if (cuda == nullptr) return std::printf("no driver: %s\n", dlerror()), 1;
  int device = 0, error = symbol<int (*)(unsigned)>(cuda, "cuInit")(0);
  if (error != 0) return std::printf("cuInit %d\n", error), 1;
  void* context = nullptr;
  symbol<int (*)(int*, int)>(cuda, "cuDeviceGet")(&device, 0);
  error = symbol<int (*)(void**, unsigned, int)>(cuda, "cuCtxCreate_v2")(&context, 0, device);
  if (error != 0) return std::printf("cuCtxCreate %d\n", error), 1;
  unsigned long long memory = 0;
  error = symbol<int (*)(unsigned long long*, size_t)>(cuda, "cuMemAlloc_v2")(&memory, 64 << 20);
  auto set = symbol<int (*)(unsigned long long, unsigned char, size_t)>(cuda, "cuMemsetD8_v2");
  error = error ? error : set(memory, 7, 64 << 20);
  unsigned char byte = 0;
  error = error ? error : symbol<int (*)(void*, unsigned long long, size_t)>(cuda, "cuMemcpyDtoH_v2")(&byte, memory + 12345, 1);
  std::printf("error %d byte %d\n", error, byte);
  return error;
}
"""


@pytest.fixture
def program(sandbox: Sandbox, tmp_path: Path) -> Path:
    work = claim_workdir(tmp_path / "gpu")
    (work / "a.cpp").write_text(PROGRAM)
    command = ("g++", "-O1", "a.cpp", "-o", "a", "-ldl")
    ended, printed = sandbox.run(Confined(command=command, workdir=work, allow_processes=True))
    assert ended.is_success, printed
    (work / "a").chmod(0o755)
    return work / "a"


@pytest.mark.gpu
@needs_gpu
def test_a_runner_uses_the_given_gpu(sandbox: Sandbox, program: Path) -> None:
    ended, printed = sandbox.run(Confined(command=(str(program),), readable=(program,), devices=NODES))
    assert ended.is_success, (printed, ended)
    assert "byte 7" in printed


@pytest.mark.gpu
@needs_gpu
def test_no_gpu_is_reached_that_was_not_given(sandbox: Sandbox, program: Path) -> None:
    _, printed = sandbox.run(Confined(command=(str(program),), readable=(program,)))
    assert "byte 7" not in printed


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
def test_nvcc_builds_inside_without_a_gpu(sandbox: Sandbox, tmp_path: Path) -> None:
    work = claim_workdir(tmp_path / "nvcc")
    (work / "a.cu").write_text(
        "__global__ void k(float* x) { x[threadIdx.x] *= 2; }\nvoid run(float* x) { k<<<1, 32>>>(x); }\n"
    )
    nvcc = Path(shutil.which("nvcc") or "nvcc").resolve()
    command = (str(nvcc), "-shared", "-Xcompiler", "-fPIC", "a.cu", "-o", "a.so")
    ended, printed = sandbox.run(
        Confined(command=command, workdir=work, readable=(nvcc.parent.parent,), allow_processes=True)
    )
    assert ended.is_success, (printed, ended)
    assert (work / "a.so").stat().st_size > 0
