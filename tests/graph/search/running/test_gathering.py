"""Work done side by side when one part of it fails."""

from __future__ import annotations

import asyncio

import pytest

from ridgeline.graph.search.running.gathering import gather_or_cancel
from ridgeline.tools.errors import NotBegun, RidgelineError, StorageError


@pytest.mark.parametrize(
    ("error", "ends"), [(NotBegun("a stop was asked for"), "measured"), (StorageError("disk is full"), "cancelled")]
)
async def test_nothing_of_work_done_together_goes_on_after_an_error(error: RidgelineError, ends: str) -> None:
    """What had begun ends by itself at a stop, and is ended at any other error."""
    ended = []

    async def fail() -> None:
        raise error

    async def measure() -> None:
        try:
            await asyncio.sleep(0.05)
        except asyncio.CancelledError:
            await asyncio.sleep(0)
            ended.append("cancelled")
            raise
        ended.append("measured")

    with pytest.raises(type(error)):
        await gather_or_cancel(measure(), fail(), measure())
    assert ended == [ends, ends]
