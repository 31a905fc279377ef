"""The functions, types and other lines of a source."""

from __future__ import annotations

import gc
import time

import pytest

from ridgeline.graph.models.showing.source_parts import parts_of

CPP = """#include <cstdint>
// Rows of a block.
constexpr int ROWS = 8;
namespace {
static const float TABLE[2] = {1.0f, 2.0f};

struct Cursor {
    int at = 0;
    void step() { ++at; }
};

/* Sums a row; "}" is no brace here. */
template <int N>
__attribute__((noinline)) float sum(const float* x) {
#define STEP(j) { s += x[j];
    float s = 0;
    for (int i = 0; i < N; ++i) { s += x[i]; }  // }
    return s + '}' - '}';
}
}  // namespace

extern "C" void run(const float* x, float* out) {
    out[0] = sum<4>(x);
}
"""
PYTHON = '''import torch
SOURCE = """
__global__ void scale(float* x) {
    x[0] *= 2;
}
"""


class ModelNew(torch.nn.Module):
    def forward(self, x):

        return x


def other():
    return 1
'''


def names(source: str, language: str) -> list[str]:
    return [part.name for part in parts_of(source, language) if part.name]


def test_functions_and_types_of_cpp_are_found_with_the_comments_before_them() -> None:
    parts = {part.name: part for part in parts_of(CPP, "cpp") if part.name}
    assert list(parts) == ["Cursor", "sum", "run"]
    lines = CPP.splitlines()
    assert parts["sum"].comment == 'Sums a row; "}" is no brace here.'
    assert lines[parts["sum"].head] == "template <int N>" and lines[parts["sum"].end - 1] == "}"
    assert lines[parts["run"].start].startswith('extern "C"')


def test_parts_are_all_lines_of_the_source_in_order() -> None:
    for source, language in ((CPP, "cpp"), (PYTHON, "py")):
        parts = parts_of(source, language)
        assert [part.start for part in parts[1:]] == [part.end for part in parts[:-1]]
        assert (parts[0].start, parts[-1].end) == (0, len(source.splitlines()))


def test_python_has_its_own_functions_and_those_of_its_long_texts() -> None:
    assert names(PYTHON, "py") == ["scale", "ModelNew", "other"]


@pytest.mark.parametrize(
    "source",
    ["void f() {", "}\nvoid f() {}", "", "no code at all", "#if A\nvoid f() {\n#else\nvoid g() {\n#endif\n}\n"],
)
def test_a_source_that_cannot_be_told_apart_has_no_parts(source: str) -> None:
    assert parts_of(source, "cpp") == []


@pytest.mark.thorough
def test_a_very_long_source_is_read_in_a_time_that_grows_with_its_length() -> None:
    def seconds(count: int) -> float:
        """Return the least of three: Python's collector, which walks the whole test process, may enter any of them."""
        source, times = "void f() {}\n" * count, []
        for _ in range(3):
            gc.collect()
            began = time.process_time()
            found = len(parts_of(source, "cpp"))
            times.append(time.process_time() - began)
            assert found == count
        return min(times)

    assert seconds(32_000) < 24 * seconds(4_000), "eight times the source; by its square it would be 64 times the time"
