"""One small problem and its candidates, which the tests of builds, engine and tools share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.candidates import candidate_of
from tests.descriptions import description_of

from ridgeline.tools.engine import CompileTask
from ridgeline.tools.judge.process import LoadedProblem
from ridgeline.tools.records.module_contract import ModuleContract, TensorResult
from ridgeline.tools.records.problem import ArgSpec, DescribedTarget, Device, Signature
from ridgeline.tools.records.search import Candidate
from ridgeline.tools.records.vocabulary import DeviceKind, Interface, PrecisionClass, Role
from ridgeline.tools.sandbox.sandbox import Sandbox, probe_sandbox

_SIGNATURE = Signature(
    args=(
        ArgSpec(name="x", role=Role.INPUT, shape=(64, 16), strides=(16, 1)),
        ArgSpec(name="out", role=Role.OUTPUT, shape=(64, 16), strides=(16, 1)),
    )
)


def exp_problem(interface: str = "c", kind: DeviceKind = DeviceKind.CPU) -> DescribedTarget:
    """Return the problem `exp(x)` on (64, 16), described."""
    arch = "sm_90a" if kind is DeviceKind.CUDA else "test-cpu"
    device = Device(kind=kind, name="test", arch=arch, uuid="cpu", cores=2, memory_bytes=1 << 30, cache_bytes=1 << 20)
    description = description_of(_SIGNATURE, compulsory_bytes=8192)
    return DescribedTarget(
        name="exp",
        reference_source="class Model: ...",
        interface=Interface(interface),
        tolerance=PrecisionClass.FP32,
        device=device,
        description=description,
    )


@pytest.fixture
def make_problem() -> Callable[..., DescribedTarget]:
    return exp_problem


def without_tensors() -> LoadedProblem:
    """Return what a judge says of a problem that has no memory: for processes that are never asked to compute."""
    return LoadedProblem(
        description=description_of(),
        n_sets=3,
        regions=(),
        places=(),
        trials=(),
        degenerate=None,
    )


@pytest.fixture
def module_on_gpu() -> DescribedTarget:
    """Return the problem of interface module on a GPU, described as far as its builder asks."""
    problem = exp_problem("module", DeviceKind.CUDA)
    module = ModuleContract(init="[]", state={}, first_values={}, arguments=(), form=TensorResult())
    return replace(problem, description=replace(problem.description, module=module))


@pytest.fixture
def make_candidate() -> Callable[..., Candidate]:
    return candidate_of


@pytest.fixture
def make_task() -> Callable[..., CompileTask]:
    def make(source: str, problem: DescribedTarget | None = None, *, sanitized: bool = False) -> CompileTask:
        problem = problem or exp_problem()
        candidate = candidate_of(source, language=problem.language, interface=problem.interface)
        return CompileTask(problem=problem, candidate=candidate, sanitized=sanitized)

    return make


@pytest.fixture(scope="session")
def sandbox() -> Sandbox:
    return Sandbox(probe_sandbox().tier)


@pytest.fixture(scope="session")
def exp_source() -> str:
    return """#include <cmath>
void run(const float* x, float* out, void*) {
#pragma omp parallel for
  for (int64_t i = 0; i < X_NUMEL; i++) out[i] = std::exp(x[i]);
}
"""
