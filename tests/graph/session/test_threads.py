"""Work in a thread that a cancelled task waits for."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.graph.conftest import Search
from tests.graph.memory_engine import MemoryEngine
from tests.graph.scripted_model import ScriptedModel

from ridgeline.checkpoints.archive import Archive
from ridgeline.graph.search.rounds.stop_rules import Stop, tell_stop
from ridgeline.graph.session import last_record
from ridgeline.graph.session.session import run_search
from ridgeline.tools.machine.threads import run_whole
from ridgeline.tools.records.vocabulary import SearchOutcome

from .test_session import options


async def test_a_cancelled_task_ends_after_the_work_in_its_thread() -> None:
    begun, goes_on, ended = asyncio.Event(), threading.Event(), []
    loop = asyncio.get_running_loop()

    def work(name: str) -> None:
        loop.call_soon_threadsafe(begun.set)
        goes_on.wait(timeout=60)
        ended.append(name)

    task = asyncio.create_task(run_whole(work, "one"))
    await begun.wait()
    for _ in range(2):
        task.cancel()
        await asyncio.sleep(0.01)
        assert not task.done()
    goes_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == ["one"]


async def test_work_is_waited_for_where_every_task_is_cancelled() -> None:
    begun, goes_on = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def work() -> None:
        loop.call_soon_threadsafe(begun.set)
        goes_on.wait(timeout=60)

    task = asyncio.create_task(run_whole(work))
    await begun.wait()
    for each in asyncio.all_tasks() - {asyncio.current_task()}:
        each.cancel()
    await asyncio.sleep(0.05)
    assert not task.done()
    goes_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_what_the_work_gives_or_raises_is_the_tasks() -> None:
    assert await run_whole(divmod, 7, 3) == (2, 1)
    with pytest.raises(ZeroDivisionError):
        await run_whole(divmod, 7, 0)


async def test_a_search_that_is_cancelled_while_its_files_are_written_has_all_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, goes_on, write_result = asyncio.Event(), threading.Event(), last_record.write_result
    loop = asyncio.get_running_loop()

    def slow(*args: Any) -> Any:
        loop.call_soon_threadsafe(begun.set)
        goes_on.wait(timeout=60)
        return write_result(*args)

    monkeypatch.setattr(last_record, "write_result", slow)
    task = asyncio.create_task(run_search(options(tmp_path), engine=MemoryEngine(), models=[ScriptedModel()]))
    await begun.wait()
    task.cancel()
    await asyncio.sleep(0.05)
    goes_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    with Archive.open_read_only(tmp_path / "run") as archive:
        assert archive.run().state == "finished"
    assert (tmp_path / "run" / "report.html").is_file()


async def test_a_step_that_is_cancelled_while_it_stores_ends_when_it_has_stored(search: Search) -> None:
    context = search.context()
    other = sqlite3.connect(search.archive.path, isolation_level=None)
    try:
        other.execute("BEGIN IMMEDIATE")
        step = asyncio.create_task(tell_stop(context.archive, Stop(SearchOutcome.BUDGET, "the budget is spent")))
        await asyncio.sleep(0.05)
        step.cancel()
        await asyncio.sleep(0.05)
        assert not step.done()
        other.execute("ROLLBACK")
        with pytest.raises(asyncio.CancelledError):
            await step
    finally:
        other.close()
    assert search.archive.run().stop_reason == "the budget is spent"
