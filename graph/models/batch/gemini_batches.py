"""Gemini's batches: requests and answers lie in the batch itself, in the same order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from ridgeline.graph.models.batch.service import NAMED, UNREADABLE, BatchStage, Line, Result, Seen, stated_id

KEY = "key"
"""The key of a request's metadata under which its call's id lies; Gemini does not always give the metadata back."""
_STAGES = {
    "JOB_STATE_SUCCEEDED": BatchStage.ENDED,
    "JOB_STATE_PARTIALLY_SUCCEEDED": BatchStage.ENDED,
    "JOB_STATE_EXPIRED": BatchStage.EXPIRED,
    "JOB_STATE_CANCELLED": BatchStage.CANCELLED,
    "JOB_STATE_FAILED": BatchStage.FAILED,
}
_STATUS = {1: 409, 2: 500, 4: 504, 5: 404, 7: 403, 8: 429, 10: 409, 13: 500, 14: 503, 16: 401}
"""HTTP's words for gRPC's: https://grpc.io/docs/guides/status-codes/ ."""
_APART = ("contents", "generationConfig")


class GeminiBatches:
    """The batches of a `google.genai.Client` for one model."""

    def __init__(self, client: Any, model: str) -> None:
        self._batches = client.aio.batches
        self._model = model

    async def create(self, tag: str, lines: Sequence[Line]) -> str:
        job = await self._batches.create(
            model=self._model, src=[_request(line) for line in lines], config={"display_name": f"{NAMED}{tag}"}
        )
        return stated_id(job.name)

    async def find(self, tag: str, since: datetime) -> str | None:  # lists no order, and drops old ones by itself
        async for job in await self._batches.list(config={"page_size": 100}):
            if job.display_name == f"{NAMED}{tag}":
                return stated_id(job.name)
        return None

    async def look(self, batch_id: str, lines: Mapping[str, int]) -> Seen:
        job = await self._batches.get(name=batch_id)
        stage = _STAGES.get(job.state.name if job.state else "", BatchStage.WORKING)
        if stage is BatchStage.WORKING:
            return Seen(stage=stage, results={})
        responses = (job.dest.inlined_responses if job.dest else None) or []
        at = {line: call_id for call_id, line in lines.items()}
        results: dict[str, Result] = {}
        for line, response in enumerate(responses):
            try:
                call_id = (response.metadata or {}).get(KEY) or at.get(line)
                if call_id is not None:
                    results[call_id] = _result(response)
            except UNREADABLE:  # this call stays without an answer
                continue
        return Seen(stage=stage, results=results, reason=str(job.error.message if job.error else ""))


def _request(line: Line) -> dict[str, Any]:
    """Return the request as the client takes it: what lies beside the contents is part of its configuration."""
    config = dict(line.body.get("generationConfig") or {})
    config |= {name: value for name, value in line.body.items() if name not in _APART and value}
    return {"contents": line.body["contents"], "config": config, "metadata": {KEY: line.call_id}}


def _result(response: Any) -> Result:
    if response.response is not None:
        body: str = response.response.model_dump_json(by_alias=True, exclude_none=True, exclude={"parsed"})
        return Result(body=body.encode())
    code = int(getattr(response.error, "code", None) or 0)
    message = str(getattr(response.error, "message", None) or "no answer")
    return Result(status=_STATUS.get(code, max(code, 400)), error=message)
