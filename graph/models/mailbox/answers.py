"""Read an answer: text or a source becomes the reply that the journal stores, or one line that says what to mend."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError

from ridgeline.graph.models.replies import UnreadableReply, read_ideas, read_kernel
from ridgeline.graph.models.requests import KernelDraft
from ridgeline.graph.models.waiting_request import Asked, WaitingRequest
from ridgeline.problems.numbers import NoBool
from ridgeline.tools.records.printable import printable

MOST_BYTES = 2 * 1024 * 1024
"""The size of an answer at most: a hundred times a long kernel."""

_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.{0,4096}?)\n---[ \t]*\n", re.DOTALL)
_HEAD_LINE = re.compile(r"([^:]{1,60}):(?:\s(.*))?")
_BELONGS_ABOVE = (" ", "\t", "-", "#")
"""Begin a line that states nothing of its own: of a list or a text of several lines, or a comment."""
_UNSTATED = ("", "null", "~")
_LONGEST_ID = 80


class RefusedAnswer(ValueError):
    """An answer that is not taken; the message is one line that says what to mend."""

    def __init__(self, message: str) -> None:
        """Take a message that may quote the answer."""
        super().__init__(printable(message))


class _Stated(BaseModel):
    """The facts that an answer may state of itself."""

    model_config = ConfigDict(extra="ignore")

    id: str | None = None
    input_tokens: Annotated[int, NoBool, Field(ge=0, le=10**12)] = 0
    output_tokens: Annotated[int, NoBool, Field(ge=0, le=10**12)] = 0
    usd: Annotated[FiniteFloat, NoBool, Field(ge=0, le=1e9)] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MailboxAnswer:
    """An answer that a model's reader reads; `text` is what the journal stores of it."""

    text: str
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float | None = None  # as stated


def read_answer(request: WaitingRequest, content: bytes, suffix: str = "") -> MailboxAnswer:
    """Return the answer in the content of a file whose name ends in `suffix`; "" is text without a name.

    Raises:
        RefusedAnswer: the content is no answer to this request.
    """
    text = _text_of(content)
    if suffix not in ("", *request.suffixes):
        raise RefusedAnswer(f"the file ends in .{suffix}; {_wanted(request)}")
    if suffix == request.language:
        return _read(request, json.dumps({"source": text, "notes": ""}), _Stated())
    front = _FRONT_MATTER.match(text)
    if front:
        lines = "\n" * front[0].count("\n")  # an answer's lines keep their numbers
        return _read(request, lines + text[front.end() :], _stated(_mapping_of(front[1])))
    return _read(request, text, _stated(_usage_of(text)))


def read_value(request: WaitingRequest, value: Any) -> MailboxAnswer:
    """Return the answer in a value with which a host resumes: the text, the reply's object, or {"text": …, "usage": …}.

    Raises:
        RefusedAnswer: as `read_answer` does.
    """
    if isinstance(value, Mapping) and isinstance(value.get("text"), str):
        text = _text_of(value["text"].encode(errors="surrogatepass"))
        return _read(request, text, _stated(value.get("usage") or {}))
    try:
        text = value if isinstance(value, str) else json.dumps(value)
        content = text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise RefusedAnswer(f"the value is neither text nor JSON ({error}); {_wanted(request)}") from None
    return read_answer(request, content)


def _text_of(content: bytes) -> str:
    _sized(content)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise RefusedAnswer("the answer is no UTF-8 text; give the source or the JSON, not a built file") from None
    if "\0" in text:
        raise RefusedAnswer("the answer holds a NUL byte, so it is no text; give the source or the JSON")
    if not text.strip():
        raise RefusedAnswer("the answer is empty")
    return text


def _sized(content: bytes) -> None:
    if len(content) > MOST_BYTES:
        raise RefusedAnswer(too_large(len(content)))


def too_large(size_bytes: int) -> str:
    """Return the words for an answer beyond MOST_BYTES, of which no more may have been read than that."""
    most = f"{MOST_BYTES // 2**20} MiB"
    size = f"{size_bytes / 2**20:.1f} MiB"
    return f"the answer has {f'more than {most}' if size == f'{MOST_BYTES / 2**20:.1f} MiB' else size}, {most} are the most"


def _mapping_of(front: str) -> Mapping[str, str]:
    """Return what the lines of a front matter state, each value as it is written."""
    stated: dict[str, str] = {}
    for number, line in enumerate(front.split("\n"), 2):
        if not line.strip() or (line.startswith(_BELONGS_ABOVE) and (stated or line.startswith("#"))):
            continue
        found = _HEAD_LINE.fullmatch(line.rstrip())
        if found is None:
            where = f"the lines between --- and --- are not 'name: value' lines (line {number})"
            raise RefusedAnswer(f"{where}; mend or remove them")
        value = _unquoted((found[2] or "").strip())
        stated[_unquoted(found[1])] = "" if value in _UNSTATED else value
    return {name: value for name, value in stated.items() if value}


def _unquoted(value: str) -> str:
    """Return a value without its quotes, or without the comment behind it."""
    for quote in ('"', "'"):
        if value.startswith(quote) and (end := value.find(quote, 1)) > 0:
            return value[1:end]
    return value.partition(" #")[0].rstrip()


def _usage_of(text: str) -> Mapping[str, Any]:
    """Return the `usage` in an answer that is one JSON object; nothing without one."""
    try:
        found = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return {}
    usage = found.get("usage") if isinstance(found, dict) else None
    return usage if isinstance(usage, dict) else {}


def _stated(values: Mapping[str, Any]) -> _Stated:
    try:
        return _Stated.model_validate(dict(values))
    except ValidationError as error:
        detail = error.errors()[0]
        raise RefusedAnswer(f"{'.'.join(str(part) for part in detail['loc'])}: {detail['msg']}") from None


def _read(request: WaitingRequest, text: str, stated: _Stated) -> MailboxAnswer:
    if stated.id not in (None, request.id):
        raise RefusedAnswer(f"the answer says that it is to {stated.id[:_LONGEST_ID]}, the request is {request.id}")
    try:
        draft = read_kernel(text, request.bases) if request.purpose is Asked.KERNEL else read_ideas(text)[0]
    except UnreadableReply as error:
        raise RefusedAnswer(f"{' '.join(str(error).split())}; {_wanted(request)}") from None
    if isinstance(draft, KernelDraft) and ("\0" in draft.source or not draft.source.strip()):
        raise RefusedAnswer("the source is empty, or holds a NUL character")
    return MailboxAnswer(
        text=text, input_tokens=stated.input_tokens, output_tokens=stated.output_tokens, usd=stated.usd
    )


def _wanted(request: WaitingRequest) -> str:
    """Return what an answer to this request is."""
    if request.purpose is Asked.IDEAS:
        return 'answer with the JSON object {"ideas": [...]} of the schema, as .md or .json'
    return (
        f'answer with the JSON object {{"source": …, "notes": …}}, SEARCH/REPLACE blocks or one fenced code block as .md or '
        f".json, "
        f"or with the source itself as .{request.language}"
    )
