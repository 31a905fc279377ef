"""Which branch asks for the repair of an error, and how long the others wait for it."""

from __future__ import annotations

import asyncio
import time

import pytest

from ridgeline.graph.search.sibling_repairs import SiblingRepairs
from ridgeline.tools.errors import NotBegun


async def test_the_first_branch_asks_and_the_others_get_what_it_became() -> None:
    repairs = SiblingRepairs()
    assert repairs.begin("1: lost", "r1i0v0")
    assert repairs.begin("1: lost", "r1i0v0"), "a resumed step of the same branch"
    assert not repairs.begin("1: lost", "r1i0v1")
    assert repairs.begin("1: other", "r1i1v0")
    waiting = asyncio.create_task(repairs.outcome("1: lost"))
    await asyncio.sleep(0.01)
    assert not waiting.done()
    repairs.end("r1i0v0", "r1i0v0a1")
    assert await waiting == "r1i0v0a1" == repairs.repaired("1: lost")
    assert repairs.repaired("1: other") is None


async def test_a_repair_that_failed_or_was_never_begun_is_not_waited_for() -> None:
    repairs = SiblingRepairs()
    assert await repairs.outcome("1: lost") is None
    repairs.begin("1: lost", "r1i0v0")
    waiting = asyncio.create_task(repairs.outcome("1: lost"))
    await asyncio.sleep(0.01)
    repairs.end("r1i0v1")
    repairs.end("r1i0v0")
    assert await waiting is None
    assert repairs.begin("1: lost", "r1i0v1"), "its turn is free again"


async def test_a_wait_has_an_end_and_a_stop_ends_it_at_once() -> None:
    repairs = SiblingRepairs(most_wait_s=0.05)
    repairs.begin("1: lost", "r1i0v0")
    began = time.monotonic()
    assert await repairs.outcome("1: lost") is None
    assert time.monotonic() - began < 5
    stopped = SiblingRepairs(is_stopping=lambda: True)
    stopped.begin("1: lost", "r1i0v0")
    with pytest.raises(NotBegun):
        await stopped.outcome("1: lost")
