"""The call that a task has in hand, for the layers below a provider's client, which hands nothing of ours through."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ridgeline.graph.models.requests import Usage


class HeldBack(Exception):
    """A request was made, given to `CallInHand.hold` and not sent."""


@dataclass(slots=True, kw_only=True)
class CallInHand:
    """One call on its way: where its answer is kept, and how long it may wait."""

    call_id: str = ""
    keep: Callable[[bytes], Awaitable[None]]  # stores an answer as it arrived; what it returns from is on disk
    kept: bytes | None = None  # an answer that an earlier session stored and did not come to use: nothing is sent
    left_s: Callable[[], float | None] = lambda: None  # seconds left of the search's budget; None without a limit
    is_stopping: Callable[[], bool] = lambda: False  # whether a stop was asked for
    hold: Callable[[str, bytes], None] | None = None  # gets a request's path and body, which are then not sent
    unread: Usage | None = None  # what its answers cost that could not be read, however it ends

    def take_kept(self) -> bytes | None:
        """Return the stored answer once; then None."""
        kept, self.kept = self.kept, None
        return kept


@dataclass(slots=True)
class Attempt:
    """One attempt of a call, as the transport sees it; one that is not ours sees nothing."""

    has_answer: bool = False  # an answer arrived for the client to read
    is_kept: bool = False  # it is one that was stored before: nothing was sent, and nothing is to be


IN_HAND: ContextVar[CallInHand | None] = ContextVar("call_in_hand", default=None)
"""Set around each call of a model; a context variable, so that calls in parallel do not see one another's."""
ATTEMPT: ContextVar[Attempt | None] = ContextVar("attempt", default=None)
"""Set around each attempt of a call, as IN_HAND is around the call."""
