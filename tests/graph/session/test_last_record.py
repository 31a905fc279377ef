"""What a session stores of its search: that it goes on, how it ended, and what its report says then."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from langgraph.runtime import RunControl
from tests.graph.cli.commands.show_words import asked_for
from tests.graph.memory_engine import MemoryEngine
from tests.graph.scripted_model import ScriptedModel
from tests.graph.session.test_session import options
from tests.graph.session.test_steering import stopped_after_one_round

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.report import outputs as report_outputs
from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.checkpoints.runs.folders import INTERRUPTED, state_now
from ridgeline.graph.cli.commands.show import execute
from ridgeline.graph.mcp.runs import read_status
from ridgeline.graph.models.requests import IdeationRequest
from ridgeline.graph.session.last_record import SessionRecord
from ridgeline.graph.session.session import run_search
from ridgeline.tools.errors import ModelError, StorageError
from ridgeline.tools.records.vocabulary import RunState

pytestmark = pytest.mark.long

ONE_ROUND: dict[str, Any] = {"rounds": 1}


def record_of(tmp_path: Path) -> RunRecord:
    with Archive.open_read_only(tmp_path / "run") as archive:
        return archive.run()


def page_of(tmp_path: Path) -> str:
    return (tmp_path / "run" / "report.html").read_text()


async def test_the_report_of_a_search_that_a_fault_ends_says_so_and_no_longer_that_it_goes_on(tmp_path: Path) -> None:
    await stopped_after_one_round(tmp_path)
    report, seen = tmp_path / "run" / "report.html", list[str]()

    def refused(request: IdeationRequest) -> dict[str, Any]:
        seen.append(report.read_text())
        raise ModelError("scripted: the key was refused")

    with pytest.raises(ModelError):
        await run_search(options(tmp_path, resume=True), engine=MemoryEngine(), models=[ScriptedModel(ideas=refused)])
    assert "was going on" in seen[0]
    page = report.read_text()
    assert "was going on" not in page and " · running at" not in page
    assert "interrupted, resumable; ended by: scripted: the key was refused" in page


async def test_the_report_of_a_search_that_is_cancelled_says_that_it_is_stopped(tmp_path: Path) -> None:
    await stopped_after_one_round(tmp_path)
    begun = asyncio.Event()

    def on_event(event: Any) -> None:
        if event["event"] == "round_started":
            begun.set()

    request = options(tmp_path, resume=True)
    searching = asyncio.ensure_future(
        run_search(request, engine=MemoryEngine(), models=[ScriptedModel()], on_event=on_event)
    )
    await begun.wait()
    searching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await searching
    page = (tmp_path / "run" / "report.html").read_text()
    assert "was going on" not in page and "stopped, and can be resumed" in page


@pytest.mark.parametrize("further", [1, 2])
async def test_the_end_of_a_search_that_is_cancelled_again_and_again_is_stored_whole(
    further: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stopped_after_one_round(tmp_path)
    begun, loop, leave = asyncio.Event(), asyncio.get_running_loop(), SessionRecord.leave

    def cancelled_again(record: SessionRecord, left: RunRecord) -> None:
        for _ in range(further):
            asyncio.run_coroutine_threadsafe(asyncio.sleep(0, searching.cancel()), loop).result(timeout=60)
        leave(record, left)

    monkeypatch.setattr(SessionRecord, "leave", cancelled_again)
    request = options(tmp_path, resume=True)
    searching = asyncio.ensure_future(
        run_search(
            request,
            engine=MemoryEngine(),
            models=[ScriptedModel()],
            on_event=lambda event: begun.set() if event["event"] == "round_started" else None,
        )
    )
    await begun.wait()
    searching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await searching
    assert record_of(tmp_path).state is RunState.STOPPED
    assert "was going on" not in page_of(tmp_path) and "stopped, and can be resumed" in page_of(tmp_path)


async def test_a_search_that_is_over_stays_so_where_its_session_fails_before_it_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await run_search(options(tmp_path, search=ONE_ROUND), engine=MemoryEngine(), models=[ScriptedModel()])
    page, steps = page_of(tmp_path), tmp_path / "run" / "search.sqlite"
    steps.write_bytes(b"no database at all" * 100)
    resumed = options(tmp_path, search=ONE_ROUND, resume=True, max_rounds=2)
    with pytest.raises(StorageError, match="the database is damaged"):
        await run_search(resumed, engine=MemoryEngine(), models=[ScriptedModel()])
    record = record_of(tmp_path)
    assert record.state is RunState.FINISHED and str(record.ended_by).startswith(f"{steps}: the database is damaged")
    assert page_of(tmp_path) == page, "it did not go on"
    assert read_status(tmp_path / "run").error == record.ended_by
    assert execute(asked_for(run=str(tmp_path / "run"), json=False, profile=None)) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("toy (run): finished")
    assert lines[1].startswith(f"its latest session failed: {steps}: the database is damaged")


async def test_a_search_with_nothing_left_to_do_stays_over_where_its_files_cannot_be_written(tmp_path: Path) -> None:
    await run_search(options(tmp_path, search=ONE_ROUND), engine=MemoryEngine(), models=[ScriptedModel()])
    best, page = tmp_path / "run" / "best.cpp", page_of(tmp_path)
    best.unlink()
    best.mkdir()
    resumed = options(tmp_path, search=ONE_ROUND, resume=True)
    with pytest.raises(StorageError, match=r"best\.cpp"):
        await run_search(resumed, engine=MemoryEngine(), models=[ScriptedModel()])
    record = record_of(tmp_path)
    assert record.state is RunState.FINISHED and "best.cpp" in str(record.ended_by)
    assert page_of(tmp_path) == page
    best.rmdir()
    assert (await run_search(resumed, engine=MemoryEngine(), models=[ScriptedModel()])).certified
    assert (record_of(tmp_path).state, record_of(tmp_path).ended_by) == ("finished", "")


@pytest.mark.parametrize("name", ["problem.h", "best.cpp"])
async def test_a_search_whose_files_cannot_be_written_is_interrupted_by_that(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await stopped_after_one_round(tmp_path)
    result = (tmp_path / "run" / "result.json").read_bytes()
    (tmp_path / "run" / name).unlink()
    (tmp_path / "run" / name).mkdir()
    with pytest.raises(StorageError, match=re.escape(name)):
        await run_search(options(tmp_path, resume=True), engine=MemoryEngine(), models=[ScriptedModel()])
    record = record_of(tmp_path)
    assert state_now(tmp_path / "run", record) == INTERRUPTED and name in str(record.ended_by)
    assert (tmp_path / "run" / "result.json").read_bytes() == result, "it is written last"
    capsys.readouterr()
    assert execute(asked_for(run=str(tmp_path / "run"), json=True, profile=None)) == 0
    assert json.loads(capsys.readouterr().out)["state"] == INTERRUPTED
    assert "interrupted, resumable; ended by: " in page_of(tmp_path) and "was going on" not in page_of(tmp_path)


async def test_the_report_that_a_kill_left_says_no_longer_that_the_search_goes_on_where_a_resume_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stopped_after_one_round(tmp_path)
    with Archive.open(tmp_path / "run") as archive:
        archive.save_run(RunRecord(state=RunState.RUNNING))
        report_outputs.renew_report(tmp_path / "run", archive)  # and there the process was killed
    assert "was going on" in page_of(tmp_path)
    (tmp_path / "run" / "search.sqlite").write_bytes(b"no database at all" * 100)
    with pytest.raises(StorageError, match="the database is damaged"):
        await run_search(options(tmp_path, resume=True), engine=MemoryEngine(), models=[ScriptedModel()])
    assert "was going on" not in page_of(tmp_path)
    assert "interrupted, resumable; ended by: " in page_of(tmp_path)


async def test_a_fault_is_told_and_stored_where_neither_report_nor_what_was_judged_can_be_read_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stopped_after_one_round(tmp_path)

    def refused(request: IdeationRequest) -> dict[str, Any]:
        with sqlite3.connect(tmp_path / "run" / "archive.sqlite") as archive:
            archive.execute("UPDATE evaluations SET record = '[]'")
        archive.close()
        raise ModelError("scripted: the key was refused")

    with pytest.raises(ModelError, match="the key was refused"):
        await run_search(options(tmp_path, resume=True), engine=MemoryEngine(), models=[ScriptedModel(ideas=refused)])
    record = record_of(tmp_path)
    assert (record.state, record.ended_by) == ("running", "scripted: the key was refused")
    assert record.wall_s


async def test_a_report_that_cannot_be_written_hides_no_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    await stopped_after_one_round(tmp_path)

    def full(*_: Any) -> None:
        raise StorageError("report.html: No space left on device")

    def refused(request: IdeationRequest) -> dict[str, Any]:
        monkeypatch.setattr(report_outputs, "end_report", full)
        raise ModelError("scripted: the key was refused")

    with pytest.raises(ModelError, match="the key was refused"):
        await run_search(options(tmp_path, resume=True), engine=MemoryEngine(), models=[ScriptedModel(ideas=refused)])
    assert record_of(tmp_path).ended_by == "scripted: the key was refused"
    assert "the report keeps what it said before the search ended" in caplog.text


async def test_a_stop_renders_the_report_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await stopped_after_one_round(tmp_path)
    rendered, render, stop = list[str](), report_outputs.render_report, RunControl()

    def noted(*given: Any, **named: Any) -> str:
        rendered.append(named["state_words"])
        return render(*given, **named)

    monkeypatch.setattr(report_outputs, "render_report", noted)
    result = await run_search(
        options(tmp_path, resume=True),
        engine=MemoryEngine(),
        models=[ScriptedModel()],
        stop=stop,
        on_event=lambda event: stop.request_drain("test") if event["event"] == "round_started" else None,
    )
    assert result.state is RunState.STOPPED
    assert [words.partition(" at 20")[0] for words in rendered] == ["running", "stopped, and can be resumed"]
