"""Long kernels in brief."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from ridgeline.graph.models.showing.outlines import cut_source, outline

FILLER = "\n".join(f"    y[{n}] = x[{n}];" for n in range(30))
SOURCE = f"""#include <cstdint>
constexpr int BLOCK = 64;  // tune: BLOCK = 32 | 64
constexpr int PARTS = 4;

// Lays the operand out by columns. Called once.
static void pack(const float* x, float* y) {{
{FILLER}
}}

// Sums a tile of the output; the loop that counts.
static void multiply(const float* x, float* y) {{
    for (int k = 0; k < 64; k += 8) {{
        for (int i = 0; i < BLOCK; ++i) {{
            y[i] += x[k] * x[i];
{FILLER}
        }}
    }}
}}

static int tiny(int a) {{ return a; }}

extern "C" void run(const float* x, float* y) {{
    RIDGELINE_STAGE(packing);
    pack(x, y);
    RIDGELINE_STAGE(product);
    multiply(x, y);
}}
"""


def test_an_outline_tells_constants_sweeps_functions_loops_stages_and_calls() -> None:
    assert outline(SOURCE, "cpp", 1000) == (
        "constants: BLOCK = 64 (32 | 64), PARTS = 4\n"
        "pack, 32 lines; Lays the operand out by columns\n"
        "multiply, 37 lines; Sums a tile of the output; loops k < 64 by 8, i < BLOCK\n"
        "run, 6 lines; stages packing, product; calls pack, multiply\n"
        "and 1 smaller function"
    )


def test_an_outline_keeps_to_its_length_and_leaves_out_what_computes_least() -> None:
    short = outline(SOURCE, "cpp", 180)
    assert len(short) <= 180
    assert "multiply" in short and "pack, " not in short
    assert short.endswith("and 3 smaller functions")


def test_an_outline_names_what_stands_alike_in_the_source_beside_it() -> None:
    changed = SOURCE.replace("PARTS = 4", "PARTS = 8").replace("k += 8", "k += 16")
    assert outline(changed, "cpp", 1000, SOURCE) == (
        "constants: PARTS = 8\n"
        "alike in the first kernel: pack\n"
        "multiply, 37 lines; Sums a tile of the output; loops k < 64 by 16, i < BLOCK"
    )
    assert outline(SOURCE, "cpp", 1000, SOURCE) == "alike in the first kernel: pack, multiply"


def test_a_source_without_functions_has_no_outline() -> None:
    assert outline("int x;\n", "cpp", 500) == ""


def test_a_short_source_stays_whole() -> None:
    assert cut_source(SOURCE, "cpp", len(SOURCE)) == SOURCE.rstrip("\n")


def test_a_cut_source_has_the_function_with_the_work_whole_and_names_the_others() -> None:
    cut = cut_source(SOURCE, "cpp", 1400)
    assert len(cut) <= 1400
    assert "y[i] += x[k] * x[i];" in cut and cut.count("y[29] = x[29];") == 1
    assert "// … pack, 32 lines; Lays the operand out by columns" in cut
    assert "constexpr int BLOCK = 64;  // tune: BLOCK = 32 | 64" in cut and "#include" not in cut


def test_the_stage_that_took_most_of_the_time_comes_first() -> None:
    source = SOURCE.replace("y[0] = x[0];", "y[0] += x[0] * 2;").replace("        for (int i", "        if (int i")
    assert "// … pack" in cut_source(source, "cpp", 1400)
    cut = cut_source(source, "cpp", 1400, "packing")
    assert "// … multiply" in cut and "// … pack" not in cut


def test_a_function_that_is_too_long_alone_is_cut_to_the_lines_that_compute_most() -> None:
    cut = cut_source(SOURCE, "cpp", 700)
    assert len(cut) <= 700
    assert "y[i] += x[k] * x[i];" in cut and " more lines\n" in cut
    loads = "\n".join(f"    load(y, {n});" for n in range(90))
    loop = "    for (int k = 0; k < depth; ++k) {\n        y[k] += x[k] * x[k];\n    }"
    late = f"void run(const float* x, float* y) {{\n{loads}\n{loop}\n{loads}\n}}\n"
    cut = cut_source(late, "cpp", 700)
    assert cut.startswith("void run(") and loop in cut and "// … " in cut.partition(loop)[0]
    assert 500 < len(cut) <= 700


def test_a_loop_in_which_the_hottest_function_is_called_is_shown_with_it() -> None:
    """So a GPU kernel's main loop calls what computes, behind pages of set-up."""
    setup = "\n".join(f"    prepare(y, {n});" for n in range(60))
    loop = "    for (int t = 0; t < tiles; ++t) {\n        product(x, y);\n    }"
    product = "void product(const float* x, float* y) {\n" + "    y[0] += x[0];\n" * 20 + "}\n"
    cold = f"void cold(float* y) {{\n{setup}\n    y[0] += 1;\n}}\n"
    source = f"{product}{cold}void main_loop(const float* x, float* y) {{\n{setup}\n{loop}\n{setup}\n}}\n"
    cut = cut_source(source, "cpp", 2000)
    assert len(cut) <= 2000
    assert product.rstrip() in cut and loop in cut and "// … cold" in cut


def test_of_a_function_with_several_stages_the_largest_one_is_shown() -> None:
    lines = "\n".join(f"    y[{n}] += x[{n}];" for n in range(40))
    body = f"    RIDGELINE_STAGE(first);\n{lines}\n    RIDGELINE_STAGE(last);\n    copy(x, y);\n"
    source = f"void run(const float* x, float* y) {{\n{body}}}\n"
    cut = cut_source(source, "cpp", 500, "last")
    assert "RIDGELINE_STAGE(last);\n    copy(x, y);" in cut and "RIDGELINE_STAGE(first)" not in cut
    assert "RIDGELINE_STAGE(last)" not in cut_source(source, "cpp", 500, "first")


def test_a_source_that_cannot_be_told_apart_is_cut_at_its_end() -> None:
    assert cut_source("int x;\n" * 50, "cpp", 100).endswith("… 39 more lines")


def test_lines_of_a_macro_belong_to_the_loop_in_which_they_stand() -> None:
    macro = "#define STEP(j) \\\n    { \\\n        y[j] += x[j] * 2; \\\n    }"
    body = (
        f"    for (int d = 0; d < 9; ++d) {{\n{macro}\n        STEP(0) STEP(1) STEP(2)\n        y[0] += x[d];\n    }}"
    )
    plain = "\n".join("    y[0] += x[0];" for _ in range(5))
    source = (
        f"void plain(const float* x, float* y) {{\n{plain}\n}}\nvoid looped(const float* x, float* y) {{\n{body}\n}}\n"
    )
    cut = cut_source(source, "cpp", len(source) - 60)
    assert "STEP(0)" in cut and "// … plain" in cut


def test_a_line_of_heads_without_an_end_costs_no_time() -> None:
    began = time.process_time()
    cut_source("void f(float* x) {\n" + "for(" * 60_000 + "\n}\n", "cpp", 8000)
    assert time.process_time() - began < 5, "it took 37 s"


LOOP = "void f(float* x) {\n    for (int i = 0; i < 8; i++) x[i] = 0;\n}\n"


@pytest.mark.first_case
@pytest.mark.parametrize(
    "source",
    [
        lambda n: LOOP.replace("i < 8", "\n" * n + "i < 8" + " + 0" * 60),
        lambda n: f"constexpr int {'a' * n}{{1}};\n{LOOP}",
        lambda n: f"int a{'{}' * (n // 2)};\n{LOOP}",
        lambda n: f"{'a' * 2_000} {'{}' * (n // 2)};\n{LOOP}",
        lambda n: "".join(f"void f{i}() {{}}\n" for i in range(n // 16)),
        lambda n: "".join(f"void f{i}() {{ for (;;) f{i + 1}(); }}\n" for i in range(n // 32)),
        lambda n: f"# {'for a in ' * (n // 9)}\ndef f():\n    pass\n",
    ],
)
def test_the_time_of_a_cut_and_an_outline_grows_with_the_length(source: Callable[[int], str]) -> None:
    def seconds(length: int) -> float:
        text, language = source(length), "py" if "def f" in source(0) else "cpp"
        times = []
        for _ in range(3):
            began = time.process_time()
            outline.__wrapped__(text, language, 2_000)
            cut_source.__wrapped__(text, language, 100)
            times.append(time.process_time() - began)
        return min(times)

    # Four times the length: 4 where time grows with it, 16 where with its square; a busy machine adds up to twice.
    assert seconds(40_000) < 9 * max(seconds(10_000), 0.03)


def test_overloads_of_a_name_are_told_each_with_its_own_lines() -> None:
    one = "float f(float a) {\n" + "    a += 1;\n" * 10 + "}\n"
    source = one + one.replace("float a", "float a, float b").replace("    a", "    a *= b;\n    a", 2)
    assert outline(source, "cpp", 500) == "f, 12 lines\nf, 14 lines"
    assert cut_source(source, "cpp", 250).startswith("float f(float a) {")


def test_a_count_too_large_for_a_number_is_a_loop_of_unknown_length() -> None:
    source = LOOP.replace("< 8", f"< {'1' * 5_000}")
    assert outline(source, "cpp", 500) == "and 1 smaller function"
