"""Which kernels a prompt shows whole, and which as a difference."""

from __future__ import annotations

import time
from dataclasses import replace

from tests.graph.requests_made import ELITE

from ridgeline.graph.models.requests import Elite
from ridgeline.graph.models.shown_kernels import MOST_LINES, difference, excerpt, shown_kernels


def kernel(name: str, lines: list[str]) -> Elite:
    return replace(ELITE, candidate_id=name, source="\n".join(lines) + "\n")


LINES = [f"line({n});" for n in range(40)]


def test_a_kernel_is_shown_against_the_whole_one_that_it_is_nearest_to() -> None:
    other = [f"other({n});" for n in range(40)]
    elites = [
        kernel("a", LINES),
        kernel("b", other),
        kernel("c", [*other, "last();"]),
        kernel("d", [*LINES, "last();"]),
    ]
    assert [(each.elite.candidate_id, each.base_id) for each in shown_kernels(elites)] == [
        ("a", ""), ("b", ""), ("c", "b"), ("d", "a")
    ]  # fmt: skip


def test_a_kernel_that_is_mostly_new_is_shown_whole() -> None:
    rewritten = [*LINES[:20], *(f"new({n});" for n in range(20))]
    (_, second) = shown_kernels([kernel("a", LINES), kernel("b", rewritten)])
    assert second.base_id == "" and second.text == kernel("b", rewritten).source


def test_the_same_source_twice_is_named() -> None:
    (_, second) = shown_kernels([kernel("a", LINES), kernel("b", LINES)])
    assert (second.base_id, second.text) == ("a", "(the same source)")


def test_a_very_long_source_is_not_compared() -> None:
    long = LINES * (MOST_LINES // len(LINES) + 1)
    (_, second) = shown_kernels([kernel("a", long), kernel("b", [*long, "last();"])])
    assert second.base_id == ""


def test_an_excerpt_ends_with_a_line_and_says_what_it_leaves_out() -> None:
    source = "one\ntwo\nthree\nfour\n"
    assert excerpt(source, 100) == "one\ntwo\nthree\nfour"
    assert excerpt(source, 9) == "one\ntwo\n… 2 more lines"


def test_kernels_in_which_lines_repeat_too_often_are_not_compared() -> None:
    base = "\n".join(f"x{i // 2 % 97}" if i % 2 else f"y{i}" for i in range(3900))
    began = time.process_time()
    assert difference(base, base.replace("y", "z")) == base.replace("y", "z")
    assert time.process_time() - began < 0.06, "a comparison takes 7 s"
