"""A replay whose unrecorded calls wait for a mailbox or a batch: measured anew, it goes on with more rounds."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.graph.loopback import Answer
from tests.graph.loopback_batches import serve_batches
from tests.graph.mailbox_agent import drop_answers, requests_in
from tests.graph.memory_engine import MemoryEngine
from tests.graph.scripted_model import ScriptedModel
from tests.graph.session.test_away import move
from tests.graph.session.test_killed import reply_to
from tests.graph.session.test_session import options

from ridgeline.checkpoints.archive import FILE_NAME, Archive
from ridgeline.checkpoints.calls.journal import Journal
from ridgeline.checkpoints.recording.file import (
    KEPT_NAME,
    keep_recording,
    kept_recording,
    read_recording,
    write_recording,
)
from ridgeline.graph.session.options import SearchRequest
from ridgeline.graph.session.outputs import SearchResult
from ridgeline.graph.session.session import run_search
from ridgeline.tools.errors import NotRecorded, RunError

pytestmark = pytest.mark.long

NAMES = ["one:a", "two:b"]


@pytest.fixture
async def recorded(tmp_path: Path) -> Path:
    """A finished run of two models and two rounds."""
    await run_search(options(tmp_path), engine=MemoryEngine(), models=[ScriptedModel(name) for name in NAMES])
    return tmp_path / "run"


def measured_anew(recorded: Path, run_dir: Path, **fields: Any) -> SearchRequest:
    """Return a replay of the answers alone, with a round that was not recorded."""
    return SearchRequest(replay=recorded, run_dir=run_dir, settings={"rounds": 3}, **fields)


def calls_of(run: Path) -> dict[str, str]:
    """Return the model of each call by its id."""
    with Archive.open_read_only(run) as archive:
        return {call.call_id: call.model for call in Journal(archive).calls()}


def expect_third_round_elsewhere(recorded: Path, run: Path, asked: str) -> Counter[str]:
    """Check that two rounds have the recorded calls, and the third only those of `asked`; count the calls by model."""
    before, now = calls_of(recorded), calls_of(run)
    assert {call_id: model for call_id, model in now.items() if call_id in before} == before
    assert {model for call_id, model in now.items() if call_id not in before} == {asked}
    assert all(call_id.startswith("r3") for call_id in now if call_id not in before)
    return Counter(now.values())


async def test_calls_that_were_not_recorded_park_in_a_mailbox_and_are_taken_up(recorded: Path, tmp_path: Path) -> None:
    run, parked = tmp_path / "again", 0
    result = await run_search(measured_anew(recorded, run, replay_else="mailbox", park=True), engine=MemoryEngine())
    while result.state == "waiting":
        parked += 1
        assert {path.name[:2] for path in requests_in(run)} == {"r3"}
        assert drop_answers(run) == result.waiting
        again = SearchRequest(run_dir=run, resume=True, park=True)
        result = await run_search(again, engine=MemoryEngine())
    assert (result.state, result.rounds, result.certified, parked) == ("finished", 3, True, 2)
    asked = expect_third_round_elsewhere(recorded, run, "mailbox")
    counts = result.report["replay"]
    assert (counts["not_recorded"], counts["calls"]) == (asked["mailbox"], asked.total())
    assert (counts["other_prompts"], counts["other_questions"]) == (0, 0)
    assert len(read_recording(run).calls) == asked.total()


async def test_a_replay_waits_alive_for_a_mailbox(recorded: Path, tmp_path: Path) -> None:
    run, events = tmp_path / "again", list[Any]()

    async def answer() -> None:
        while True:
            await asyncio.sleep(0.1)
            await asyncio.to_thread(drop_answers, run)

    agent = asyncio.create_task(answer())
    try:
        asked = measured_anew(recorded, run, replay_else="mailbox:mine")
        result = await run_search(asked, engine=MemoryEngine(), on_event=events.append)
    finally:
        agent.cancel()
    assert (result.state, result.rounds) == ("finished", 3)
    expect_third_round_elsewhere(recorded, run, "mailbox:mine")
    waited = [call_id for event in events if event["event"] == "mailbox" for call_id in event["waiting"]]
    assert any(call_id.startswith("r3:ideate:") for call_id in waited)


async def test_calls_that_were_not_recorded_go_into_batches(recorded: Path, tmp_path: Path) -> None:
    run = tmp_path / "again"
    with serve_batches(lambda _, line: Answer(reply_to(line), input_tokens=1000, output_tokens=200)) as server:
        name = f"openai:loop@{server.url}/v1?batch"
        result = await run_search(measured_anew(recorded, run, replay_else=name), engine=MemoryEngine())
        asked = expect_third_round_elsewhere(recorded, run, name)
        assert (result.state, result.rounds) == ("finished", 3)
        assert len(server.asked) == asked[name] == result.report["replay"]["not_recorded"]


async def test_a_replay_that_ended_at_a_call_goes_on_with_a_mailbox(recorded: Path, tmp_path: Path) -> None:
    run = tmp_path / "again"
    with pytest.raises(NotRecorded, match="; replay_else names a model"):
        await run_search(measured_anew(recorded, run, replay_strict=True), engine=MemoryEngine())
    again = SearchRequest(run_dir=run, resume=True, park=True, replay_else="mailbox")
    result = await run_search(again, engine=MemoryEngine())
    assert (result.state, result.waiting) == ("waiting", len(requests_in(run)))
    assert json.loads((run / "result.json").read_text())["replay"]["otherwise"] == "mailbox"


async def test_a_parked_replay_takes_answers_up_where_its_device_is_not(recorded: Path, tmp_path: Path) -> None:
    run = tmp_path / "again"
    await run_search(measured_anew(recorded, run, replay_else="mailbox", park=True), engine=MemoryEngine())
    move(run, "elsewhere-9")
    assert drop_answers(run) == 1
    result = await run_search(SearchRequest(run_dir=run, resume=True, park=True))
    assert (result.state, result.waiting, result.unjudged) == ("waiting", len(requests_in(run)), 0)
    assert all("write" in path.name for path in requests_in(run))


@pytest.mark.parametrize("is_file", [True, False], ids=["file", "run"])
async def test_a_parked_replay_that_was_moved_goes_on_without_what_it_replays(
    recorded: Path, tmp_path: Path, is_file: bool
) -> None:
    source, run, moved = recorded, tmp_path / "again", tmp_path / "elsewhere" / "run"
    if is_file:
        source = tmp_path / "recorded.jsonl"
        write_recording(recorded, source)
    await run_search(measured_anew(source, run, replay_else="mailbox", park=True), engine=MemoryEngine())
    moved.parent.mkdir()
    shutil.move(run, moved)
    source.unlink() if is_file else shutil.rmtree(source)
    result = await resumed_to_its_end(moved)
    assert (result.state, result.rounds, result.certified) == ("finished", 3, True)
    counts = result.report["replay"]
    assert (counts["from"], counts["run"], counts["other_questions"]) == (str(source), "run", 0)


async def test_what_a_killed_start_left_is_not_taken_for_what_a_new_replay_replays(
    recorded: Path, tmp_path: Path
) -> None:
    run, other = tmp_path / "again", tmp_path / "other"
    models = [ScriptedModel(name) for name in reversed(NAMES)]
    await run_search(options(other), engine=MemoryEngine(), models=models)
    run.mkdir()
    with Archive.open(run):  # as a kill leaves it between the recording and the search's own record
        keep_recording(read_recording(other / "run"), run, replaces=True)
    await run_search(measured_anew(recorded, run, replay_else="mailbox", park=True), engine=MemoryEngine())
    assert read_recording(run / KEPT_NAME) == read_recording(recorded)
    assert (await resumed_to_its_end(run)).state == "finished"


async def test_a_search_that_began_meanwhile_keeps_its_folder_as_it_is(recorded: Path, tmp_path: Path) -> None:
    run = tmp_path / "other" / "run"
    late = measured_anew(recorded, run).resolve(is_local=False).replay
    await run_search(options(run.parent), engine=MemoryEngine(), models=[ScriptedModel(NAMES[0])])
    assert late is not None
    with Archive.open(run, create=False) as archive:
        late.hand_over(run, archive, resumes=False)
    assert kept_recording(run) is None


async def test_a_parked_replay_of_an_earlier_version_goes_on_by_what_it_began_with(
    recorded: Path, tmp_path: Path
) -> None:
    run = tmp_path / "again"
    await run_search(measured_anew(recorded, run, replay_else="mailbox", park=True), engine=MemoryEngine())
    (run / KEPT_NAME).unlink()
    shutil.move(recorded, tmp_path / "gone")
    with pytest.raises(RunError, match="run: no such recording"):
        await run_search(SearchRequest(run_dir=run, resume=True, park=True), engine=MemoryEngine())
    shutil.move(tmp_path / "gone", recorded)
    assert (await resumed_to_its_end(run)).state == "finished"
    assert kept_recording(run)  # from here on it can be moved


async def test_a_replay_in_the_folder_of_one_that_was_killed_before_it_began_keeps_its_own_recording(
    recorded: Path, tmp_path: Path
) -> None:
    run = tmp_path / "again"
    with Archive.open(run / FILE_NAME):
        other = read_recording(recorded)
        keep_recording(dataclasses.replace(other, calls=other.calls[:1]), run, replaces=True)
    result = await run_search(measured_anew(recorded, run, replay_else="mailbox", park=True), engine=MemoryEngine())
    assert result.state == "waiting"
    assert len(read_recording(run / KEPT_NAME).calls) == len(other.calls)


async def resumed_to_its_end(run: Path) -> SearchResult:
    """Answer what a parked search asks for until it ends."""
    while True:
        assert drop_answers(run)
        result = await run_search(SearchRequest(run_dir=run, resume=True, park=True), engine=MemoryEngine())
        if result.state != "waiting":
            return result
