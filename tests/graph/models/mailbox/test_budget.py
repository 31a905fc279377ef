"""A mailbox's requests beside a budget: they reserve nothing and have no deadline, and what their answers state counts."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from tests.graph.models.asked import journalled
from tests.graph.requests_made import kernel
from tests.graph.scripted_model import ScriptedModel

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.calls.journal import Journal
from ridgeline.graph.models.mailbox.mailbox import Mailbox
from ridgeline.graph.models.mailbox.model import LaterModel
from ridgeline.graph.models.pool import ModelPool
from ridgeline.problems.spec import Budget
from ridgeline.tools.errors import OutOfBudget

ID = "r1i0v0a0:write"
ANSWER = {"source": "int a;", "notes": "", "usage": {"input_tokens": 900, "output_tokens": 100}}


@pytest.mark.parametrize("name", ["mailbox", "mailbox:me"])
async def test_a_request_waits_past_a_budget_of_tokens_and_of_time(name: str, tmp_path: Path) -> None:
    with Archive.open(tmp_path / "archive.sqlite") as archive:
        journal, budget = Journal(archive), Budget(tokens=1, usd=0.001, wall_s=1)
        pool = ModelPool([LaterModel(name=name)])
        models = journalled(pool, journal, budget, wall_used_s=2.0)[0]
        asked = asyncio.create_task(models.write(ID, name, kernel()))
        while not journal.ids("waiting"):
            await asyncio.sleep(0.02)
            assert not asked.done()
        mailbox = Mailbox(journal)
        mailbox.answer(mailbox.find(ID), json.dumps(ANSWER).encode())
        assert (await asyncio.wait_for(asked, 20)).source == "int a;"


async def test_tokens_that_an_answer_states_leave_less_room_for_the_other_models(tmp_path: Path) -> None:
    with Archive.open(tmp_path / "archive.sqlite") as archive:
        journal = Journal(archive)
        pool = ModelPool([LaterModel(name="mailbox"), ScriptedModel("other")])
        models = journalled(pool, journal, Budget(tokens=1000))[0]
        request = Mailbox(journal).post(ID, LaterModel(name="mailbox"), kernel(), prompt="write", sha256="of write")
        assert request is not None
        Mailbox(journal).answer(request, json.dumps(ANSWER).encode())
        with pytest.raises(OutOfBudget, match="1,000 tokens of the 1,000 tokens"):
            await models.write("r1i1v0a0:write", "other", kernel())
