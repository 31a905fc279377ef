"""An answer on its way: stored as it arrives, limited in length, with its key hidden."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
import sqlite3
import time
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import FakeListChatModel
from pydantic import SecretStr
from tests.graph.loopback import Answer, _body, serve
from tests.graph.models.asked import FAST, IDEAS, KERNEL, KEY, PROTOCOLS, asked, model_of
from tests.graph.requests_made import ideation, kernel

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.calls.journal import Journal
from ridgeline.checkpoints.calls.kept_texts import KeptTexts
from ridgeline.graph.models.failures import ModelUnavailable, ReplyTooLong
from ridgeline.graph.models.langchain import LangChainModel
from ridgeline.graph.models.prompts import render_request
from ridgeline.tools.errors import ModelError, RidgelineError

pytestmark = pytest.mark.usefixtures("keys")
WRITE = "r1i0v0a0:write"


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_an_answer_that_arrived_and_was_not_used_is_read_and_not_asked_again(
    protocol: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve(lambda n, request: Answer(KERNEL)) as server:
        monkeypatch.setattr("ridgeline.graph.models.registry.OPENAI_URL", f"{server.url}/v1")
        model = model_of(protocol, server)
        with asked(tmp_path, model) as given, monkeypatch.context() as patched:
            # as if the process had been killed between the answer's arrival and its first reader
            patched.setattr(given.journal, "finish", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                await given.models.write(WRITE, model.name, kernel())
            assert len(given.texts.answers(WRITE)) == 1
        with asked(tmp_path, model) as given:
            assert (await given.models.write(WRITE, model.name, kernel())).notes == "short"
            totals = given.journal.totals()
            assert given.texts.answers(WRITE) == [], "the reply has taken its place"
    assert len(server.requests) == 1
    assert (totals.repeated, totals.output_tokens) == (0, 20)


async def test_an_answer_that_no_reply_was_made_of_stays_for_a_reader(tmp_path: Path) -> None:
    with serve(lambda n, request: Answer("", finish_reason="content_filter")) as server:
        model = model_of("chat", server)
        with asked(tmp_path, model) as given, pytest.raises(Exception, match="nothing"):
            await given.models.write(WRITE, model.name, kernel())
        with asked(tmp_path, model) as given:
            assert json.loads(given.texts.answers(WRITE)[0])["choices"][0]["finish_reason"] == "content_filter"


async def test_each_prompt_is_stored_once_by_its_hash(tmp_path: Path) -> None:
    with serve(lambda n, request: Answer(KERNEL)) as server:
        model = model_of("chat", server)
        with asked(tmp_path, model) as given:
            for call_id in ("r1i0v0a0:write", "r1i0v1a0:write"):
                await given.models.write(call_id, model.name, kernel())
            hashes = {call.prompt_sha256 for call in given.journal.calls()}
            assert [given.texts.prompt(sha256) for sha256 in hashes] == [render_request(kernel())]
    with sqlite3.connect(tmp_path / "archive.sqlite") as rows:
        assert rows.execute("SELECT count(*) FROM prompts").fetchone() == (1,)


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_reply_of_38_mb_is_refused_by_name_within_seconds(
    protocol: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve(lambda n, request: Answer(KERNEL if n else "x" * 38_000_000)) as server:
        monkeypatch.setattr("ridgeline.graph.models.registry.OPENAI_URL", f"{server.url}/v1")
        model = model_of(protocol, server)
        with asked(tmp_path, model) as given:
            began = time.process_time()
            assert (await given.models.write(WRITE, model.name, kernel())).notes == "short"
            assert time.process_time() - began < 5
            (failed,) = given.journal.calls("failed")
    assert "400,000 characters was refused" in failed.error
    assert failed.output_tokens == 100_000, "what came of it is taken for paid"
    assert "be brief" in server.requests[1]["prompt"]
    assert (tmp_path / "archive.sqlite").stat().st_size < 2_000_000


async def test_a_reply_just_over_the_limit_is_refused_with_the_count_of_its_provider(tmp_path: Path) -> None:
    policy = type(FAST)(attempts=1, max_reply_chars=1000)
    with serve(lambda n, request: Answer("y" * 1001)) as server, pytest.raises(ReplyTooLong) as caught:
        await model_of("chat", server, policy).write(kernel())
    assert caught.value.usage.output_tokens == 20


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("status", [200, 400, 401, 429, 503])
async def test_a_key_that_a_server_says_back_reaches_no_text_of_ours(
    protocol: str,
    status: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, logger="ridgeline")
    monkeypatch.setattr("ridgeline.graph.models.pacer.PATIENCE_S", 0.0)
    answer = Answer(f"{KEY} {IDEAS}", status=status, error=f"not with the key {KEY}")
    with serve(lambda n, request: answer) as server:
        monkeypatch.setattr("ridgeline.graph.models.registry.OPENAI_URL", f"{server.url}/v1")
        model = model_of(protocol, server, type(FAST)(attempts=2, base_s=0.01))
        said = ""
        with asked(tmp_path, model) as given:
            try:
                await given.models.propose("r1:ideate:0", model.name, ideation())
            except RidgelineError as error:
                said = f"{error} {error.__cause__}"
    sent = json.dumps(server.requests[0]["headers"])
    assert KEY in sent, "the key was used"
    stored = await asyncio.to_thread(lambda: b"".join(path.read_bytes() for path in tmp_path.iterdir()))
    assert KEY not in said + caplog.text and KEY.encode() not in stored
    assert ("[key]" in said) is (status not in (200, 429)), "a server that is too busy is told in words of ours"


async def test_a_refused_key_is_told_without_the_key(tmp_path: Path) -> None:
    refused = pytest.raises(ModelError, match=r"the key was refused \(HTTP 401\)")
    with serve(lambda n, request: Answer(status=401, error=f"bad key {KEY}")) as server, refused as caught:
        await model_of("chat", server).write(kernel())
    assert KEY not in str(caught.value)


class Keyed(FakeListChatModel):
    """A client of another provider of LangChain's, whose transport is not ours."""

    api_key: SecretStr = SecretStr(KEY)
    fault: Exception | None = None

    def _call(self, *args: Any, **kwargs: Any) -> str:
        if self.fault:
            raise self.fault
        return super()._call(*args, **kwargs)


@pytest.mark.parametrize("fault", [None, ConnectionError(f"refused {KEY}"), ValueError(f"no answer to {KEY}")])
async def test_a_key_of_any_provider_is_hidden_in_replies_and_errors(fault: Exception | None) -> None:
    chat = Keyed(responses=[f"```cpp\n// {KEY}\n```"], fault=fault)
    model = LangChainModel("other:one", chat, price=None, policy=type(FAST)(attempts=1))
    try:
        said = (await model.write(kernel())).text
    except RidgelineError as error:
        said = str(error)
    assert "[key]" in said and KEY not in said


def test_prompts_and_answers_move_with_a_merged_archive(tmp_path: Path) -> None:
    from ridgeline.checkpoints.export import merge_archives
    from ridgeline.checkpoints.run_record import RunRecord

    with Archive.open(tmp_path / "one.sqlite") as archive:
        archive.save_run(RunRecord(search_id="s1"))
        Journal(archive).begin(WRITE, model="m", prompt_sha256="h", request={})
        KeptTexts(archive).keep_prompt("h", "the prompt")
        KeptTexts(archive).keep_answer(WRITE, b"{}")
    merge_archives(tmp_path / "all.sqlite", [tmp_path / "one.sqlite"])
    with Archive.open(tmp_path / "all.sqlite") as archive:
        assert KeptTexts(archive).prompt("h") == "the prompt"
        assert KeptTexts(archive).answers(f"s1/{WRITE}") == [b"{}"]


def packed(times: int = 1) -> bytes:
    """Return a kernel's answer, packed so often."""
    body = json.dumps(_body("/chat/completions", Answer(KERNEL))).encode()
    for _ in range(times):
        body = gzip.compress(body)
    return body


async def test_no_answer_is_asked_to_be_packed_and_one_that_is_packed_once_is_read() -> None:
    answer = Answer(headers={"content-encoding": "gzip"}, body=packed())
    with serve(lambda n, request: answer) as server:
        assert json.loads((await model_of("chat", server).write(kernel())).text)["notes"] == "short"
    assert server.requests[0]["headers"]["accept-encoding"] == "identity"


@pytest.mark.parametrize(
    ("encoding", "body", "says"),
    [
        ("gzip, gzip", packed(2), "packed as 'gzip, gzip'"),
        ("br", b"x", "packed as 'br'"),
        ("gzip", b"no gzip at all", "its packed body is damaged"),
    ],
)
async def test_an_answer_that_is_packed_otherwise_is_unusable_in_one_line(
    encoding: str, body: bytes, says: str
) -> None:
    answer = Answer(headers={"content-encoding": encoding}, body=body)
    with serve(lambda n, request: answer) as server, pytest.raises(ModelUnavailable, match=says) as caught:
        await model_of("chat", server).write(kernel())
    assert "\n" not in str(caught.value) and len(server.requests) == 1


async def test_a_small_body_that_unpacks_to_a_large_one_takes_no_more_than_a_reply_may() -> None:
    answer = Answer(headers={"content-encoding": "gzip"}, body=gzip.compress(bytes(200_000_000), 9))
    policy = type(FAST)(attempts=1, max_reply_chars=1000)
    with serve(lambda n, request: answer) as server:
        model = model_of("chat", server, policy)
        tracemalloc.start()
        try:
            with pytest.raises(ReplyTooLong):
                await model.write(kernel())
            assert tracemalloc.get_traced_memory()[1] < 16_000_000
        finally:
            tracemalloc.stop()
