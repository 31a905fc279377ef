"""Compilers' and linkers' messages in the words of whoever wrote the kernel, and which limit of a build ended one."""

from __future__ import annotations

import pytest

from ridgeline.tools.build.messages import explain, explain_limit, explain_unloadable
from ridgeline.tools.records.vocabulary import ReasonCode

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


LIMITS = {"file_bytes": 256 << 20, "memory_bytes": 3 << 30}


@pytest.mark.parametrize(
    ("log", "says"),
    [
        ("g++: internal compiler error: File size limit exceeded signal terminated program as", "limit of 256 MiB"),
        (
            "/usr/bin/ld: final link failed: File too large\ncollect2: error: ld returned 1 exit status",
            "limit of 256 MiB",
        ),
        ("virtual memory exhausted: Cannot allocate memory", "limit of 3072 MiB"),
        ("cc1plus: out of memory allocating 65536 bytes after a total of 3220373504 bytes", "limit of 3072 MiB"),
        ("g++: fatal error: Killed signal terminated program cc1plus\ncompilation terminated.", "limit of 3072 MiB"),
        ("collect2: fatal error: ld terminated with signal 9 [Killed]", "limit of 3072 MiB"),
    ],
)
def test_a_compiler_that_met_a_limit_is_told_by_it(log: str, says: str) -> None:
    said = explain_limit(log, **LIMITS)
    assert said.startswith("the compiler was stopped: ")
    assert says in said


def test_an_error_of_the_source_is_no_limit() -> None:
    assert explain_limit("kernel.cpp:3:1: error: 'x' was not declared in this scope", **LIMITS) == ""


def test_a_compiler_that_broke_down_is_quoted() -> None:
    line = "kernel.cpp:4:9: internal compiler error: Segmentation fault"
    assert explain(f"{line}\nPlease submit a full bug report", "void run()")[1] == line
