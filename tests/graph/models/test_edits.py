"""SEARCH/REPLACE edits: what they change, and what is refused by name."""

from __future__ import annotations

import random
import time

import pytest

from ridgeline.graph.models.edits import (
    MOST_EDITS,
    UnfitEdit,
    apply_edits,
    apply_to_one,
    edits_between,
    holds_edits,
    read_edits,
)
from ridgeline.graph.models.requests import KernelEdit

SOURCE = "#include <cmath>\n\nint a() {\n  return 1;\n}\n\nint b() {\n  return 1;\n}\n"


def block(search: str, replace: str) -> str:
    return f"<<<<<<< SEARCH\n{search}=======\n{replace}>>>>>>> REPLACE\n"


def edit(search: str, replace: str) -> KernelEdit:
    return KernelEdit(search=search, replace=replace)


def test_blocks_are_read_wherever_they_stand_and_change_the_source() -> None:
    text = "One change:\n\n```cpp\n" + block("int a() {\n", "int c() {\n") + "```\n"
    assert holds_edits(text)
    assert apply_edits(SOURCE, read_edits(text)) == SOURCE.replace("int a", "int c")
    several = (
        block("int a() {\n", "int c() {\n") + "and\n" + block("int b() {\n  return 1;\n", "int b() {\n  return 2;\n")
    )
    changed = apply_edits(SOURCE, read_edits(several))
    assert changed == SOURCE.replace("int a", "int c").replace("int b() {\n  return 1", "int b() {\n  return 2")


@pytest.mark.parametrize(
    ("source", "search", "replace", "result"),
    [
        ("a\nb\nc", "c\n", "d\n", "a\nb\nd"),  # no newline at the end, and none after
        ("a\nb\nc", "c", "", "a\nb"),
        ("a\nb\nc\n", "b\n", "", "a\nc\n"),
        ("a\n", "a\n", "", ""),
        ("a", "a", "b\n", "b"),
        ("a\r\nb\r\nc\r\n", "b\n", "d\ne\n", "a\r\nd\r\ne\r\nc\r\n"),  # the source keeps its line ends
        ("a\nb\nc\n", "b\r\n", "d\r\n", "a\nd\nc\n"),
        ("a\nb  \nc\n", "b\nc \n", "d\n", "a\nd\n"),  # blanks at line ends
        ("a\n\n\nb\n", "a\n\n\nb\n", "a\n\nb\n", "a\n\nb\n"),
        ("f(x);\n", "x", "y", "f(y);\n"),  # part of a line
        ("  f();\n", "f();\n", "g();\n", "  g();\n"),
        ('s = "<<<<<<< SEARCH";\nt\n', "t\n", '"======="\n', 's = "<<<<<<< SEARCH";\n"======="\n'),
        ("é\nü\n", "ü\n", "ß\n", "é\nß\n"),
        ("a\fb\nc\n", "c\n", "d\n", "a\fb\nd\n"),
        ("ab\nb\n", "b\n", "c\n", "ab\nc\n"),  # whole lines before parts of lines
    ],
)
def test_an_edit_changes_its_one_place_and_nothing_else(source: str, search: str, replace: str, result: str) -> None:
    assert apply_edits(source, [edit(search, replace)]) == result


@pytest.mark.parametrize(
    ("source", "edits", "says"),
    [
        (SOURCE, [edit("  return 1;\n", "")], r"block 1 \(`return 1;`\) matches 2 places"),
        (SOURCE, [edit("int a() {\n", ""), edit("int x() {\n", "")], r"block 2 \(`int x\(\) {`\) matches nowhere"),
        (SOURCE, [edit("return", "go")], "matches 2 places within lines"),
        (SOURCE, [edit("return 1;\n}\n", "x\n")], "matches 2 places within lines"),
        (SOURCE, [edit("", "x")], "block 1 searches for nothing"),
        (SOURCE, [edit(" \n\n", "x")], "block 1 searches for nothing"),
        (
            SOURCE,
            [edit("int a() {\n  return 1;\n", "x"), edit("  return 1;\n}\n\nint b() {\n", "y")],
            "block 1 and block 2 overlap",
        ),
        (SOURCE, [edit("int a() {\n", "x"), edit("int a() {\n", "x")], "overlap"),
        (SOURCE, [edit("int a", "x"), edit("a()", "y")], "overlap"),
        ("", [edit("a\n", "b\n")], "matches nowhere"),
        (SOURCE, [edit("int a() {\n", "x" * 500_000)], "too large"),
        (SOURCE, [edit("int a() {\n", "x")] * (MOST_EDITS + 1), "too many"),
        (SOURCE, [edit("x" * 300, "")], r"…`\) matches nowhere"),
    ],
)
def test_an_edit_that_does_not_fit_is_refused_by_its_number(source: str, edits: list[KernelEdit], says: str) -> None:
    with pytest.raises(UnfitEdit, match=says):
        apply_edits(source, edits)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("<<<<<<< SEARCH\na\n=======\nb\n", "block 1 has no line >>>>>>> REPLACE"),
        ("<<<<<<< SEARCH\na\n>>>>>>> REPLACE\n", "block 1 has no line ======="),
        ("<<<<<<< SEARCH\na\n=======\nb\n=======\nc\n>>>>>>> REPLACE\n", "block 1 has a second line ======="),
        (block("a\n", "b\n") + "<<<<<<< SEARCH\na\n<<<<<<< SEARCH\n", "block 2 has a second line <<<<<<< SEARCH"),
    ],
)
def test_a_block_without_its_three_lines_is_refused(text: str, says: str) -> None:
    with pytest.raises(UnfitEdit, match=says):
        read_edits(text)


def test_marks_within_lines_are_text() -> None:
    assert not holds_edits('puts("<<<<<<< SEARCH");\n// =======\n')
    text = block('puts("<<<<<<< SEARCH");\n', "// >>>>>>> REPLACE\n// =======\n")
    assert read_edits(text) == (edit('puts("<<<<<<< SEARCH");\n', "// >>>>>>> REPLACE\n// =======\n"),)
    assert read_edits(text.replace("\n", "\r\n")) == read_edits(text)


def test_edits_are_of_the_first_source_that_all_of_them_match() -> None:
    changes = [edit("int a() {\n", "int c() {\n")]
    assert apply_to_one(["void run();\n", SOURCE], changes) == SOURCE.replace("int a", "int c")
    with pytest.raises(UnfitEdit, match="matches nowhere"):
        apply_to_one(["void run();\n", "int a();\n"], changes)
    with pytest.raises(UnfitEdit, match="no source to edit"):
        apply_to_one([], changes)


def test_edits_between_two_versions_make_one_of_the_other() -> None:
    lines = ["{", "}", "", "  x += 1;", "  for (;;) {", "int f() {", "// note", "  y = x;"]
    made = 0
    for number in range(400):
        chance = random.Random(number)
        before = [chance.choice(lines) for _ in range(chance.randrange(1, 30))]
        after = list(before)
        for _ in range(chance.randrange(1, 5)):
            at = chance.randrange(len(after) + 1)
            after[at : at + chance.randrange(3)] = [chance.choice(lines) for _ in range(chance.randrange(3))]
        old, new = "\n".join(before), "\n".join(after)
        found = edits_between(old, new)
        if all(f"\n{old}\n".count(f"\n{e.search}") == 1 and e.search.strip() for e in found):
            assert apply_edits(old, found) == new
            made += 1
    assert made > 200


def test_edits_quote_no_more_than_makes_them_match_once() -> None:
    after = SOURCE.replace("int b() {\n  return 1", "int b() {\n  return 2")
    (found,) = edits_between(SOURCE, after)
    assert found.search.count("\n") <= 5
    assert apply_edits(SOURCE.replace("cmath", "vector"), [found]) == after.replace("cmath", "vector")
    assert edits_between("a\n" * 5000, "b\n" * 5000) == ()


def test_the_time_of_an_edit_grows_with_the_lengths_whatever_repeats() -> None:
    source, search = "a\n" * 60_000 + "b\n", "a\n" * 30_000
    began = time.process_time()
    with pytest.raises(UnfitEdit, match="matches 2 places: quote more lines"):
        apply_edits(source, [edit(search, "c\n")])
    assert apply_edits(source, [edit(search + "b\n", "c\n")]) == "a\n" * 30_000 + "c\n"
    assert time.process_time() - began < 0.5


def test_matches_that_lie_over_one_another_are_two_places() -> None:
    with pytest.raises(UnfitEdit, match="matches 2 places"):
        apply_edits("a\nb\na\nb\na\n", [edit("a\nb\na\n", "c\n")])


def test_versions_in_which_lines_repeat_too_often_have_no_edits() -> None:
    before = [f"x{i % 25}" if i % 2 else f"y{i}" for i in range(2000)]
    after = [f"x{i % 25}" if i % 2 else f"z{i}" for i in range(2000)]
    periodic = [f"x{i % 8}" for i in range(1000)]
    began = time.process_time()
    edits_between("\n".join(before), "\n".join(after))
    edits_between("\n".join(periodic), "\n".join([*periodic[3:], "z", *periodic]))
    assert time.process_time() - began < 0.5
    repeated = [f"x{i // 2 % 97}" if i % 2 else f"y{i}" for i in range(1990)]
    assert edits_between("\n".join(repeated), "\n".join(line.replace("y", "z") for line in repeated)) == ()
