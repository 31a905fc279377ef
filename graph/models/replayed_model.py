"""A model that answers from a recording: deterministic and free. It has the name of the model that it stands for."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ridgeline.checkpoints.recording.recording import question_of
from ridgeline.graph.models.call_in_hand import IN_HAND
from ridgeline.graph.models.failures import ModelUnavailable, NoText, Unrecorded
from ridgeline.graph.models.replies import UnreadableReply, read_kernel
from ridgeline.graph.models.requests import IdeationRequest, KernelRequest, Reply, Traits, Usage, own_part
from ridgeline.tools.errors import ModelError, NotRecorded
from ridgeline.tools.wording import option

if TYPE_CHECKING:
    from ridgeline.checkpoints.recording.recording import RecordedCall
    from ridgeline.graph.models.batch.model import BatchModel
    from ridgeline.graph.models.prices import Tariff
    from ridgeline.graph.models.recorded_answers import Answers
    from ridgeline.graph.models.search_model import ModelCall, SearchModel, Sender

REPLAY = "replay"


class ReplayedModel:
    """Implements `KernelModel` by the recorded answers; `otherwise` is the model for calls that have none, if any."""

    def __init__(self, name: str, answers: Answers, otherwise: SearchModel | None = None, *, traits: Traits) -> None:
        """Take the `traits` of the model whose answers these are."""
        self._name, self._answers, self._otherwise = name, answers, otherwise
        self.traits = traits

    @property
    def name(self) -> str:
        """Return the name of the model whose answers these are."""
        return self._name

    @property
    def tariff(self) -> Tariff | None:
        """Return the tariff of the model for other calls: a recorded answer costs nothing."""
        return self._otherwise.tariff if self._otherwise else None

    @property
    def batched(self) -> BatchModel | None:
        """Return the model of batches to which other calls may go, or None."""
        return self._otherwise.batched if self._otherwise else None

    async def deliver(self, call: ModelCall, sender: Sender) -> Reply:
        """Answer a call, or let the model for other calls answer one that was not recorded."""
        if self._otherwise is not None and not self._find(call.id, call.request):
            return await self._otherwise.deliver(call, sender)
        return await sender.at_once(call, self)

    async def propose(self, request: IdeationRequest) -> Reply:
        """Return the recorded ideas; see `_recorded`."""
        return self._reply(self._recorded(request, "ideas"))

    async def write(self, request: KernelRequest) -> Reply:
        """Return the recorded kernel; see `_recorded`."""
        found = self._recorded(request, f"a kernel of {request.idea.title!r}")
        reply = self._reply(found)
        if found.kernel and not _means(reply.text, request.bases, found.kernel):
            # its edits are of a source that this search has not: what they made of that one is the answer
            whole = json.dumps({"source": found.kernel, "notes": "the recorded edits, applied"})
            return dataclasses.replace(reply, text=whole, is_truncated=False)
        return reply

    def _recorded(self, request: IdeationRequest | KernelRequest, what: str) -> RecordedCall:
        """Return the recorded call.

        Raises:
            Unrecorded: there was none: one kernel fails, or one round has no ideas, and the search goes on.
            NotRecorded: the same where the answers are strict: the search ends.
        """
        call_id = _call_id()
        found = self._find(call_id, request)
        if found is None:
            error = NotRecorded if self._answers.is_strict else Unrecorded
            raise error(
                f"{self._answers.where}: holds no answer to {call_id} ({what}); "
                f"{option('replay_else')} names a model for such calls"
            )
        return found

    def _find(self, call_id: str, request: IdeationRequest | KernelRequest) -> RecordedCall | None:
        return self._answers.find(call_id, question_of(own_part(request)))

    def _reply(self, found: RecordedCall) -> Reply:
        """Return the recorded reply.

        Raises:
            ModelUnavailable: the recorded call failed.
        """
        usage = Usage.from_json(found.usage)
        if found.reply is None:
            if self._answers.is_asked_again(found.call_id):
                raise NoText(found.error, usage, advice=found.error)
            raise ModelUnavailable(found.error or f"{self._name}: this call failed", usage)
        return Reply(text=str(found.reply["text"]), usage=usage, is_truncated=bool(found.reply.get("is_truncated")))


def _means(text: str, bases: Sequence[str], kernel: str) -> bool:
    """Say whether a reply reads as this kernel where its edits are of `bases`."""
    try:
        return read_kernel(text, bases).source == kernel
    except UnreadableReply:
        return False


def _call_id() -> str:
    call = IN_HAND.get()
    if call is None:
        raise ModelError(f"{REPLAY}: answers calls of a search's journal alone")
    return call.call_id
