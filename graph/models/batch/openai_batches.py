"""OpenAI's batches: a file of requests, a batch of it, a file of answers and one of errors."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from ridgeline.graph.models.batch.service import NAMED, UNREADABLE, BatchStage, Line, Result, Seen, stated_id

TAG = "ridgeline"
"""The key of a batch's metadata under which its tag lies."""
CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"
_STAGES = {
    "completed": BatchStage.ENDED,
    "expired": BatchStage.EXPIRED,
    "cancelled": BatchStage.CANCELLED,
    "failed": BatchStage.FAILED,
}
_STATUS = {"batch_expired": 408, "batch_cancelled": 409}
"""HTTP's words for errors that OpenAI states without a response."""


class OpenAIBatches:
    """The batches of an `openai.AsyncOpenAI`, whose own retries are off."""

    def __init__(self, client: Any) -> None:
        self._client = client

    async def create(self, tag: str, lines: Sequence[Line]) -> str:
        content = b"".join(_line(line) for line in lines)
        file = await self._client.files.create(file=(f"{NAMED}{tag}.jsonl", content), purpose="batch")
        batch = await self._client.batches.create(
            input_file_id=stated_id(file.id),
            endpoint=_endpoint(lines[0].path),
            completion_window="24h",
            metadata={TAG: tag},
        )
        return stated_id(batch.id)

    async def find(self, tag: str, since: datetime) -> str | None:
        async for batch in self._client.batches.list(limit=100):  # the newest first
            if isinstance(batch.created_at, int | float) and batch.created_at < since.timestamp():
                return None
            if isinstance(batch.metadata, Mapping) and batch.metadata.get(TAG) == tag:
                return stated_id(batch.id)
        return None

    async def look(self, batch_id: str, lines: Mapping[str, int]) -> Seen:
        batch = await self._client.batches.retrieve(batch_id)
        stage = _STAGES.get(batch.status, BatchStage.WORKING)
        if stage is BatchStage.WORKING:
            return Seen(stage=stage, results={})
        results: dict[str, Result] = {}
        for file_id in (batch.error_file_id, batch.output_file_id):
            if file_id:
                results |= _results((await self._client.files.content(file_id)).content)
        reason, is_crowded = _errors(batch)
        return Seen(stage=stage, results=results, reason=reason, is_crowded=is_crowded)


def _errors(batch: Any) -> tuple[str, bool]:
    """Return why a batch failed, and whether it was for what else the account has in batches; no answer hangs on it."""
    try:
        errors = (batch.errors.data if batch.errors else None) or []
        reason = str(errors[0].message or errors[0].code) if errors else ""
        return reason, any(error.code == "token_limit_exceeded" for error in errors)
    except UNREADABLE:
        return "", False


def _line(line: Line) -> bytes:
    body = {name: value for name, value in line.body.items() if name != "stream"}  # a batch streams nothing
    url = _endpoint(line.path)
    return json.dumps({"custom_id": line.call_id, "method": "POST", "url": url, "body": body}).encode() + b"\n"


def _endpoint(path: str) -> str:
    return RESPONSES if path.endswith("/responses") else CHAT


def _results(content: bytes) -> dict[str, Result]:
    """Return the results in a file of answers or errors; a line that is none leaves its call without one."""
    found: dict[str, Result] = {}
    for text in content.splitlines():
        try:
            line = json.loads(text)
            found[str(line["custom_id"])] = _result(line)
        except UNREADABLE:
            continue
    return found


def _result(line: Mapping[str, Any]) -> Result:
    response = line.get("response") or {}
    body, status = response.get("body"), int(response.get("status_code") or 0)
    if status == 200:
        return Result(body=json.dumps(body).encode())
    error = line.get("error") or (body.get("error") if isinstance(body, dict) else None) or {}
    code = str(error.get("code"))
    return Result(status=status or _STATUS.get(code, 400), error=str(error.get("message") or code))
