"""Real clients at loopback batch interfaces, through a journal: sent once, found again, paid at half the price."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.graph.loopback import Answer
from tests.graph.loopback_batches import BatchServer, Held, LostAnswer, serve_batches
from tests.graph.models.asked import FAST, IDEAS, KERNEL, journalled
from tests.graph.requests_made import ideation, kernel

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.calls.batched_calls import BatchedCalls
from ridgeline.checkpoints.calls.journal import Journal
from ridgeline.graph.models.batch import batches as batches_module
from ridgeline.graph.models.batch.batches import Batches
from ridgeline.graph.models.failures import ModelUnavailable
from ridgeline.graph.models.journalled import JournalledModels
from ridgeline.graph.models.later_replies import ReplyPending, Waiting
from ridgeline.graph.models.pool import ModelPool
from ridgeline.graph.models.registry import make_model
from ridgeline.problems.model_calls import PriceSettings
from ridgeline.problems.spec import Budget
from ridgeline.tools.errors import ModelError

pytestmark = pytest.mark.usefixtures("keys")

PROVIDERS = ["openai", "google_genai"]


@dataclass
class Session:
    """One session of a search that asks `model`."""

    name: str
    models: JournalledModels
    journal: Journal
    batches: Batches
    calls: BatchedCalls

    async def write(self, call_id: str, **changes: Any) -> str:
        request = dataclasses.replace(kernel(), **changes)
        return (await self.models.write(call_id, self.name, request)).source

    async def parked(self, *call_ids: str) -> None:
        """Ask for kernels as a parking search does, then send them."""
        for call_id in call_ids:
            with pytest.raises(ReplyPending):
                await self.write(call_id)
        await self.look()

    async def look(self) -> None:
        await self.batches.look(is_quiet=True, at_once=True)

    def place_earlier(self, *, seconds: float) -> None:
        """Let every batch have been placed so long ago."""
        placed_at = (datetime.now(UTC) - timedelta(seconds=seconds)).isoformat()
        with self.journal.archive.database.write() as rows:
            rows.execute(
                "UPDATE model_calls SET request = json_set(request, '$.batch.placed_at', :placed_at)",
                {"placed_at": placed_at},
            )


@contextmanager
def session(
    folder: Path,
    server: BatchServer,
    provider: str = "openai",
    *,
    model: str = "test-model",
    parks: bool = False,
    budget: Budget | None = None,
    wall_used_s: float = 0.0,
) -> Iterator[Session]:
    url = server.url if provider == "google_genai" else f"{server.url}/v1"
    name = f"{provider}:{model}@{url}?batch"
    prices = {f"{provider}:{model}": PriceSettings(input=1.0, output=10.0, cached_input=0.5)}
    pool = ModelPool([make_model(name, prices=prices, policy=FAST)])
    with Archive.open(folder / "archive.sqlite") as archive:
        journal = Journal(archive)
        models, later = journalled(pool, journal, budget, wall_used_s=wall_used_s, waiting=Waiting(is_parking=parks))
        yield Session(name, models, journal, later.batches, BatchedCalls(journal))


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_the_requests_of_a_round_go_in_one_batch_at_half_the_price(provider: str, tmp_path: Path) -> None:
    with serve_batches(lambda n, line: Answer(KERNEL)) as server, session(tmp_path, server, provider) as search:
        calls = [f"r1i{n}v0a0:write" for n in range(8)]
        sources = await asyncio.gather(*(search.write(call_id) for call_id in calls))
        totals, stored = search.journal.totals(), search.journal.stored(calls[0])
    assert sources == [json.loads(KERNEL)["source"]] * 8
    assert [sorted(line["call_id"] for line in batch.lines) for batch in server.batches] == [calls]
    assert (totals.calls, totals.waiting, totals.repeated) == (8, 0, 0)
    assert (totals.input_tokens, totals.output_tokens) == (800, 160)
    assert totals.usd == pytest.approx(8 * (100 * 1.0 + 20 * 10.0) / 1e6 / 2)
    assert stored is not None and stored["latency_s"] >= 0.4


@pytest.mark.parametrize(
    ("provider", "model"), [("openai", "o3"), ("openai", "gpt-4o"), ("google_genai", "gemini-2.5-pro")]
)
async def test_a_line_is_what_the_client_sends_alone(provider: str, model: str, tmp_path: Path) -> None:
    with (
        serve_batches(lambda n, line: Answer(IDEAS)) as server,
        session(tmp_path, server, provider, model=model) as search,
    ):
        found = await search.models.propose("r1:ideate:0", search.name, ideation())
    assert [idea.title for idea in found] == ["Fuse both passes"]
    body = server.batches[0].lines[0]["body"]
    assert "Unroll by four" in json.dumps(body)
    config = body.get("generationConfig", {})
    schema = body["response_format"]["json_schema"]["schema"] if provider == "openai" else config["responseJsonSchema"]
    assert "ideas" in schema["properties"]


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_later_session_takes_up_what_a_parked_one_sent_and_asks_nothing_again(
    provider: str, tmp_path: Path
) -> None:
    with serve_batches(lambda n, line: Answer(KERNEL)) as server:
        server.looks_needed = 2
        with session(tmp_path, server, provider, parks=True) as search:
            await search.parked("r1i0v0a0:write", "r1i1v0a0:write")
            assert [batch.id for batch in search.calls.batches()] == [
                "batches/batch0" if provider == "google_genai" else "batch0"
            ]
            await search.look()
            assert search.journal.totals().batched == 2
        with session(tmp_path, server, provider, parks=True) as search:
            await search.look()
            assert await search.write("r1i0v0a0:write")
        with session(tmp_path, server, provider, parks=True) as search:  # killed before it read the second answer
            assert await search.write("r1i1v0a0:write")
            assert search.journal.totals().repeated == 0
    assert len(server.asked) == 2


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_batch_whose_id_was_never_stored_is_found_by_its_tag(provider: str, tmp_path: Path) -> None:
    with serve_batches(lambda n, line: Answer(KERNEL)) as server:
        with session(tmp_path, server, provider, parks=True) as search:
            await search.parked("r1i0v0a0:write")
            tag = search.calls.batches()[0].tag
            search.calls.name(tag, "")  # as a kill between the answer and its storing leaves it
            search.journal.archive.database.first("SELECT 1")
            with search.journal.archive.database.write() as rows:
                rows.execute("UPDATE model_calls SET request = json_set(request, '$.batch.id', NULL)")
        with session(tmp_path, server, provider, parks=True) as search:
            await search.look()
            assert await search.write("r1i0v0a0:write")
    assert server.asked == ["r1i0v0a0:write"]


async def test_a_batch_that_was_never_made_is_made_once_its_provider_had_time_to_show_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = [True]
    with serve_batches(lambda n, line: Answer(KERNEL)) as server:
        server.refuses = lambda method, path: (
            Answer(status=502) if lost[0] and (method, path) == ("POST", "/v1/batches") else None
        )
        with session(tmp_path, server, parks=True) as search:
            await search.parked("r1i0v0a0:write")
            lost[0] = False
            await search.look()
            assert server.batches == [], "it may still appear"
            monkeypatch.setattr(batches_module, "SEEN_AFTER_S", 0.0)
            await search.look()
            assert server.asked == ["r1i0v0a0:write"]
            assert search.journal.totals().repeated == 0


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_batch_that_is_taken_in_after_a_long_upload_ended_without_an_answer_is_found(
    provider: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches_module, "SEEN_AFTER_S", 300.0)  # more than a busy machine takes here
    late: list[Held] = []

    def take_in_late(batch: Held) -> None:
        late.append(batch)
        server.batches.remove(batch)
        raise LostAnswer

    with (
        serve_batches(lambda n, line: Answer(KERNEL)) as server,
        session(tmp_path, server, provider, parks=True) as search,
    ):
        server.on_created = take_in_late
        await search.parked("r1i0v0a0:write")
        search.place_earlier(seconds=600)
        server.on_created = lambda batch: None
        await search.look()
        assert server.batches == [], "its upload took long, and the attempt has just ended: it may still appear"
        server.batches += late
        await search.look()
        assert await search.write("r1i0v0a0:write")
    assert server.asked == ["r1i0v0a0:write"]


async def test_a_batch_whose_creation_a_kill_cut_off_may_appear_until_that_would_have_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches_module, "LIMIT_S", 300.0)  # more than a busy machine takes here
    with serve_batches(lambda n, line: Answer(KERNEL)) as server, session(tmp_path, server, parks=True) as search:
        with pytest.raises(ReplyPending):
            await search.write("r1i0v0a0:write")
        search.calls.place("cut off", datetime.now(UTC).isoformat(), {"r1i0v0a0:write": {"tokens": 1, "usd": 0.0}})
        search.place_earlier(seconds=40)
        await search.look()
        assert server.batches == []
        search.place_earlier(seconds=400)
        await search.look()
        assert server.asked == ["r1i0v0a0:write"]


async def test_a_batch_that_appears_while_the_list_is_on_its_way_is_not_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow_list(method: str, path: str) -> None:
        if (method, path) == ("GET", "/v1/batches"):
            monkeypatch.setattr(batches_module, "SEEN_AFTER_S", 0.0)  # as if that time had passed meanwhile

    monkeypatch.setattr(batches_module, "SEEN_AFTER_S", 300.0)  # more than a busy machine takes here
    with serve_batches(lambda n, line: Answer(KERNEL)) as server, session(tmp_path, server, parks=True) as search:
        server.refuses = lambda method, path: Answer(status=504) if method == "POST" else None
        await search.parked("r1i0v0a0:write")
        server.refuses = slow_list
        await search.look()
        assert server.batches == []
        await search.look()
        assert server.asked == ["r1i0v0a0:write"]


async def test_single_failed_requests_are_asked_again_or_told_and_the_others_are_kept(tmp_path: Path) -> None:
    def script(number: int, line: dict[str, Any]) -> Answer:
        if line["call_id"] == "r1i1v0a0:write":
            return Answer(status=400, error="the prompt was flagged")
        if line["call_id"] == "r1i2v0a0:write" and len(server.batches) == 1:
            return Answer(status=503)
        return Answer(KERNEL)

    with serve_batches(script) as server, session(tmp_path, server) as search:
        calls = [search.write(f"r1i{n}v0a0:write") for n in range(3)]
        good, flagged, late = await asyncio.gather(*calls, return_exceptions=True)
        totals = search.journal.totals()
    assert good == late == json.loads(KERNEL)["source"]
    assert isinstance(flagged, ModelUnavailable) and str(flagged).endswith("did not answer: the prompt was flagged")
    assert [len(batch.lines) for batch in server.batches] == [3, 1]
    assert (totals.failed, totals.repeated) == (1, 1)


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_the_requests_of_an_expired_batch_are_asked_again(provider: str, tmp_path: Path) -> None:
    def script(number: int, line: dict[str, Any]) -> Answer:
        return Answer(status=408) if number and len(server.batches) == 1 else Answer(KERNEL)

    with serve_batches(script) as server, session(tmp_path, server, provider) as search:
        server.fates = {0: "expired"}
        await asyncio.gather(search.write("r1i0v0a0:write"), search.write("r1i1v0a0:write"))
        totals = search.journal.totals()
    in_time = 1 if provider == "openai" else 0  # Gemini gives nothing of an expired batch
    assert [len(batch.lines) for batch in server.batches] == [2, 2 - in_time]
    assert totals.repeated == 2 - in_time


@pytest.mark.parametrize(
    ("fate", "said"), [("cancelled", "its batch was cancelled"), ("failed", "bad line"), ("expired", "not in time")]
)
async def test_a_batch_that_ends_without_answers_is_told_in_one_line(fate: str, said: str, tmp_path: Path) -> None:
    with serve_batches(lambda n, line: Answer(status=408)) as server, session(tmp_path, server) as search:
        server.fates = dict.fromkeys(range(9), fate)
        with pytest.raises(ModelUnavailable, match=said) as caught:
            await search.write("r1i0v0a0:write")
        assert search.journal.totals().failed == 1
    assert "\n" not in str(caught.value)
    assert len(server.batches) == (FAST.attempts if fate == "expired" else 1)


async def test_a_refused_key_ends_the_search_and_a_server_without_batches_the_call(tmp_path: Path) -> None:
    with serve_batches(lambda n, line: Answer(KERNEL)) as server, session(tmp_path, server) as search:
        server.refuses = lambda method, path: Answer(status=401, error="invalid key")
        with pytest.raises(ModelError, match="the key was refused"):
            await search.write("r1i0v0a0:write")
        server.refuses = lambda method, path: Answer(status=404, error="not found")
        with pytest.raises(ModelUnavailable, match=r"models='openai:test-model@\S+/v1' asks without a batch"):
            await search.write("r1i1v0a0:write")
    assert server.batches == []


async def test_a_look_that_fails_is_no_news_and_the_next_one_finds_the_answer(tmp_path: Path) -> None:
    with serve_batches(lambda n, line: Answer(KERNEL)) as server, session(tmp_path, server) as search:
        server.refuses = lambda method, path: (
            Answer(status=500) if path == "/v1/batches/batch0" and len(server.seen) < 6 else None
        )
        assert await search.write("r1i0v0a0:write")
    assert len(server.seen) >= 6 and len(server.batches) == 1
