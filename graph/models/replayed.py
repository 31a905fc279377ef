"""A model that answers from a recording: deterministic and free. It has the name of the model that it stands for."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ridgeline.checkpoints.recording import question_of
from ridgeline.graph.models.batch.model import BatchModel
from ridgeline.graph.models.call_in_hand import IN_HAND
from ridgeline.graph.models.failures import ModelUnavailable, NoText, Unrecorded
from ridgeline.graph.models.mailbox.model import LaterModel
from ridgeline.graph.models.replies import UnreadableReply, read_kernel
from ridgeline.graph.models.requests import IdeationRequest, KernelModel, KernelRequest, Reply, Usage, own_part
from ridgeline.tools.errors import ModelError, NotRecorded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ridgeline.checkpoints.recording import RecordedCall
    from ridgeline.graph.models.pool import AnyModel
    from ridgeline.graph.models.recorded import Answers

REPLAY = "replay"


class ReplayedModel:
    """Implements `KernelModel` by the recorded answers; a call without one goes to `otherwise`, or fails."""

    def __init__(self, name: str, answers: Answers, otherwise: KernelModel | None = None) -> None:
        """Without an answer and `otherwise` one call fails, and the search goes on; with strict answers the search ends."""
        self._name, self._answers, self._otherwise = name, answers, otherwise
        if otherwise is not None and hasattr(otherwise, "tariff"):
            self.tariff = otherwise.tariff

    @property
    def name(self) -> str:
        """Return the name of the model whose answers these are."""
        return self._name

    async def propose(self, request: IdeationRequest) -> Reply:
        """Return the recorded ideas, or another model's."""
        if (found := self._find(own_part(request))) is None:
            return await self._other(request).propose(request)
        return self._reply(found)

    async def write(self, request: KernelRequest) -> Reply:
        """Return the recorded kernel, or another model's."""
        found = self._find(own_part(request))
        if found is None:
            return await self._other(request).write(request)
        reply = self._reply(found)
        if found.kernel and not _means(reply.text, request.bases, found.kernel):
            # its edits are of a source that this search has not: what they made of that one is the answer
            whole = json.dumps({"source": found.kernel, "notes": "the recorded edits, applied"})
            return dataclasses.replace(reply, text=whole, is_truncated=False)
        return reply

    def _find(self, asked: Mapping[str, Any]) -> RecordedCall | None:
        return self._answers.find(_call_id(), question_of(asked))

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

    def _other(self, request: IdeationRequest | KernelRequest) -> KernelModel:
        if self._otherwise is not None:
            return self._otherwise
        what = "ideas" if isinstance(request, IdeationRequest) else f"a kernel of {request.idea.title!r}"
        error = NotRecorded if self._answers.is_strict else Unrecorded
        raise error(
            f"{self._answers.where}: holds no answer to {_call_id()} ({what}); "
            "--replay-else names a model for such calls"
        )


def make_replayed(names: Sequence[str], answers: Answers, otherwise: AnyModel | None) -> list[ReplayedModel]:
    """Return a model for each recorded name.

    Raises:
        ModelError: `otherwise` is a mailbox or a batch.
    """
    if isinstance(otherwise, LaterModel | BatchModel):
        raise ModelError(
            f"{otherwise.name}: a replay waits for nobody; name a model with --replay-else that answers at once"
        )
    return [ReplayedModel(name, answers, otherwise) for name in names]


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
