"""What is left of a text that commands a terminal."""

from __future__ import annotations

import pytest

from ridgeline.tools.records.printable import encodable, printable


@pytest.mark.parametrize("text", ["\x1b[2J", "a\nb", "a\x9b1m", "\u202eabc", "\udcff", "a\0b", "\x7f"])
def test_what_prints_nothing_is_a_blank(text: str) -> None:
    shown = printable(text)
    assert shown.isprintable() and len(shown) == len(text)
    shown.encode()


def test_words_and_what_is_kept_stay() -> None:
    assert printable("größer × 2, 核") == "größer × 2, 核"
    assert printable("a\n\tb\x1b", keeps="\n\t") == "a\n\tb "


@pytest.mark.parametrize(
    ("text", "fit"), [("a", "a"), ("核 😀", "核 😀"), ("cut off \ud83d", "cut off ?"), ("\udc00", "?")]
)
def test_half_a_pair_of_surrogates_is_a_question_mark(text: str, fit: str) -> None:
    assert encodable(text) == fit
