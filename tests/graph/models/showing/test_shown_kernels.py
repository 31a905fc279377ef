"""Which kernels a prompt shows whole, and what it shows of the others."""

from __future__ import annotations

import time
from dataclasses import replace

from tests.graph.requests_made import ELITE

from ridgeline.graph.models.requests import Elite
from ridgeline.graph.models.showing.shown_kernels import (
    MOST_LINES,
    OUTLINE_CHARS,
    SECOND_CHARS,
    Form,
    difference,
    parent_kernels,
    told_kernels,
)


def kernel(name: str, lines: list[str], parent_id: str | None = None) -> Elite:
    return replace(ELITE, candidate_id=name, source="\n".join(lines) + "\n", parent_id=parent_id)


def function(name: str, count: int = 40) -> list[str]:
    return [f"void {name}(float* x) {{", *(f"    x[{n}] += {name[0]};" for n in range(count)), "}"]


def test_ideas_are_asked_for_with_one_source_and_outlines_of_the_others() -> None:
    leader, other = kernel("a", function("lead")), kernel("b", function("other", 80))
    first, second = told_kernels([leader, other], "cpp", 10_000)
    assert (first.form, first.text) == (Form.WHOLE, leader.source.rstrip("\n"))
    assert (second.form, second.text) == (Form.OUTLINE, "other, 82 lines")


def test_a_long_leader_is_cut_and_says_so() -> None:
    leader = kernel("a", [*function("lead", 200), *function("other")])
    (first,) = told_kernels([leader], "cpp", 2000)
    assert first.form is Form.CUT and len(first.text) <= 2000


def test_the_largest_stage_and_not_the_words_of_the_diagnosis_decides_what_of_a_kernel_is_shown() -> None:
    stages = {name: function(name, 200) for name in ("load", "store")}
    source = [line for name, body in stages.items() for line in (body[0], f"    RIDGELINE_STAGE({name});", *body[1:])]
    words = "Its stages: store 60% (1 ms). Warps wait for load 90% (of their cycles)."
    told = replace(kernel("a", source), diagnosis=words, largest_stage="store")
    (leader,), (_, second) = told_kernels([told], "cpp", SECOND_CHARS), parent_kernels(ELITE, told, "cpp")
    for shown in (leader, second):
        assert "    x[199] += s;" in shown.text and "    x[199] += l;" not in shown.text


def test_a_kernel_is_a_diff_only_against_its_own_parent_and_only_a_short_one() -> None:
    base = function("lead", 80)
    near = [*base[:-1], "    x[0] = 1;", "}"]
    elites = [kernel("a", base), kernel("b", near, "a"), kernel("c", near, "z"), kernel("d", function("new", 80), "a")]
    shown = told_kernels(elites, "cpp", 10_000)
    assert [(each.form, each.base_id) for each in shown] == [
        (Form.WHOLE, ""), (Form.DIFF, "a"), (Form.OUTLINE, ""), (Form.OUTLINE, "")
    ]  # fmt: skip
    assert all(len(each.text) <= OUTLINE_CHARS for each in shown[1:])


def test_a_short_kernel_is_whole_and_one_without_functions_is_cut() -> None:
    short, formless = kernel("b", ["int x;"]), kernel("c", ["int x;"] * 500)
    _, second, third = told_kernels([kernel("a", function("lead")), short, formless], "cpp", 10_000)
    assert (second.form, third.form) == (Form.WHOLE, Form.CUT)
    assert len(third.text) <= OUTLINE_CHARS


def test_of_a_sweep_the_kernels_beside_the_leader_tell_the_best_rows_and_the_values_as_written() -> None:
    sweep = ("B=1: 2.00x", "B=2: 1.90x", "B=3: 1.80x", "as written: 1.70x", "3 slower points")
    leader, other = (replace(kernel(name, function(name)), sweep=sweep) for name in ("a", "b"))
    first, second = told_kernels([leader, other], "cpp", 10_000)
    assert first.sweep == sweep
    assert second.sweep == ("B=1: 2.00x", "B=2: 1.90x", "as written: 1.70x")


def test_of_a_kernel_and_its_tuned_points_one_is_shown() -> None:
    root = kernel("r1i0v0a0", function("lead"))
    tuned = replace(root, candidate_id="r1i0v0a0t2", tuned_from="r1i0v0a0")
    other = replace(tuned, candidate_id="r1i0v0a0t9")
    for elites in ([tuned, root, other], [root, tuned], [tuned, other]):
        assert [each.elite for each in told_kernels(elites, "cpp", 10_000)] == elites[:1]
    assert [each.elite for each in parent_kernels(tuned, root, "cpp")] == [tuned]
    child = kernel("r2i0v0a0", [*function("lead")[:-1], "    x[0] = 1;", "}"], "r1i0v0a0")
    assert told_kernels([tuned, child], "cpp", 10_000)[1].form is Form.DIFF


def test_a_writer_gets_the_parent_whole_and_of_the_second_what_differs() -> None:
    parent = kernel("a", function("lead", 400))
    near = kernel("b", [*function("lead", 400), "int last;"])
    first, second = parent_kernels(parent, near, "cpp")
    assert (first.form, first.text) == (Form.WHOLE, parent.source)
    assert (second.form, second.base_id) == (Form.DIFF, "a") and "+int last;" in second.text


def test_a_second_parent_that_is_no_relative_is_cut_to_its_hottest_functions() -> None:
    parent, other = kernel("a", function("lead")), kernel("b", [*function("hot", 150), *function("cold", 400)])
    _, second = parent_kernels(parent, other, "cpp")
    assert second.form is Form.CUT and len(second.text) <= SECOND_CHARS
    _, short = parent_kernels(parent, kernel("c", function("other")), "cpp")
    assert short.form is Form.WHOLE and short.text == kernel("c", function("other")).source.rstrip("\n")
    (alone,) = parent_kernels(None, other, "cpp")
    assert alone.form is Form.CUT


def test_the_same_source_twice_is_named() -> None:
    assert difference("a\nb\n", "a\nb\n") == "(the same source)"


def test_changes_near_each_other_share_the_lines_between_them() -> None:
    lines = [f"line({n});" for n in range(20)]
    changed = [line.replace("line(5)", "a()").replace("line(8)", "b()").replace("line(18)", "c()") for line in lines]
    told = difference("\n".join(lines), "\n".join(changed), 3).split("\n")
    kept = [f" {line}" for line in lines]
    assert told == [
        *("@@ 3 @@", *kept[2:5], "-line(5);", "+a();", *kept[6:8], "-line(8);", "+b();", *kept[9:12]),
        *("@@ 16 @@", *kept[15:18], "-line(18);", "+c();", kept[19]),
    ]
    assert difference("\n".join(lines), "\n".join(changed)).split("\n")[:4] == [
        "@@ 5 @@",
        kept[4],
        "-line(5);",
        "+a();",
    ]


def test_a_very_long_source_is_not_compared() -> None:
    long = "\n".join(f"line({n % 40});" for n in range(MOST_LINES + 40))
    assert difference(long, f"{long}\nlast();") == f"{long}\nlast();"


def test_kernels_in_which_lines_repeat_too_often_are_not_compared() -> None:
    base = "\n".join(f"x{i // 2 % 97}" if i % 2 else f"y{i}" for i in range(3900))
    began = time.process_time()
    assert difference(base, base.replace("y", "z")) == base.replace("y", "z")
    assert time.process_time() - began < 0.06, "a comparison takes 7 s"
