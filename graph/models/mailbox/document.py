"""A request as a Markdown document: what `ridgeline mailbox show` prints and what lies in the folder."""

from __future__ import annotations

import json

from ridgeline.graph.models.mailbox.request import Asked, WaitingRequest


def document_of(request: WaitingRequest) -> str:
    """Return the document: a head of `name: value` lines, how to answer, the reply's schema, and last the prompt."""
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
    """Return the part that says what an answer is and where it goes."""
    forms = ["one JSON object of the schema below"]
    if request.purpose is Asked.KERNEL:
        forms.append("a text with exactly one fenced code block that holds the whole source")
        if request.bases:
            forms.append("a text with SEARCH/REPLACE blocks for a source that the prompt shows")
        forms.append(f"the source itself, in a file that ends in `.{request.language}`")
    last = f"The last answer was refused: {request.refused}\n\n" if request.refused else ""
    return [
        f"# How to answer `{request.id}`",
        "",
        f"{last}The answer to the prompt below is {', or '.join(forms)}.",
        f"Put it beside this file as {' or '.join(f'`{name}`' for name in request.answer_files)},",
        f"or give it to `ridgeline mailbox answer RUN {request.id} FILE`. The first answer counts.",
        "",
        "```json",
        json.dumps(request.schema, indent=1),
        "```",
        "",
    ]
