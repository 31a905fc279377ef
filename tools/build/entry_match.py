"""Compares the parameters of a source's entry with a problem's, by text, before any compiler runs."""

from __future__ import annotations

import re

_ENTRY = re.compile(r"\b(?:run|forward)\s*\(([^()]*)\)\s*(?:\{|$)")
_QUALIFIERS = re.compile(r"\b(?:const|__restrict__|restrict)\b|\[\[maybe_unused\]\]")
_NAME = re.compile(r"(?<=[\s*&>])\w+\s*$")


def takes_same_types(source: str, declaration: str) -> bool:
    """Return False when the source defines an entry whose parameters have other types than the declaration's.

    True also where its text does not tell: an entry made by a macro, or none.
    """
    own, wanted = _types(source), _types(declaration)
    return own is None or wanted is None or own == wanted


def _types(text: str) -> list[str] | None:
    found = _ENTRY.search(text.strip())
    if found is None or found[1].strip().isupper():
        return None
    return [_type(parameter) for parameter in found[1].split(",")]


def _type(parameter: str) -> str:
    bare = _QUALIFIERS.sub(" ", parameter).strip()
    return re.sub(r"\s+", "", _NAME.sub("", bare))
