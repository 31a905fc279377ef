"""Numbers and their nouns agree."""

from __future__ import annotations

import pytest

from ridgeline.tools.wording import counted


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
