"""A model that answers from a recording: deterministic and free. It has the name of the model that it stands for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ridgeline.checkpoints.recording import question_of
from ridgeline.graph.models.call_in_hand import IN_HAND
from ridgeline.graph.models.failures import ModelUnavailable, NoText
from ridgeline.graph.models.requests import IdeationRequest, KernelRequest, Reply, Usage
from ridgeline.tools.errors import ModelError, NotRecorded

if TYPE_CHECKING:
    from ridgeline.checkpoints.recording import RecordedCall
    from ridgeline.graph.models.pool import AnyModel
    from ridgeline.graph.models.recorded import Answers

REPLAY = "replay"


class ReplayedModel:
    """Implements `KernelModel` by the recorded answers; `otherwise` is the model for calls that have none, if any."""

    def __init__(self, name: str, answers: Answers, otherwise: AnyModel | None = None) -> None:
        self._name, self._answers, self.otherwise = name, answers, otherwise
        if otherwise is not None and hasattr(otherwise, "tariff"):
            self.tariff = otherwise.tariff

    @property
    def name(self) -> str:
        """Return the name of the model whose answers these are."""
        return self._name

    def answering(self, call_id: str, request: IdeationRequest | KernelRequest) -> AnyModel:
        """Return the model that a call goes to: this one, or `otherwise` where the call was not recorded."""
        is_recorded = self._answers.find(call_id, question_of(_stated(request))) is not None
        return self if is_recorded or self.otherwise is None else self.otherwise

    async def propose(self, request: IdeationRequest) -> Reply:
        """Return the recorded ideas; see `_recorded`."""
        return self._recorded(request, "ideas")

    async def write(self, request: KernelRequest) -> Reply:
        """Return the recorded kernel; see `_recorded`."""
        return self._recorded(request, f"a kernel of {request.idea.title!r}")

    def _recorded(self, request: IdeationRequest | KernelRequest, what: str) -> Reply:
        """Return the recorded reply.

        Raises:
            ModelUnavailable: the recorded call failed.
            NotRecorded: there was no such call.
        """
        found = self._answers.find(_call_id(), question_of(_stated(request)))
        if found is None:
            raise NotRecorded(
                f"{self._answers.where}: holds no answer to {_call_id()} ({what}); "
                "name a model for such calls with --replay-else, or record more"
            )
        return self._reply(found)

    def _reply(self, found: RecordedCall) -> Reply:
        usage = Usage.from_json(found.usage)
        if found.reply is None:
            if self._answers.is_asked_again(found.call_id):
                raise NoText(found.error, usage, advice=found.error)
            raise ModelUnavailable(found.error or f"{self._name}: this call failed", usage)
        return Reply(text=str(found.reply["text"]), usage=usage, is_truncated=bool(found.reply.get("is_truncated")))


def _stated(request: IdeationRequest | KernelRequest) -> Mapping[str, Any]:
    """Return a request as a journal holds it, as far as it is asked about."""
    idea = {"idea": request.idea.model_dump(mode="json")} if isinstance(request, KernelRequest) else {}
    return {**request.to_json(), **idea}


def _call_id() -> str:
    call = IN_HAND.get()
    if call is None:
        raise ModelError(f"{REPLAY}: answers calls of a search's journal alone")
    return call.call_id
