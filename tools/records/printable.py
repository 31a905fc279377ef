"""Text from outside, made fit to be printed: file names, answers, other machines' records, compilers' logs."""

from __future__ import annotations

_NAME_SHOWN = 80
"""Characters of a name; an archive from elsewhere may hold one of any length."""


def printable(text: str, *, keeps: str = "") -> str:
    """Return a text with a blank for each character that prints nothing, but for those in `keeps`.

    Such characters command a terminal, reverse what is written, break one line in two, or fit into no UTF-8 file.
    """
    rest = text
    for kept in keeps:
        rest = rest.replace(kept, "")
    return text if rest.isprintable() else "".join(c if c.isprintable() or c in keeps else " " for c in text)


def encodable(text: str) -> str:
    """Return a text with a question mark for each half of a pair of surrogates, which no file and no database takes.

    JSON can hold one, and a server that cuts a reply off in the middle of a character sends it.
    """
    return text if text.isascii() else text.encode(errors="replace").decode()


def printable_name(name: str) -> str:
    """Return a name as it is printed within a line: whole up to 80 characters."""
    return printable(name)[:_NAME_SHOWN]
