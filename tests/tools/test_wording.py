"""Numbers and their nouns agree."""

from __future__ import annotations

import pytest

from ridgeline.tools.wording import counted, margin_words, medians_words


@pytest.mark.parametrize(
    ("number", "noun", "words"),
    [
        (1, "finished round", "1 finished round"),
        (0, "idea", "0 ideas"),
        (2, "branch", "2 branches"),
        (3, "model reply", "3 model replies"),
        (2, "key", "2 keys"),
        (12345, "token", "12,345 tokens"),
    ],
)
def test_a_noun_agrees_with_its_number(number: int, noun: str, words: str) -> None:
    assert counted(number, noun) == words


def test_a_margin_is_told_with_the_limit_that_it_is_of() -> None:
    words = "62 % of the nearest limit (shifted, a row's error)"
    assert margin_words(0.617, "shifted", "a row's error") == words
    assert margin_words(None, "shifted", "a row's error") == ""


def test_a_time_that_is_absent_is_called_so_and_no_zero() -> None:
    assert medians_words(None, 2.0236, 2.35) == "time not measured"
    assert medians_words(0.8612, None, None) == "0.8612 ms"
    assert medians_words(0.8612, 2.0236, None) == medians_words(0.8612, 2.0236, 2.35) == "0.8612 ms against 2.0236 ms"
