"""The structure of a source: a fingerprint that comments, constants, tunable values and the spelling of own names leave alone.

A token of C++, CUDA or Python stays as it is where it says what is done: keywords, operators, types, the text of inline
assembly, and what the source calls and does not define (`__ldcg`, `_mm512_stream_ps`, `tl.dot`). A number becomes a mark,
every other name its place among the names in the order of their first use. Nothing is parsed: statements that are
exchanged make another fingerprint; two sources of one fingerprint differ in constants, names and comments alone.
"""

from __future__ import annotations

import functools
import hashlib
import keyword
import re
from collections.abc import Iterator, Sequence

from ridgeline.graph.models.showing.source_parts import LONG_TEXT
from ridgeline.graph.search.sources.tuning import parse_tunables, with_values
from ridgeline.tools.build.header import KEYWORDS

_NUMBER = r"(?P<number>\.?\d(?:[eEpP][+-]|'?[\w.])*+)"
_REST = r"(?P<name>[^\W\d]\w*)|(?P<sign>\S)"
_CPP = re.compile(
    r"(?P<comment>//[^\n]*|/\*.*?(?:\*/|\Z))"
    r"""|(?P<text>"(?:\\.|[^"\\\n])*+"?|'(?:\\.|[^'\\\n])*+'?)"""
    rf"|{_NUMBER}|{_REST}",
    re.DOTALL,
)
_PYTHON = re.compile(
    rf"""(?P<comment>#[^\n]*)|(?P<text>"(?:\\.|[^"\\\n])*+"?|'(?:\\.|[^'\\\n])*+'?)|{_NUMBER}|{_REST}""",
    re.DOTALL,
)
_DIGITS = re.compile(r"\d+")
_BOOLEAN = frozenset({"true", "false", "True", "False"})
_BESIDE_CPP = "define defined elif endif error final half ifdef ifndef include pragma undef unroll"
"""The preprocessor's words, and names with a meaning of their own in some places."""
_KEYWORDS = (KEYWORDS - _BOOLEAN).union(_BESIDE_CPP.split())
_PYTHON_KEYWORDS = _KEYWORDS.union(keyword.kwlist)
_DEFINING = frozenset({"class", "def", "define", "enum", "namespace", "struct", "typename", "union", "using"})
"""Words before a name that the source defines."""
_MARK = "0"
_LONGEST_HEAD = 256
"""Tokens of a function's parameters that are looked at: what is longer counts as a call."""

_Token = tuple[str, str]
"""The kind of a token, a group of the expressions above, and its text."""


@functools.lru_cache(maxsize=256)
def structure_of(source: str, language: str) -> str:
    """Return the fingerprint of a source in a language ("cpp", "cu", "py"); the time grows with its length and no faster."""
    written = with_values(source, dict.fromkeys((t.name for t in parse_tunables(source)), _MARK))
    if language == "py":
        normalised = _normalised(_python_tokens(written), _PYTHON_KEYWORDS)
    else:
        normalised = _normalised(_tokens(_CPP, written), _KEYWORDS)
    return hashlib.sha256(" ".join(normalised).encode()).hexdigest()


def _tokens(lexer: re.Pattern[str], source: str) -> list[_Token]:
    found = ((match.lastgroup or "", match[0]) for match in lexer.finditer(source))
    return [token for token in found if token[0] != "comment"]


def _python_tokens(source: str) -> list[_Token]:
    """Return the tokens of a Python file; the long texts that hold statements are C++, the others say nothing."""
    found: list[_Token] = []
    for place, piece in enumerate(LONG_TEXT.split(source)):
        if place % 2 == 0:
            found += _tokens(_PYTHON, piece)
        elif ";" in piece:
            found += _tokens(_CPP, piece)
    return found


def _normalised(tokens: Sequence[_Token], keywords: frozenset[str]) -> Iterator[str]:
    kept = _outside_names(tokens) | keywords
    places: dict[str, int] = {}
    for kind, text in tokens:
        if kind == "sign" or text in kept:
            yield text
        elif kind == "text":
            yield _DIGITS.sub(_MARK, text)
        elif kind == "name" and text not in _BOOLEAN:
            yield f"n{places.setdefault(text, len(places))}"
        else:
            yield _MARK


def _outside_names(tokens: Sequence[_Token]) -> set[str]:
    """Return the names that the source takes from elsewhere: types, and what it calls without defining it."""
    used, own = set[str](), set[str]()
    for place, (kind, text) in enumerate(tokens):
        if kind != "name":
            continue
        before = tokens[place - 1] if place else ("", "")
        after = tokens[place + 1] if place + 1 < len(tokens) else ("", "")
        if before[1] in _DEFINING or (after[1] == "(" and _is_definition(tokens, place, before)):
            own.add(text)
        elif text.startswith("_") or after[0] == "name" or after[1] in ("(", ":") or before[1] in (":", "."):
            used.add(text)
    return used - own


def _is_definition(tokens: Sequence[_Token], place: int, before: _Token) -> bool:
    """Say whether the call-like name at `place` begins a function's own body: `float sum(const float* x) {`."""
    if before[0] != "name" and before[1] not in ("*", "&", ">"):
        return False
    depth = 0
    for following in range(place + 1, min(place + 1 + _LONGEST_HEAD, len(tokens))):
        text = tokens[following][1]
        depth += (text == "(") - (text == ")")
        if depth == 0:
            rest = [token[1] for token in tokens[following + 1 : following + 3]]
            return rest[:1] == ["{"] or rest in (["const", "{"], ["noexcept", "{"])
    return False
