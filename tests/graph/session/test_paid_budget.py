"""Budgets of a search whose model is a real client at a loopback server: soft nowhere, resumable everywhere."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.graph.conftest import write_problem
from tests.graph.loopback import Answer, Server, serve
from tests.graph.memory_engine import MemoryEngine
from tests.graph.models.asked import FAST
from tests.graph.session.test_killed import reply_to
from tests.graph.session.test_session import SETTINGS

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.calls.journal import Journal
from ridgeline.checkpoints.recording.file import read_recording
from ridgeline.graph.models.allowance import prompt_tokens
from ridgeline.graph.models.registry import make_model
from ridgeline.graph.session.options import SearchRequest
from ridgeline.graph.session.outputs import SearchResult
from ridgeline.graph.session.session import run_search
from ridgeline.problems.spec import Budget
from ridgeline.tools.records.vocabulary import Origin

Events = list[dict[str, Any]]


@pytest.fixture
def search(tmp_path: Path) -> Callable[..., Any]:
    problem = write_problem(tmp_path / "problem", search=SETTINGS | {"rounds": 2})

    async def run(
        server: Server, budget: Budget, *, resume: bool = False, events: Events | None = None
    ) -> SearchResult:
        model = make_model(f"openai:loop@{server.url}/v1", policy=FAST)
        request = SearchRequest(problem=problem, run_dir=tmp_path / "run", budget=budget, resume=resume)
        heard: Events = [] if events is None else events
        return await run_search(request, engine=MemoryEngine(), models=[model], on_event=heard.append)  # type: ignore[arg-type]

    return run


async def test_a_limit_on_time_ends_a_search_whose_server_hangs(search: Callable[..., Any], tmp_path: Path) -> None:
    done = threading.Event()

    def script(number: int, request: dict[str, Any]) -> Answer:
        if "Write one complete kernel" in request["prompt"]:
            done.wait(240)
        return Answer(reply_to(request))

    with serve(script) as server:
        began = time.monotonic()
        result = await search(server, Budget(wall_s=2))
        took_s = time.monotonic() - began
        done.set()
        assert result.state == "budget"
        assert "2 s of the budget's wall_s are used" in result.reason
        assert took_s < 60  # the server hangs for four minutes
        after = await search(server, Budget(wall_s=100), resume=True)
    assert after.state == "finished"
    with Archive.open(tmp_path / "run", create=False) as archive:
        written = {c.id for c in archive.candidates(origin=Origin.MODEL)}
    assert written == {f"r{r}i{i}v{v}a0" for r in (1, 2) for i in (0, 1) for v in (0, 1)}


async def test_a_limit_on_tokens_ends_a_search_before_the_call_that_does_not_fit(
    search: Callable[..., Any], tmp_path: Path
) -> None:
    def script(number: int, request: dict[str, Any]) -> Answer:
        return Answer(reply_to(request), input_tokens=len(request["prompt"]) // 3, output_tokens=200)

    events: Events = []
    with serve(script) as server:
        result = await search(server, Budget(tokens=9000), events=events)
        first = len(server.requests)
        assert result.state == "budget"
        assert "the budget's tokens" in result.reason
        longest = max(len(request["prompt"]) for request in server.requests) // 3 + 200
        with Archive.open(tmp_path / "run", create=False) as archive:
            totals = Journal(archive).totals()
        assert 9000 - longest <= totals.input_tokens + totals.output_tokens <= 9000 + longest
        after = await search(server, Budget(tokens=1_000_000), resume=True)
    assert after.state == "finished"
    prompts = [request["prompt"] for request in server.requests]
    assert len(set(prompts)) == len(prompts) == 2 + 8, "nothing was asked twice"
    assert first < len(prompts)


async def test_a_provider_that_asks_to_wait_longer_than_the_budget_ends_the_search_in_one_line(
    search: Callable[..., Any], tmp_path: Path
) -> None:
    limited = [True]

    def script(number: int, request: dict[str, Any]) -> Answer:
        if number and limited[0]:
            return Answer(status=429, headers={"Retry-After": "3600"})
        return Answer(reply_to(request))

    with serve(script) as server:
        began = time.monotonic()
        result = await search(server, Budget(wall_s=300))
        assert time.monotonic() - began < 30
        assert result.state == "budget"
        assert "takes the next request in 3,600 s" in result.reason and "\n" not in result.reason
        limited[0] = False
        after = await search(server, Budget(wall_s=300), resume=True)
    assert after.state == "finished"
    with Archive.open(tmp_path / "run", create=False) as archive:
        assert len(archive.candidates(origin=Origin.MODEL)) == 8


@pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": -9, "completion_tokens": -9, "total_tokens": -9}])
async def test_a_server_that_states_no_tokens_is_counted_by_the_lengths(
    search: Callable[..., Any], tmp_path: Path, usage: Any
) -> None:
    sent = []

    def script(number: int, request: dict[str, Any]) -> Answer:
        text = reply_to(request)
        sent.append(len(request["prompt"]) + len(text))
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        stated = {} if usage is None else {"usage": usage}
        whole = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], **stated}
        return Answer(body=json.dumps(whole).encode())

    with serve(script) as server:
        result = await search(server, Budget(tokens=5000))
    assert result.state == "budget" and "the budget's tokens" in result.reason
    with Archive.open(tmp_path / "run", create=False) as archive:
        totals = Journal(archive).totals()
    assert totals.input_tokens + totals.output_tokens == pytest.approx(sum(sent) / 3, rel=0.01)


async def test_a_count_beyond_all_replies_is_set_aside_and_what_was_sent_counts(
    search: Callable[..., Any], tmp_path: Path
) -> None:
    with serve(lambda _, request: Answer(reply_to(request), input_tokens=10**25)) as server:
        result = await search(server, Budget(tokens=5000))
    assert result.state == "budget"
    sent = prompt_tokens(server.requests[0]["prompt"])
    assert read_recording(tmp_path / "run").calls[0].usage["input_tokens"] == sent
