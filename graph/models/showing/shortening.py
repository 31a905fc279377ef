"""Texts made short for a prompt: cut between words, after a clause, at the end of a line, or to the first of a list."""

from __future__ import annotations

import re
from collections.abc import Sequence

BRIEF_CHARS = 100
"""Characters of a text in brief: the first sentence of most."""
LONGEST_LINE_CHARS = 1_000
"""Of a source that a prompt shows: no line that a person writes is longer, a table packed into text is."""
_CUT = " …"
_KEPT_CHARS = 80  # of a longer line
_SENTENCE = re.compile(r"(?<=[.!?])\s")
_CLAUSE = re.compile(r".+?(?:[.;](?=\s)\s+|\Z)", re.DOTALL)


def in_brief(text: str) -> str:
    """Return the first sentence of a text, cut between words where it is longer than BRIEF_CHARS."""
    return cut_words(_SENTENCE.split(text.strip(), maxsplit=1)[0], BRIEF_CHARS)


def cut_words(text: str, most_chars: int) -> str:
    """Return a text, cut between words where it is longer than `most_chars`."""
    if len(text) <= most_chars:
        return text
    kept = text[: most_chars - len(_CUT)].rsplit(maxsplit=1)
    return (kept[0] if kept else "") + _CUT  # a model may begin with any number of blanks


def cut_lines(text: str, most_chars: int) -> str:
    """Return the whole lines that stand within a text's first `most_chars`, and how many lines are left out."""
    kept = text[:most_chars].rpartition("\n")[0]
    left_out = text.count("\n", len(kept)) - text.endswith("\n")
    return f"{kept}\n… {left_out} more lines"


def excerpt(source: str, most_chars: int) -> str:
    """Return a source, cut at the end of a line where it is longer than `most_chars`."""
    return source.rstrip("\n") if len(source) <= most_chars else cut_lines(source, most_chars)


def with_short_lines(source: str) -> str:
    """Return a source in which each line longer than LONGEST_LINE_CHARS is cut, and says how much of it is left out."""
    return "\n".join(
        line
        if len(line) <= LONGEST_LINE_CHARS
        else f"{line[:_KEPT_CHARS]}{_CUT} {len(line) - _KEPT_CHARS} more characters"
        for line in source.split("\n")
    )


def first_of(words: Sequence[str], most: int) -> str:
    """Return the first of these words in a list that says where there are more."""
    return ", ".join(words[:most]) + (_CUT if len(words) > most else "")


def listed(words: Sequence[str], most_chars: int) -> str:
    """Return these words as a list, cut between two of them where it is longer than `most_chars`."""
    text = ", ".join(words)
    return text if len(text) <= most_chars else f"{text[:most_chars].rpartition(',')[0]}, …"


def whole_clauses(text: str, most_chars: int) -> str:
    """Return the clauses of a text, from its beginning, that have together at most `most_chars`."""
    kept = ""
    for clause in clauses_of(text):
        if len(kept) + len(clause.rstrip()) > most_chars:
            break
        kept += clause
    return kept.rstrip(" ;")


def told_once(text: str, known: set[str]) -> str:
    """Return a text without the clauses that are `known` from before, which get this text's."""
    kept: list[str] = []
    for clause in clauses_of(text):
        words = clause.strip(" ;.")
        if words not in known:
            kept.append(clause)
        elif kept and kept[-1].rstrip().endswith(";") and clause.rstrip().endswith("."):
            kept[-1] = f"{kept[-1].rstrip(' ;')}. "
        known.add(words)
    return "".join(kept).strip()


def clauses_of(text: str) -> list[str]:
    """Return the clauses of a text with what parts them: together they are the text."""
    return _CLAUSE.findall(text)
