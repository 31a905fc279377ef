"""A provider's batch interface: what goes into a batch, what is seen of one, and the two providers' common face."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol

from ridgeline.graph.models.failures import ModelUnavailable

UNREADABLE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What one line of a provider's answer may raise whose form is another one; the other lines are read all the same."""
NAMED = "ridgeline-"
"""Begins the name under which a provider keeps a batch; our tag follows."""


class BatchStage(StrEnum):
    """The stage of a provider's work on a batch."""

    WORKING = "working"
    ENDED = "ended"
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One request of a batch, as the provider's own client would have sent it alone."""

    call_id: str
    path: str  # of the URL
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result of one request: the body of its answer, or an error."""

    body: bytes | None = None
    status: int = 200  # as HTTP would have it
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A provider's word of a batch; `results` are complete once it works on it no more."""

    stage: BatchStage
    results: Mapping[str, Result]  # by the call's id
    reason: str = ""  # why it failed
    is_crowded: bool = False  # it failed because the account has too much in batches; later it may fit


def stated_id(value: object) -> str:
    """Return the id that a provider gives to what it made.

    Raises:
        ModelUnavailable: it gave none, so that what it made cannot be found again.
    """
    if not isinstance(value, str) or not value.strip():
        raise ModelUnavailable("the provider's answer has no id of the batch that it made")
    return value


class BatchService(Protocol):
    """One provider's batches. Exceptions are those of the provider's client."""

    async def create(self, tag: str, lines: Sequence[Line]) -> str:
        """Make a batch that can be found by `tag`, and return the provider's id."""

    async def find(self, tag: str, since: datetime) -> str | None:
        """Return the id of the batch with this tag, made after `since`, or None."""

    async def look(self, batch_id: str, lines: Mapping[str, int]) -> Seen:
        """Return what the provider says of a batch; `lines` has the place of each call in it that still waits."""
