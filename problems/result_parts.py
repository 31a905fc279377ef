"""Parts of a result beside its tensors: which may be there, and what to write in the place of any other.

A reference in a file and a live module are refused for them in the same words.
"""

from __future__ import annotations

from numbers import Integral

TO_TENSOR = "return it as a tensor, or leave it out"
_OTHERS_BOOLEANS = ("bool", "bool_")
"""What numpy calls its own, in its later versions and in those before."""


def is_constant(part: object) -> bool:
    """Return whether a part is one that may stand beside tensors: a whole number, a boolean or None."""
    return part is None or isinstance(part, int)


def refused_part(part: object, place: str) -> str:
    """Return what any other part is, where it lies in the result (`[1]['y']`), and what to do."""
    kind = type(part)
    own = "int" if isinstance(part, Integral) else "bool" if kind.__name__ in _OTHERS_BOOLEANS else ""
    if own:
        return f"a {kind.__module__}.{kind.__name__} as result{place}, which is none of Python's own numbers; write {own}(…)"
    said = repr(part) if isinstance(part, float) else f"a {kind.__name__}"
    return f"{said} as result{place}: beside tensors a result holds whole numbers, booleans and None alone; {TO_TENSOR}"
