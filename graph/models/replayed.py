"""A model that answers from a recording: deterministic and free. It has the name of the model that it stands for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ridgeline.checkpoints.recording import question_of
from ridgeline.graph.models.batch.model import BatchModel
from ridgeline.graph.models.call_in_hand import IN_HAND
from ridgeline.graph.models.failures import ModelUnavailable, NoText
from ridgeline.graph.models.mailbox.model import LaterModel
from ridgeline.graph.models.requests import IdeationRequest, KernelModel, KernelRequest, Reply, Usage
from ridgeline.tools.errors import ModelError, NotRecorded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ridgeline.graph.models.pool import AnyModel
    from ridgeline.graph.models.recorded import Answers

REPLAY = "replay"


class ReplayedModel:
    """Implements `KernelModel` by the recorded answers; a call without one goes to `otherwise`, or ends the search."""

    def __init__(self, name: str, answers: Answers, otherwise: KernelModel | None = None) -> None:
        self._name, self._answers, self._otherwise = name, answers, otherwise
        if otherwise is not None and hasattr(otherwise, "tariff"):
            self.tariff = otherwise.tariff

    @property
    def name(self) -> str:
        """Return the name of the model whose answers these are."""
        return self._name

    async def propose(self, request: IdeationRequest) -> Reply:
        """Return the recorded ideas; see `_recorded`."""
        recorded = self._recorded(request.to_json())
        return recorded or await self._other(request).propose(request)

    async def write(self, request: KernelRequest) -> Reply:
        """Return the recorded kernel; see `_recorded`."""
        asked = {**request.to_json(), "idea": request.idea.model_dump(mode="json")}
        recorded = self._recorded(asked)
        return recorded or await self._other(request).write(request)

    def _recorded(self, asked: Mapping[str, Any]) -> Reply | None:
        """Return the recorded reply, or None.

        Raises:
            ModelUnavailable: the recorded call failed.
        """
        found = self._answers.find(_call_id(), question_of(asked))
        if found is None:
            return None
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
        raise NotRecorded(
            f"{self._answers.where}: holds no answer to {_call_id()} ({what}); "
            "name a model for such calls with --replay-else, or record more"
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


def _call_id() -> str:
    call = IN_HAND.get()
    if call is None:
        raise ModelError(f"{REPLAY}: answers calls of a search's journal alone")
    return call.call_id
