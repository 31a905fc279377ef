"""Which branch asks for the repair of an error, and how long the others wait for it."""

from __future__ import annotations

import asyncio
import time

import pytest

from ridgeline.graph.search.repairs.sibling_repairs import SiblingRepairs
from ridgeline.tools.errors import NotBegun

MODEL = "openai:o3"


async def test_the_first_branch_asks_and_the_others_get_what_it_became() -> None:
    repairs = SiblingRepairs()
    assert repairs.begin("1: lost", "r1i0v0", MODEL)
    assert repairs.begin("1: lost", "r1i0v0", MODEL), "a resumed step of the same branch"
    assert not repairs.begin("1: lost", "r1i0v1", MODEL)
    assert repairs.begin("1: other", "r1i1v0", MODEL)
    waiting = asyncio.create_task(repairs.outcome("1: lost", MODEL))
    await asyncio.sleep(0.01)
    assert not waiting.done()
    repairs.end("r1i0v0", "r1i0v0a1")
    assert await waiting == "r1i0v0a1" == repairs.repaired("1: lost")
    assert repairs.repaired("1: other") is None


async def test_a_repair_that_failed_or_was_never_begun_is_not_waited_for() -> None:
    repairs = SiblingRepairs()
    assert await repairs.outcome("1: lost", MODEL) is None
    repairs.begin("1: lost", "r1i0v0", MODEL)
    waiting = asyncio.create_task(repairs.outcome("1: lost", MODEL))
    await asyncio.sleep(0.01)
    repairs.end("r1i0v1")
    repairs.end("r1i0v0")
    assert await waiting is None
    assert repairs.begin("1: lost", "r1i0v1", MODEL), "its turn is free again"


async def test_a_wait_has_an_end_and_a_stop_ends_it_at_once() -> None:
    repairs = SiblingRepairs(most_wait_s=0.05)
    repairs.begin("1: lost", "r1i0v0", MODEL)
    began = time.monotonic()
    assert await repairs.outcome("1: lost", MODEL) is None
    assert time.monotonic() - began < 5
    stopped = SiblingRepairs(is_stopping=lambda: True)
    stopped.begin("1: lost", "r1i0v0", MODEL)
    with pytest.raises(NotBegun):
        await stopped.outcome("1: lost", MODEL)


@pytest.mark.parametrize(
    ("asked", "model", "waits"),
    [
        ("openai:o3", "openai:o3", True),
        ("openai:o3", "openai:o3?batch", True),
        ("openai:o3", "mailbox", True),
        ("mailbox", "mailbox:mine", True),
        ("mailbox", "openai:o3", False),
        ("mailbox", "openai:o3?batch", False),
        ("openai:o3?batch", "openai:o3?batch", False),
        ("openai:o3?batch", "mailbox", False),
    ],
)
async def test_what_takes_hours_is_waited_for_by_those_alone_whose_own_repair_takes_as_long(
    asked: str, model: str, waits: bool
) -> None:
    repairs = SiblingRepairs()
    repairs.begin("1: lost", "r1i0v0", asked)
    assert repairs.begin("1: lost", "r1i0v1", model) is not waits
    waiting = asyncio.create_task(repairs.outcome("1: lost", model))
    repairs.end("r1i0v1")
    await asyncio.sleep(0.01)
    assert waiting.done() is not waits
    repairs.end("r1i0v0", "r1i0v0a1")
    assert await waiting == ("r1i0v0a1" if waits else None)


async def test_those_who_do_not_wait_for_a_mailbox_wait_for_one_another() -> None:
    repairs = SiblingRepairs()
    assert repairs.begin("1: lost", "r1i0v0", "mailbox")
    assert repairs.begin("1: lost", "r1i0v1", MODEL)
    assert not repairs.begin("1: lost", "r1i0v2", MODEL)
    waiting = asyncio.create_task(repairs.outcome("1: lost", MODEL))
    await asyncio.sleep(0.01)
    repairs.end("r1i0v1", "r1i0v1a1")
    assert await waiting == "r1i0v1a1"
