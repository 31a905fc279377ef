"""The difference of two sources: what `diff -u` says of it, escaped, and in bounded time and room."""

from __future__ import annotations

import difflib

from tests.checkpoints.report.reading import read_page

from ridgeline.checkpoints.report.diffs import LINES, SHOWN, WIDTH, unified

OLD = "\n".join(f"line {n}" for n in range(40))
NEW = OLD.replace("line 7", "line seven").replace("line 30\n", "") + "\nline 40"


def shown(html: str) -> list[str]:
    """Return the lines of a difference as the page shows them."""
    return "".join(str(piece) for each in read_page(html).find("span") for piece in each.texts).split("\n")[:-1]


def test_a_difference_is_the_one_that_difflib_tells() -> None:
    expected = list(difflib.unified_diff(OLD.split("\n"), NEW.split("\n"), lineterm=""))[2:]
    found = unified(OLD, NEW)
    assert shown(found.html) == expected
    assert (found.added, found.removed, found.notes) == (2, 2, ())


def test_lines_have_a_sign_beside_their_colour() -> None:
    spans = read_page(unified("a\nb", "a\nc").html).find("span")
    assert [(each.attributes["class"], str(each.texts[0])[0]) for each in spans[1:]] == [
        ("same", " "), ("del", "-"), ("add", "+"),
    ]  # fmt: skip


def test_equal_sources_have_no_difference() -> None:
    assert unified(OLD, OLD).html == ""


def test_what_a_source_holds_never_becomes_markup() -> None:
    page = read_page(unified("", "</span></pre><script>alert(1)</script>").html)
    assert set(page.tags) == {"span"}
    assert "<script>alert(1)</script>" in page.text


def test_a_source_of_a_million_lines_of_few_kinds_is_compared_in_bounded_room() -> None:
    old = "\n".join(f"}} // {n % 90}" for n in range(1_000_000))
    found = unified(old, "x\n" + old[::-1])
    assert found.html.count("\n") == SHOWN
    assert any(f"{LINES:,}" in note for note in found.notes) and any("left out" in note for note in found.notes)


def test_a_long_line_is_cut() -> None:
    found = unified("", "x" * 1_000_000)
    (line,) = [text for text in shown(found.html) if text.startswith("+")]
    assert len(line) == WIDTH + 1 and line.endswith("…")
    assert found.notes == (f"lines of the difference are cut at {WIDTH} characters",)
