"""Where a source computes."""

from __future__ import annotations

import time

from ridgeline.graph.models.showing.heat import heats_of, hottest_window

DRIVER = [
    "void run(float* y) {",
    "    for (int s = 0; s < strips; ++s) {",
    "        gemm(y);",
    "    }",
    "    tail(y);",
    "}",
]
GEMM = ["void gemm(float* y) {", "    for (int k = 0; k < depth; ++k) {", "        y[k] += y[k] * 2;", "    }", "}"]
TAIL = ["void tail(float* y) {", *["    y[0] += y[1];"] * 20, "}"]


def heats(**functions: list[str]) -> dict[str, float]:
    """Return how much each function computes without those that it calls."""
    return {name: heat.own for name, heat in heats_of(functions, []).items()}


def test_a_function_that_is_called_in_a_loop_counts_for_that_loop_too() -> None:
    found = heats(run=DRIVER, gemm=GEMM, tail=TAIL)
    assert found["gemm"] > found["tail"] > found["run"]


def test_a_line_counts_with_all_that_it_calls() -> None:
    lines = heats_of({"run": DRIVER, "gemm": GEMM, "tail": TAIL}, [])["run"].lines
    assert lines[2] > lines[4] > lines[0] == 0.0


def test_a_short_loop_counts_less_than_one_of_unknown_length() -> None:
    short = [line.replace("depth", "4") for line in GEMM]
    assert heats(f=short)["f"] < heats(f=GEMM)["f"]


def test_a_multiply_add_counts_more_than_an_index() -> None:
    assert (
        heats(f=["void f() {", "    a = _mm512_fmadd_ps(x, t, a);", "}"])["f"]
        > 5 * heats(f=["void f() {", "    load(x + i * 4);", "    load(x + j * 4);", "}"])["f"]
    )


def test_macros_count_where_they_are_used_and_one_that_applies_another_as_often_as_it_does() -> None:
    step = ["#define STEP(j) \\", "    a##j = _mm512_fmadd_ps(x, t, a##j);"]
    every = ["#define ALL(F) F(0) F(1) F(2) F(3)"]

    def used(line: str) -> float:
        lines = ["void f() {", *step, "    for (int k = 0; k < depth; ++k) {", f"        {line}", "    }", "}"]
        return heats_of({"f": lines}, [*every, *lines])["f"].own

    assert used("STEP(0) STEP(1)") == 2 * used("STEP(0)") > 0
    assert used("ALL(STEP)") == 4 * used("STEP(0)")
    assert used("(void)x;") == 0.0


def test_functions_that_call_each_other_end() -> None:
    chain = {f"f{n}": [f"void f{n}() {{", f"    f{n + 1}();", "    x += 1;", "}"] for n in range(2000)}
    both = {"a": ["void a() {", "    b();", "}"], "b": ["void b() {", "    a();", "    x += 1;", "}"]}
    began = time.process_time()
    assert heats(**chain)["f0"] > 0 and heats(**both)["b"] > 0
    assert time.process_time() - began < 5


def test_the_hottest_neighbours_begin_at_the_head_of_their_loop() -> None:
    lines = ["cold();", "for (int k = 0; k < n; ++k) {", "    warm();", "    hot();", "}", "cold();"]
    start, end = hottest_window(lines, [0, 0, 5, 9, 0, 0], 60)
    assert lines[start].startswith("for") and "    hot();" in lines[start:end]
    assert sum(len(line) + 1 for line in lines[start:end]) <= 60


def test_of_lines_that_compute_nothing_as_many_as_fit_are_taken() -> None:
    assert hottest_window(["a", "b", "c"], [0, 0, 0], 4) == (0, 2)
