from __future__ import annotations

from ridgeline.graph.models.showing.shortening import (
    BRIEF_CHARS,
    LONGEST_LINE_CHARS,
    cut_words,
    excerpt,
    first_of,
    in_brief,
    listed,
    told_once,
    whole_clauses,
    with_short_lines,
)

LONG = "a long mechanism without an end "


def test_a_text_in_brief_is_its_first_sentence_or_the_words_that_fit_and_the_same_in_brief_again() -> None:
    assert in_brief("One pass. Another reason.") == "One pass."
    for text in (LONG * 20, "x" * 500, "word " * 19 + "words and more"):
        brief = in_brief(text)
        assert len(brief) <= BRIEF_CHARS and brief.endswith(" …")
        assert text.startswith(brief.removesuffix(" …"))
        assert in_brief(brief) == brief


def test_a_text_that_begins_with_blanks_alone_is_cut() -> None:
    assert cut_words(" " * 300 + "words", 100) == " …"


def test_a_clause_of_a_diagnosis_is_told_once() -> None:
    known: set[str] = set()
    assert told_once("2.1 ms a call; it has more room. Spills 3.5 times.", known) == (
        "2.1 ms a call; it has more room. Spills 3.5 times."
    )
    assert told_once("2.3 ms a call; it has more room. Vectorised.", known) == "2.3 ms a call. Vectorised."
    assert told_once("Spills 3.5 times. 2.4 ms a call. it has more room.", known) == "2.4 ms a call."
    assert told_once("", known) == told_once("Vectorised.", known) == ""


def test_a_text_is_cut_between_clauses() -> None:
    text = "2.1 ms a call; it has more room. Spills."
    assert whole_clauses(text, 100) == text
    assert whole_clauses(text, 35) == "2.1 ms a call; it has more room."
    assert whole_clauses(text, 20) == "2.1 ms a call" and whole_clauses(text, 5) == ""


def test_an_excerpt_ends_with_a_line_and_says_what_it_leaves_out() -> None:
    source = "one\ntwo\nthree\nfour\n"
    assert excerpt(source, 100) == "one\ntwo\nthree\nfour"
    assert excerpt(source, 9) == "one\ntwo\n… 2 more lines"


def test_a_list_says_where_it_was_cut() -> None:
    names = ["one", "two", "three"]
    assert (first_of(names, 3), first_of(names, 2)) == ("one, two, three", "one, two …")
    assert (listed(names, 15), listed(names, 14)) == ("one, two, three", "one, two, …")


def test_words_are_cut_within_the_room_with_the_mark() -> None:
    assert (cut_words("one two three", 13), cut_words("one two three", 12)) == ("one two three", "one two …")


def test_a_line_that_no_person_writes_is_cut_and_others_stay() -> None:
    line = "x" * LONGEST_LINE_CHARS
    source = f"a = 1\n{line}\nTABLE = {'A' * 9 * LONGEST_LINE_CHARS}\n\nb = 2\n"
    shown = with_short_lines(source).split("\n")
    assert shown[:2] == ["a = 1", line] and shown[3:] == ["", "b = 2", ""]
    assert shown[2].startswith("TABLE = AAA") and shown[2].endswith("AAA … 8928 more characters")
