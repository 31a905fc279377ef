"""The counts of tokens that a provider states beside an answer: those that cannot be any are set aside.

A client checks them with the answer, or adds them up, and refuses the whole for one of them. The text is paid, and good.
"""

from __future__ import annotations

import json
import re
from typing import Any

from ridgeline.graph.models.answers import is_count

_USAGES = ("usage", "usageMetadata")  # OpenAI's and Gemini's
_LONGEST = 1000  # digits; Python refuses to read more than 4300
_COUNT = re.compile(r"tokens$|count$", re.IGNORECASE)


def without_bad_counts(body: bytes) -> bytes:
    """Return an answer's body with 0 for each count that can be none, and no usage that is no object.

    A body that is no JSON object, or has no such count, stays as it is.
    """
    try:
        answer = json.loads(body, parse_int=_whole)
    except (RecursionError, ValueError):
        return body
    if not isinstance(answer, dict):
        return body
    stated = {name: answer[name] for name in _USAGES if answer.get(name) is not None}
    kept = {name: _mended(usage) for name, usage in stated.items() if isinstance(usage, dict)}
    if kept == stated:
        return body
    return json.dumps({name: each for name, each in answer.items() if name not in stated} | kept).encode()


def _whole(digits: str) -> int | float:
    """Return a number that Python reads at any length."""
    return int(digits) if len(digits) < _LONGEST else float(digits)


def _mended(value: Any, name: str = "") -> Any:
    if _COUNT.search(name):
        return value if value is None or is_count(value) else 0
    if isinstance(value, dict):
        return {key: _mended(each, key) for key, each in value.items()}
    return [_mended(each) for each in value] if isinstance(value, list) else value
