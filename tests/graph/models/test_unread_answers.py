"""Answers that their client cannot read: what is sent in their place, and that they are paid however their call ends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import FakeListChatModel
from tests.graph.loopback import Answer, serve
from tests.graph.models.asked import FAST, KERNEL, PROTOCOLS, asked, model_of
from tests.graph.requests_made import kernel

from ridgeline.graph.models.allowance import prompt_tokens
from ridgeline.graph.models.failures import ModelUnavailable
from ridgeline.graph.models.langchain import LangChainModel
from ridgeline.graph.models.prompts import render_request
from ridgeline.problems.spec import Budget
from ridgeline.tools.errors import ModelError, NotBegun, OutOfBudget, RidgelineError

pytestmark = pytest.mark.usefixtures("keys")
WRITE = "r1i0v0a0:write"
UNREAD = b"<html>busy</html>"


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_stored_answer_that_cannot_be_read_fails_its_call_and_nothing_is_sent(
    protocol: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve(lambda n, request: Answer(KERNEL)) as server:
        monkeypatch.setattr("ridgeline.graph.models.registry.OPENAI_URL", f"{server.url}/v1")
        model = model_of(protocol, server)
        with asked(tmp_path, model) as given:
            # as a process leaves it that is killed between the answer's arrival and its reader
            given.journal.begin(WRITE, model=model.name, prompt_sha256="h", request={})
            given.texts.keep_answer(WRITE, UNREAD)
            with pytest.raises(ModelUnavailable, match="no usable answer"):
                await given.models.write(WRITE, model.name, kernel())
            [call] = given.journal.calls("failed")
    assert not server.requests
    assert call.input_tokens == prompt_tokens(render_request(kernel()))


@pytest.mark.parametrize(
    ("last", "ends"),
    [(Answer(status=401), ModelError), (Answer(status=429, headers={"retry-after": "5000"}), OutOfBudget)],
)
async def test_an_answer_that_cannot_be_read_is_paid_where_another_attempt_ends_the_search(
    last: Answer, ends: type[RidgelineError], tmp_path: Path
) -> None:
    with serve(lambda n, request: last if n else Answer(body=UNREAD)) as server:
        model = model_of("chat", server)
        with asked(tmp_path, model, budget=Budget(wall_s=100.0)) as given:
            with pytest.raises(ends):
                await given.models.write(WRITE, model.name, kernel())
            [call] = given.journal.calls("failed")
    sent = prompt_tokens(server.requests[0]["prompt"])
    assert len(server.requests) == 2
    assert call.input_tokens == sent > 0 and call.usd == pytest.approx(sent * 1.0 / 1e6)


async def test_an_answer_that_cannot_be_read_is_paid_where_a_stop_ends_the_pause_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def stopped(*_: Any, **__: Any) -> None:
        raise NotBegun("a stop was asked for")

    monkeypatch.setattr("ridgeline.graph.models.pacer.Pacer.pause", stopped)
    with serve(lambda n, request: Answer(body=UNREAD)) as server:
        model = model_of("chat", server)
        with asked(tmp_path, model) as given:
            with pytest.raises(NotBegun):
                await given.models.write(WRITE, model.name, kernel())
            [call] = given.journal.calls("failed")
    assert call.input_tokens == prompt_tokens(server.requests[0]["prompt"]) > 0


OF_NO_MODEL = {
    "a proxy's page": Answer(body=UNREAD, headers={"content-type": "text/html"}),
    "an error beside HTTP 200": Answer(body=b'{"error": {"message": "Provider returned error", "code": 502}}'),
    "events": Answer(body=b'data: {"id": 1}\n\n', headers={"content-type": "text/event-stream"}),
    "a list": Answer(body=b"[1, 2]"),
    "nothing": Answer(body=b"", headers={"content-type": "text/plain"}),
}


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("said", OF_NO_MODEL)
async def test_what_comes_in_the_place_of_an_answer_is_one_failed_attempt(
    said: str, protocol: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve(lambda n, request: Answer(KERNEL) if n else OF_NO_MODEL[said]) as server:
        monkeypatch.setattr("ridgeline.graph.models.registry.OPENAI_URL", f"{server.url}/v1")
        model = model_of(protocol, server)
        with asked(tmp_path, model) as given:
            assert (await given.models.write(WRITE, model.name, kernel())).notes == "short"
    assert len(server.requests) == 2


async def test_a_fault_of_what_keeps_an_answer_is_no_answer_that_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise ValueError("embedded null byte")

    monkeypatch.setattr("ridgeline.checkpoints.calls.kept_texts.KeptTexts.keep_answer", refuse)
    with serve(lambda n, request: Answer(KERNEL)) as server:
        model = model_of("chat", server)
        with asked(tmp_path, model) as given, pytest.raises(ModelUnavailable, match="embedded null byte"):
            await given.models.write(WRITE, model.name, kernel())
    assert len(server.requests) == 1


class Faulty(FakeListChatModel):
    """A client that raises `fault` before it sends anything."""

    fault: Exception
    tries: int = 0

    def _call(self, *args: Any, **kwargs: Any) -> str:
        self.tries += 1
        raise self.fault


@pytest.mark.parametrize("fault", [TypeError("no include_raw"), AttributeError("no text"), KeyError("raw")])
async def test_an_error_without_an_answer_fails_its_call_at_the_first_attempt(fault: Exception, tmp_path: Path) -> None:
    chat = Faulty(responses=[""], fault=fault)
    model = LangChainModel("other:one", chat, price=None, policy=FAST)
    with pytest.raises(ModelUnavailable, match="no usable answer"):
        await model.write(kernel())
    assert chat.tries == 1
