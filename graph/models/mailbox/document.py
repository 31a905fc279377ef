"""A request as a Markdown document: what `ridgeline mailbox show` prints and what lies in the folder."""

from __future__ import annotations

import json

from ridgeline.graph.models.waiting_request import Asked, WaitingRequest


def document_of(request: WaitingRequest) -> str:
    """Return the document: a head of `name: value` lines, how to answer, and last the prompt."""
    head = {
        "id": request.id,
        "purpose": request.purpose.value,
        "model": request.model,
        "asked_at": request.asked_at,
        "answer_files": ", ".join(request.answer_files),
    }
    lines = ["---", *(f"{name}: {json.dumps(value)}" for name, value in head.items()), "---", ""]
    return "\n".join([*lines, *_how_to_answer(request), "# Prompt", "", request.prompt.strip(), ""])


def _how_to_answer(request: WaitingRequest) -> list[str]:
    """Return the part that says where an answer goes; what it holds the prompt says."""
    text = "text with that object"
    if request.purpose is Asked.KERNEL:
        text += ", one fenced code block or SEARCH/REPLACE blocks" if request.bases else " or one fenced code block"
    forms = {"json": "the JSON object", "md": text, request.language: "the source itself"}
    files = [f"`{name}` ({forms[name.rpartition('.')[2]]})" for name in request.answer_files]
    last = [f"The last answer was refused: {request.refused}", ""] if request.refused else []
    return [
        f"# How to answer `{request.id}`",
        "",
        *last,
        f"The prompt says what an answer holds. Put it beside this file as {' or '.join(files)},",
        f"or give it to `ridgeline mailbox answer RUN {request.id} FILE`. The first answer counts.",
        "",
    ]
