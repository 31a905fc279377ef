"""Compilers' and linkers' messages in the words of whoever wrote the kernel."""

from __future__ import annotations

import pytest

from ridgeline.tools.build_log import explain, explain_unloadable
from ridgeline.tools.records import ReasonCode

ENTRY = 'extern "C" void run(const float* __restrict__ x, float* __restrict__ out, void* workspace)'
GCC = """\
kernel.cpp:3:12: error: 'weight' was not declared in this scope
    3 |   out[i] = weight[i] * x[i];
      |            ^~~~~~
"""
NVCC = """\
kernel.cu(3): error: identifier "WEIGHT_SHAPE_0" is undefined
    out[i] = x[WEIGHT_SHAPE_0];
"""
FUNCTION = """\
kernel.cpp:3:12: error: 'expf' was not declared in this scope
    3 |   out[i] = expf(x[i]);
      |            ^~~~
"""


@pytest.mark.parametrize("log", [GCC, NVCC])
def test_a_value_of_another_problem_is_answered_with_this_ones_declaration(log: str) -> None:
    code, reason = explain(log, ENTRY)
    assert code is ReasonCode.COMPILER_FAILED
    assert reason == f"{log.splitlines()[0]}; what there is are the arguments of `{ENTRY}` and problem.h"


def test_a_function_that_is_missing_is_no_matter_of_the_declaration() -> None:
    assert explain(FUNCTION, ENTRY)[1] == FUNCTION.splitlines()[0]


def test_a_torch_library_without_forward_is_answered_with_its_declaration() -> None:
    entry = "torch::Tensor forward(torch::Tensor x)"
    reason = explain_unloadable("/build/kernel.so: undefined symbol: _Z7forwardN2at6TensorE", entry)
    assert reason == f"the source defines no `forward` with this problem's parameters; it has to be `{entry}`"
    other = "/build/kernel.so: undefined symbol: omp_get_num_threads"
    assert explain_unloadable(other, entry) == other
