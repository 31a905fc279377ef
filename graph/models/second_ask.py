"""The one more ask that follows a reply that could not be used."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from ridgeline.graph.models.failures import NoText
from ridgeline.graph.models.replies import UnmatchedEdits, UnreadableReply
from ridgeline.tools.records.vocabulary import ReasonCode

if TYPE_CHECKING:
    from ridgeline.checkpoints.calls.journal import Journal
    from ridgeline.graph.models.requests import KernelRequest

REPLY_SHOWN = 20_000
"""Characters of an unreadable reply that go back to the model."""


def advice_of(error: UnreadableReply | NoText) -> str:
    """Return what a model is told of its reply that could not be used."""
    return error.advice if isinstance(error, NoText) else str(error)


def kernel_again(request: KernelRequest, error: UnreadableReply | NoText) -> KernelRequest:
    """Return the request that follows a reply that could not be used.

    It shows again the source that edits have to match, and a repair's failed source with its error. What a first kernel's
    reply held goes back.
    """
    text = error.text if isinstance(error, UnreadableReply) else ""
    if not text or request.is_repair or isinstance(error, UnmatchedEdits):
        return dataclasses.replace(request, unreadable=advice_of(error))
    return dataclasses.replace(
        request,
        failed_source=text[:REPLY_SHOWN],
        failure=f"Your reply could not be read: {error}.",
        failure_code=ReasonCode.NONE,
    )


def advice_given(journal: Journal, failed_id: str, second_id: str) -> str:
    """Return the words with which the second ask followed a call that failed; "" where it was not made, or did not fail.

    A session that parked, or was killed, between the two goes on with the second: the first was paid.
    """
    failed, second = journal.call(failed_id), journal.call(second_id)
    if failed is None or second is None or failed.state != "failed":
        return ""
    return str(second.request.get("unreadable") or "")
