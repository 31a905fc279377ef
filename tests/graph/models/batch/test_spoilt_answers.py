"""Answers of a batch interface that have another form: what they cost, and what they do not."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from tests.graph.loopback import Answer
from tests.graph.loopback_batches import serve_batches
from tests.graph.models.asked import KERNEL
from tests.graph.models.batch.test_batches import PROVIDERS, session

from ridgeline.graph.models.failures import ModelUnavailable

pytestmark = pytest.mark.usefixtures("keys")

DEEP = "[" * 100_000 + "]" * 100_000


@pytest.mark.parametrize(
    "spoilt",
    [
        '{"custom_id": "r1i0v0a0:write", "response": {"status_code": 1e999}}',
        '{"custom_id": "r1i0v0a0:write", "response": {"status_code": 200, "body": ' + DEEP + "}}",
        '{"custom_id": "r1i0v0a0:write", "response": [1]}',
        '{"custom_id": ["r1i0v0a0:write"], "response": {"status_code": 200, "body": {}}}',
    ],
)
async def test_a_line_that_cannot_be_read_costs_its_own_call_alone(spoilt: str, tmp_path: Path) -> None:
    def filled(content: bytes) -> bytes:
        is_first = len(server.batches) == 1
        kept = [line for line in content.splitlines() if not is_first or b"r1i0v0a0" not in line]
        return b"\n".join([*([spoilt.encode()] if is_first else []), *kept])

    calls = [f"r1i{n}v0a0:write" for n in range(3)]
    with serve_batches(lambda n, line: Answer(KERNEL)) as server, session(tmp_path, server) as search:
        server.fills = filled
        sources = await asyncio.gather(*(search.write(call_id) for call_id in calls))
    assert sources == [json.loads(KERNEL)["source"]] * 3
    assert sorted(server.asked) == [calls[0], *calls], "one call is asked again"


async def test_an_answer_that_its_client_cannot_read_is_not_asked_for_outside_of_the_batch(tmp_path: Path) -> None:
    body = {"id": "x", "choices": "busy"}
    spoilt = {"custom_id": "r1i0v0a0:write", "response": {"status_code": 200, "body": body}}
    with serve_batches(lambda n, line: Answer(KERNEL)) as server, session(tmp_path, server) as search:
        server.fills = lambda content: json.dumps(spoilt).encode()
        with pytest.raises(ModelUnavailable, match="no usable answer"):
            await search.write("r1i0v0a0:write")
        [call] = search.journal.calls("failed")
    assert call.input_tokens > 0
    assert server.asked == ["r1i0v0a0:write"]
    assert not any("completions" in path for _, path in server.seen)


async def test_errors_of_another_form_cost_no_answer(tmp_path: Path) -> None:
    with serve_batches(lambda n, line: Answer(KERNEL)) as server, session(tmp_path, server) as search:
        server.shows = lambda shown: shown | {"errors": {"object": "list", "data": ["?"]}}
        assert await search.write("r1i0v0a0:write") == json.loads(KERNEL)["source"]


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_batch_without_an_id_is_no_batch(provider: str, tmp_path: Path) -> None:
    with serve_batches(lambda n, line: Answer(KERNEL)) as server, session(tmp_path, server, provider) as search:
        server.shows = lambda shown: {name: value for name, value in shown.items() if name not in ("id", "name")}
        with pytest.raises(ModelUnavailable, match="has no id of the batch"):
            await search.write("r1i0v0a0:write")
        assert not any(batch.id for batch in search.calls.batches())


async def test_an_answer_of_gemini_that_no_file_can_hold_costs_its_own_call_alone(tmp_path: Path) -> None:
    def shown(batch: dict[str, Any]) -> dict[str, Any]:
        output = batch["metadata"].get("output")
        if output and len(server.batches) == 1:
            first = output["inlinedResponses"]["inlinedResponses"][0]
            first["response"]["candidates"][0]["content"]["parts"][0]["text"] = "half a pair: \ud800"
        return batch

    calls = [f"r1i{n}v0a0:write" for n in range(3)]
    with (
        serve_batches(lambda n, line: Answer(KERNEL)) as server,
        session(tmp_path, server, "google_genai") as search,
    ):
        server.shows = shown
        sources = await asyncio.gather(*(search.write(call_id) for call_id in calls))
    assert sources == [json.loads(KERNEL)["source"]] * 3
    assert len(server.asked) == 4, "one call is asked again"
