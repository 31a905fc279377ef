"""Answers that their client cannot read: what is sent in their place."""

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
