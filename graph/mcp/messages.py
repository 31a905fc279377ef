"""A message that a client sends, of JSON-RPC, or the refusal that it gets for what is none.

The SDK answers neither a line that it cannot read nor one with half a character, so a client would wait for ever.
"""

from __future__ import annotations

import json
from typing import Any

from mcp.types import INVALID_REQUEST, PARSE_ERROR, JSONRPCMessage
from pydantic import ValidationError

from ridgeline.tools.errors import one_line
from ridgeline.tools.records.printable import printable

MOST_BYTES = 64 * 2**20
"""Of one message: an answer has 2 MiB at most."""


def refusal_line(given: bytes) -> str | None:
    """Return the error that answers what is no message of JSON-RPC, as one line of JSON; None for a message.

    It bears the message's id where that can be told, so that the client's call ends.
    """
    try:
        message = json.loads(given.decode("utf-8"), parse_constant=_refuse)
    except UnicodeDecodeError as error:
        return _error(None, PARSE_ERROR, f"not UTF-8: byte {error.start + 1} is no part of a character")
    except RecursionError:
        return _error(None, PARSE_ERROR, "nested too deep")
    except ValueError as error:  # no JSON, or a number of thousands of digits
        return _error(None, PARSE_ERROR, f"not JSON: {one_line(error)}")
    return _invalid(message, given)


def _invalid(message: Any, given: bytes) -> str | None:
    if not isinstance(message, dict):
        words = "send messages one by one, without batches" if isinstance(message, list) else "a message is an object"
        return _error(None, INVALID_REQUEST, words)
    named = message.get("id")
    own = named if isinstance(named, int | str) and not isinstance(named, bool) and _is_whole(named) else None
    if not _is_whole(message):
        return _error(own, INVALID_REQUEST, "a text holds half of a surrogate pair, which is no character")
    if "id" in message and own is None:
        return _error(None, INVALID_REQUEST, "an id is a text or a whole number")
    try:
        JSONRPCMessage.model_validate_json(given)
    except (ValidationError, RecursionError):
        return _error(
            own, INVALID_REQUEST, 'no message of JSON-RPC: it needs "jsonrpc": "2.0", a method and its params'
        )
    return None


def _is_whole(value: Any) -> bool:
    """Say whether every text in a value can be written as UTF-8."""
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except (UnicodeEncodeError, RecursionError):
        return False
    return True


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no number of JSON")


def _error(own: int | str | None, code: int, words: str) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": own, "error": {"code": code, "message": printable(words)}})
