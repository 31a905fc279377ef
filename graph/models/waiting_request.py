"""A request that waits for its answer: all that an answer needs, as the journal, the folder and a host's graph hold it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from ridgeline.graph.models.replies import kernel_schema, wire_schema
from ridgeline.graph.models.requests import IdeaList, IdeationRequest, KernelRequest, own_part

if TYPE_CHECKING:
    from ridgeline.checkpoints.calls.journal import Call
    from ridgeline.problems.model_calls import PriceSettings


class Asked(StrEnum):
    """The kinds of answer."""

    IDEAS = "ideas"
    KERNEL = "kernel"


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingRequest:
    """One request that waits, in plain JSON types."""

    id: str  # the call's id in the journal: "r1i0v0a0:write"
    purpose: Asked
    model: str
    asked_at: str  # UTC, ISO 8601
    prompt: str
    schema: Mapping[str, Any]  # JSON schema of the reply
    language: str  # of a kernel's source: "cpp", "cu" or "py"
    price: Mapping[str, Any] | None = None  # of the tokens that an answer states, in USD per million
    bases: tuple[str, ...] = ()  # the sources that edits may be of, which the prompt shows
    refused: str = ""  # what was wrong with the last answer
    stem: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "stem", stem_of(self.id))

    @property
    def request_file(self) -> str:
        """Return the name of the request's file in the run's mailbox folder."""
        return f"{self.stem}.request.md"

    @property
    def answer_files(self) -> tuple[str, ...]:
        """Return the names under which an answer may be put beside it."""
        return tuple(f"{self.stem}.answer.{end}" for end in self.suffixes)

    @property
    def suffixes(self) -> tuple[str, ...]:
        """Return the endings that an answer's file may have."""
        return ("md", "json", self.language) if self.purpose is Asked.KERNEL else ("md", "json")

    def to_json(self) -> dict[str, Any]:
        """Return the request as `ridgeline mailbox show --json` prints it, and as a host's interrupt holds it."""
        values = {name: value for name, value in asdict(self).items() if name not in ("stem", "price", "bases")}
        return values | {
            "purpose": self.purpose.value,
            "request_file": self.request_file,
            "answer_files": list(self.answer_files),
        }

    @classmethod
    def from_call(cls, call: Call, prompt: str) -> WaitingRequest:
        """Return the request of a waiting call, as `Journal.calls` gives it, with the prompt of its hash.

        Raises:
            KeyError, TypeError, ValueError: the stored request is not what `stored_request` made.
        """
        stored = call.request
        return cls(
            id=call.call_id,
            purpose=Asked(stored["purpose"]),
            model=call.model,
            asked_at=call.began_at,
            prompt=prompt,
            schema=dict(stored["schema"]),
            language=str(stored["language"]),
            price=stored.get("price"),
            bases=tuple(stored.get("bases", ())),
            refused=call.error,
        )


def stored_request(request: IdeationRequest | KernelRequest, price: PriceSettings | None = None) -> dict[str, Any]:
    """Return what the journal stores of a request that waits, besides its prompt; `price` is for stated tokens."""
    if isinstance(request, KernelRequest):
        purpose, schema, bases = Asked.KERNEL, kernel_schema(has_bases=bool(request.bases)), request.bases
    else:
        purpose, schema, bases = Asked.IDEAS, wire_schema(IdeaList), ()
    return own_part(request) | {
        "purpose": purpose.value,
        "schema": schema,
        "language": request.subject.language,
        "price": price.model_dump(mode="json") if price else None,
        "bases": list(bases),
    }


def stem_of(call_id: str) -> str:
    """Return a name of letters, digits, `-` and `_` for a call's id; two ids never share one.

    `:` becomes `_`, any other character its number between two `=`: a file of this name lies in the folder it is put in.
    """
    return re.sub(r"[^A-Za-z0-9-]", lambda found: "_" if found[0] == ":" else f"={ord(found[0]):x}=", call_id)


def seconds_since(asked_at: str) -> float:
    """Return the seconds from a journal's time to now."""
    began = datetime.fromisoformat(asked_at)
    began = began if began.tzinfo else began.replace(tzinfo=UTC)
    return max(0.0, (datetime.now(UTC) - began).total_seconds())
