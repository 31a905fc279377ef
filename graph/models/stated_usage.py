"""The counts of tokens that a provider states beside an answer: what can be none of them is set aside.

A client checks them with the answer, or adds them up, and refuses the whole for one of them, or for what lies between
them. The text is paid, and good.
"""

from __future__ import annotations

import json
import re
from typing import Any

from ridgeline.graph.models.answers import is_count

_USAGES = {"usage": True, "usageMetadata": False}
"""OpenAI's and Gemini's, and whether counts lie in objects in it too; Gemini's lists of details are used by nobody here."""
_LONGEST = 1000  # digits; Python refuses to read more than 4300
_COUNT = re.compile(r"tokens$|count$", re.IGNORECASE)


def without_bad_counts(body: bytes) -> bytes:
    """Return an answer's body whose usage holds counts and OpenAI's objects of counts alone, 0 for each that can be none.

    A body that is no JSON object, or whose usage holds nothing else, stays as it is.
    """
    try:
        answer = json.loads(body, parse_int=_whole)
    except (RecursionError, ValueError):
        return body
    if not isinstance(answer, dict):
        return body
    stated = {name: answer[name] for name in _USAGES if answer.get(name) is not None}
    kept = {
        name: _counts(usage, has_objects=_USAGES[name]) for name, usage in stated.items() if isinstance(usage, dict)
    }
    if kept == stated:
        return body
    return json.dumps({name: each for name, each in answer.items() if name not in stated} | kept).encode()


def _whole(digits: str) -> int | float:
    """Return a number that Python reads at any length."""
    return int(digits) if len(digits) < _LONGEST else float(digits)


def _counts(stated: dict[str, Any], *, has_objects: bool) -> dict[str, Any]:
    counts: dict[str, Any] = {}
    for name, each in stated.items():
        if _COUNT.search(name):
            counts[name] = each if each is None or is_count(each) else 0
        elif has_objects and isinstance(each, dict):
            counts[name] = _counts(each, has_objects=False)
    return counts
