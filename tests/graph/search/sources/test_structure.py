"""Which sources count as one structure."""

from __future__ import annotations

import time

import pytest

from ridgeline.graph.search.sources.structure import structure_of

SOURCE = """#include <cmath>
constexpr int BLOCK = 64;  // tune: BLOCK = 32 | 64 | 1 << 7
static inline float sum(const float* v, int n) {
  float s = 0.f;
  #pragma unroll 4
  for (int i = 0; i < n; i += 4) s += v[i] * 1.5e-3f;
  return s;
}
extern "C" void run(const float* x, float* out) {
  for (int r = 0; r < BLOCK; ++r) out[r] = expf(sum(x + r * BLOCK, 7));
}
"""
MODULE = '''import torch
from torch.utils.cpp_extension import load_inline

SIZE = 128  # rows of a block
CUDA = """
__global__ void scale(float* x, float by) { x[threadIdx.x] = __ldg(x) * by * 2.0f; }  // twice
"""


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x) // 4
'''


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("BLOCK = 64;", "BLOCK = 1 << 7;"),
        ("1.5e-3f", "2.f"),
        ("unroll 4", "unroll 16"),
        ("#include <cmath>", "#include <cmath>\n/* a note\n on it */"),
        ("sum(", "add_up("),
        ("BLOCK", "ROWS"),
        ("x", "in"),
    ],
)
def test_constants_names_comments_and_tunables_make_no_structure(old: str, new: str) -> None:
    assert structure_of(SOURCE.replace(old, new) if old != "x" else renamed_x(), "cpp") == structure_of(SOURCE, "cpp")


def renamed_x() -> str:
    return SOURCE.replace("float* x", "float* in").replace("x + r", "in + r")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("expf(", "__expf("),
        ("out[r] =", "out[r] +="),
        ("static inline float", "static inline double"),
        ("sum(x + r * BLOCK, 7)", "sum(out + r * BLOCK, 7)"),
        ("#pragma unroll 4", ""),
        ("return s;", 'asm volatile("prefetcht0"); return s;'),
    ],
)
def test_operations_types_intrinsics_and_data_flow_make_the_structure(old: str, new: str) -> None:
    assert old in SOURCE
    assert structure_of(SOURCE.replace(old, new), "cpp") != structure_of(SOURCE, "cpp")


@pytest.mark.parametrize(("old", "new"), [("reinterpret_cast", "static_cast"), ("xor", "bitand")])
def test_casts_and_operators_in_words_make_the_structure(old: str, new: str) -> None:
    source = "long bits(void* p, long n) { return *reinterpret_cast<long*>(p) + (n xor 1); }\n"
    assert structure_of(source.replace(old, new), "cpp") != structure_of(source, "cpp")


@pytest.mark.parametrize(("old", "new"), [("mma.m16n8k8", "mma.m16n8k16"), ("tid", "lane")])
def test_shapes_in_assembly_are_constants_and_its_instructions_are_not(old: str, new: str) -> None:
    source = 'void run(int tid) { asm volatile("mma.m16n8k8" :: "r"(tid)); }'
    assert structure_of(source.replace(old, new), "cu") == structure_of(source, "cu")
    assert structure_of(source.replace("mma", "wgmma"), "cu") != structure_of(source, "cu")


def test_module_is_read_with_the_native_source_that_it_holds() -> None:
    same = (
        MODULE.replace("SIZE = 128  # rows of a block", "ROWS = 64").replace("2.0f", "3.0f").replace("twice", "thrice")
    )
    assert structure_of(same, "py") == structure_of(MODULE, "py")
    assert structure_of(MODULE.replace("__ldg(x)", "__ldcs(x)"), "py") != structure_of(MODULE, "py")
    assert structure_of(MODULE.replace("// 4", "// 4 + x"), "py") != structure_of(MODULE, "py")


@pytest.mark.first_case
@pytest.mark.parametrize("language", ["cpp", "py"])
@pytest.mark.parametrize("piece", ["/*", "'", '"', "a(", "f(a){", "0'", "x y(", "\\", '"""', "// tune: A = 1 | 2\n"])
def test_a_source_is_read_in_time_by_its_length(piece: str, language: str) -> None:
    source = (piece * (1 << 17))[: 1 << 17]
    started = time.process_time()
    structure_of(source, language)
    assert time.process_time() - started < 10.0
