"""The mailbox as a model: what answers is outside, minutes or days later, and the journal keeps the request until then."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ridgeline.graph.models.requests import Traits
from ridgeline.tools.errors import ModelError

if TYPE_CHECKING:
    from ridgeline.graph.models.requests import Reply
    from ridgeline.graph.models.search_model import ModelCall, Sender
    from ridgeline.problems.model_calls import PriceSettings

MAILBOX = "mailbox"
MAILBOX_TRAITS = Traits(is_metered=False)
_NAME = re.compile(r"mailbox(:[A-Za-z0-9][A-Za-z0-9._-]*)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class LaterModel:
    """A model whose replies come later, each through the run's mailbox."""

    name: str  # "mailbox", or "mailbox:NAME" for one of several in a pool
    price: PriceSettings | None = None  # of the tokens that an answer states

    @property
    def tariff(self) -> None:
        """Return None: an answer states what it used, and nothing is known before."""

    @property
    def traits(self) -> Traits:
        """Return the traits of a mailbox: an answer states what it used, and nothing is reserved before."""
        return MAILBOX_TRAITS

    @property
    def batched(self) -> None:
        """Return None: no call goes into a batch."""

    async def deliver(self, call: ModelCall, sender: Sender) -> Reply:
        """Return the reply of a call once somebody outside has answered."""
        return await sender.by_mailbox(call, self)


def is_mailbox(name: str) -> bool:
    """Say whether a model's name means a mailbox."""
    return name.partition(":")[0] == MAILBOX


def make_mailbox(name: str, price: PriceSettings | None) -> LaterModel:
    """Return the mailbox of this name.

    Raises:
        ModelError: the name has another form.
    """
    check_mailbox(name)
    return LaterModel(name=name, price=price)


def check_mailbox(name: str) -> None:
    """Refuse a mailbox's name that has another form.

    Raises:
        ModelError: one line that says which.
    """
    if not _NAME.fullmatch(name):
        raise ModelError(f"model {name!r}: write mailbox, or mailbox:NAME with letters, digits, '.', '_' and '-'")
