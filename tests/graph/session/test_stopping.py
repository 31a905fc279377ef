"""A search that another process asks to stop."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from langgraph.runtime import RunControl

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.steering import Steering
from ridgeline.graph.search.events import ignore
from ridgeline.graph.session import stopping
from ridgeline.tools.errors import StorageError


async def test_a_stop_is_obeyed_although_the_archive_could_not_be_looked_into_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks, take = 0, Steering.take_stop

    def refused_at_first(steering: Steering, **given: Any) -> bool:
        nonlocal looks
        looks += 1
        if looks in (2, 3):  # the first look is for stops that were meant for an earlier session
            raise StorageError("database is locked")
        return take(steering, **given)

    monkeypatch.setattr(Steering, "take_stop", refused_at_first)
    monkeypatch.setattr(stopping, "LOOK_EVERY_S", 0.01)
    control = RunControl()
    with Archive.open(tmp_path / "archive.sqlite") as archive:
        async with stopping.obeying_stop(archive, control, since=stopping.now_in_utc(), on_event=ignore):
            Steering(archive).add_stop()
            for _ in range(500):
                if control.drain_requested:
                    break
                await asyncio.sleep(0.01)
    assert control.drain_requested and looks == 4
