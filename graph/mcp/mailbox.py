"""The mailbox of a run as a client sees it: the request that waits, and the content of its answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ridgeline.graph.mcp.answers import Request
from ridgeline.graph.models.mailbox.answers import MOST_BYTES
from ridgeline.graph.models.mailbox.mailbox import Mailbox
from ridgeline.graph.models.waiting_request import WaitingRequest
from ridgeline.graph.session.answering import SOURCE, mailbox_to_read
from ridgeline.tools.errors import InputError


def waiting_request(run: Path, named: str, *, has_prompt: bool) -> Request | None:
    """Return the request of this id, or the oldest that waits; None where none waits.

    Raises:
        RunError: no request of this id waits; or the run is of another version.
    """
    with mailbox_to_read(run) as mailbox:
        found = mailbox.find(named) if named else next(iter(mailbox.waiting()), None)
        return _told(mailbox, found, has_prompt=has_prompt) if found else None


def content_of(*, text: str, reply: dict[str, Any] | None, source: str, file: str) -> tuple[bytes, str]:
    """Return the content of an answer and the ending of the file that it would have.

    Raises:
        InputError: none is given, or several, or there is no such file.
    """
    values = {"text": text, "reply": reply, "source": source, "file": file}
    given = [name for name, value in values.items() if value not in (None, "")]
    if len(given) != 1:
        raise InputError(f"answer: give one of text, reply, source and file; got {', '.join(given) or 'none'}")
    if file:
        return _read_file(file), Path(file).suffix[1:]
    if source:
        return source.encode(errors="replace"), SOURCE
    return (text or json.dumps(reply)).encode(errors="replace"), ""


def _read_file(file: str) -> bytes:
    """Return the content of a file, of which one byte too many is read at most: the reader of answers refuses that."""
    path = Path(file)
    try:
        if not path.is_absolute() or not path.is_file():
            raise InputError(f"{file}: no such file; give the absolute path of an answer's file")
        with path.open("rb") as opened:
            return opened.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise InputError(f"{file!r}: cannot be read ({error}); give the absolute path of an answer's file") from None


def _told(mailbox: Mailbox, request: WaitingRequest, *, has_prompt: bool) -> Request:
    return Request(
        id=request.id,
        purpose=request.purpose.value,
        model=request.model,
        asked_at=request.asked_at,
        refused=request.refused,
        prompt=request.prompt if has_prompt else None,
        prompt_path=str(mailbox.path / request.request_file),
        schema=dict(request.schema),
        language=request.language,
    )
