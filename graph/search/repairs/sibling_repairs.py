"""The repairs of build errors under way in one session: branches with the same error wait for the first one's edit."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from ridgeline.graph.models.mailbox.model import is_mailbox
from ridgeline.graph.models.prices import is_batch
from ridgeline.tools.errors import NotBegun

MOST_WAIT_S = 900.0
"""A model's reply with one retry at the usual time limit of a call. Who answers a mailbox within this time answers once;
for a person who takes hours the other branches' requests come a little later."""
LOOK_EVERY_S = 0.25


@dataclass(slots=True, kw_only=True)
class _Repair:
    signature: str
    model: str
    is_over: asyncio.Event = field(default_factory=asyncio.Event)
    repaired_id: str | None = None


@dataclass(slots=True, kw_only=True)
class SiblingRepairs:
    """The branches that have a model repair an error, each error's one, and the candidates that came of it.

    Nothing of it outlives a session: what a resumed search has to know is in its archive and its journal.
    """

    is_stopping: Callable[[], bool] = lambda: False
    most_wait_s: float = MOST_WAIT_S
    _under_way: dict[str, _Repair] = field(default_factory=dict)  # by branch
    _repaired: dict[str, str] = field(default_factory=dict)  # the candidate that an error's repair became

    def repaired(self, signature: str) -> str | None:
        """Return the candidate that built after it had this error, None before there is one."""
        return self._repaired.get(signature)

    def begin(self, signature: str, branch: str, model: str) -> bool:
        """Have a branch's model repair an error, unless the branch waits for another's; say whether it is this one's turn."""
        first, own = self._find(signature, model), self._under_way.get(branch)
        if first is None and (own is None or own.signature != signature):
            self._under_way[branch] = _Repair(signature=signature, model=model)
        return first is None or first is own

    def end(self, branch: str, repaired_id: str | None = None) -> None:
        """Let those go on that wait for a branch's repair: `repaired_id` is what was built of it, None for nothing."""
        repair = self._under_way.pop(branch, None)
        if repair is None:
            return
        if repaired_id is not None:
            self._repaired[repair.signature] = repaired_id
        repair.repaired_id = repaired_id
        repair.is_over.set()

    async def outcome(self, signature: str, model: str) -> str | None:
        """Return what the repair became that a branch of this model waits for.

        None where it failed, or takes too long, or none is under way.

        Raises:
            NotBegun: a stop was asked for meanwhile.
        """
        repair = self._find(signature, model)
        if repair is None:
            return None
        until_s = time.monotonic() + self.most_wait_s
        while not repair.is_over.is_set() and time.monotonic() < until_s:
            if self.is_stopping():
                raise NotBegun("a stop was asked for while another branch's repair was waited for")
            with suppress(TimeoutError):
                await asyncio.wait_for(repair.is_over.wait(), LOOK_EVERY_S)
        return repair.repaired_id

    def _find(self, signature: str, model: str) -> _Repair | None:
        """Return the first repair of an error for which a branch of this model waits."""
        found = (repair for repair in self._under_way.values() if repair.signature == signature)
        return next((repair for repair in found if _is_awaited(repair.model, model)), None)


def _is_awaited(asked: str, model: str) -> bool:
    """Say whether a branch of `model` waits for what is asked of another model.

    A batch takes hours, and requests made together are one batch. A mailbox may take a day: a model that answers at once
    does not wait for it.
    """
    return not is_batch(asked) and (is_mailbox(model) or not is_mailbox(asked))
