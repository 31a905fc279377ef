"""A search replayed from a recorded run: the same decisions, nothing asked, nothing measured."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import runpy
import shutil
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.graph.cli.command_line import ridgeline
from tests.graph.memory_engine import MemoryEngine
from tests.graph.scripted_model import ScriptedModel, faster_each_round
from tests.graph.session.test_session import options

from ridgeline import search as ridgeline_search
from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.history.repeated_sources import repeated_sources
from ridgeline.checkpoints.recording.file import read_recording, write_recording
from ridgeline.checkpoints.result import build_result, read_schema
from ridgeline.graph import cli
from ridgeline.graph.models.failures import ModelUnavailable
from ridgeline.graph.models.search_model import AskedAtOnce
from ridgeline.graph.nodes import tune
from ridgeline.graph.session import beginning, machine
from ridgeline.graph.session import options as options_module
from ridgeline.graph.session.options import SearchRequest
from ridgeline.graph.session.session import run_search
from ridgeline.tools.engine import CompileTask
from ridgeline.tools.errors import DeviceError, EngineError, InputError, NotRecorded, RunError
from ridgeline.tools.records.vocabulary import Origin

pytestmark = pytest.mark.long

decisions = runpy.run_path(str(Path(__file__).parents[3] / "benchmarks" / "decisions.py"))["decisions"]
IDEA = "hold the sum of a row in a register of each lane"


def kernel(request: Any) -> Any:
    """Return a kernel: one with tunables, one that has to be repaired, one that no answer came for, others faster."""
    answer = faster_each_round(request)
    if request.idea.title.startswith("foxtrot") and request.variation == 0:
        return ModelUnavailable("scripted: no answer in 1 s")
    if request.variation == 1 and not request.failed_source:
        return {"source": f"{answer['source']}// fails compile\n"}
    tunable = "#define N 1  // tune: N = 1 | 2 | 4\n// factor N 4 1.3\n"
    return {"source": f"{tunable}{answer['source']}"}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of two models, with tuning, repairs, and an idea and a seed that came while it ran."""
    folder = tmp_path_factory.mktemp("recorded")
    with ThreadPoolExecutor(1) as executor:
        return executor.submit(asyncio.run, a_recorded_search(folder)).result()


async def a_recorded_search(folder: Path) -> Path:
    (folder / "mine.cpp").write_text("// mine\n// speed 1.9\n")

    def on_event(event: Any) -> None:
        if event["event"] == "round_started" and event["round"] == 1:
            assert cli.main(["idea", str(folder / "run"), IDEA]) == 0
            assert cli.main(["seed", str(folder / "run"), str(folder / "mine.cpp")]) == 0

    models = [ScriptedModel("one:a", kernel=kernel), ScriptedModel("two:b", kernel=kernel)]
    asked = options(folder, search={"rounds": 3, "tune_trials": 4}, rng_seed=7)
    result = await run_search(asked, engine=MemoryEngine(), models=models, on_event=on_event)
    assert result.certified
    return folder / "run"


def replay(path: Path, run_dir: Path, **given: Any) -> SearchRequest:
    return SearchRequest(replay=path, run_dir=run_dir, replay_timings=given.pop("replay_timings", True), **given)


@pytest.mark.thorough
async def test_two_replays_of_a_file_decide_as_the_recorded_search_did(
    recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "recorded.jsonl"
    write_recording(recorded, file)

    def is_missing(*_: object, **__: object) -> Any:
        raise DeviceError("this machine has neither the device nor a compiler nor a sandbox")

    for place, name in [(machine, "target_of"), (machine, "check_machine"), (machine, "open_engine")]:
        monkeypatch.setattr(place, name, is_missing)
    monkeypatch.setattr(options_module, "check_machine", is_missing)
    monkeypatch.setattr(beginning, "target_of", is_missing)
    results = [await run_search(replay(file, tmp_path / name)) for name in ("first", "second")]
    first, second, original = (decisions(run) for run in (tmp_path / "first", tmp_path / "second", recorded))
    assert first == second
    searched = [each for each in original["measured"] if each[1] != "certify"]
    assert first == {**original, "measured": searched}
    assert any(each[0].startswith("r2i0") for each in first["kernels"])
    assert any(each[2] == "failed" for each in first["calls"])
    assert {result.state for result in results} == {"finished"}
    report = json.loads((tmp_path / "first" / "result.json").read_text())
    jsonschema.validate(report, read_schema("result"))
    counts = {name: report["replay"][name] for name in ("other_prompts", "other_questions", "not_recorded")}
    assert counts == {"other_prompts": 0, "other_questions": 0, "not_recorded": 0}
    assert (report["replay"]["run"], report["replay"]["times"], report["tokens"]) == ("run", True, tokens_of(recorded))


def siblings(request: Any) -> Any:
    """Return the kernel of an idea, in each implementation with another value."""
    source = f"#define N 1  // tune: N = 1 | 2 | 4\n// factor N 2 1.1\n// {request.idea.title}\n// speed 1.2\n"
    return {"source": source.replace("N 1", f"N {1 << request.variation}", 1)}


@pytest.mark.parametrize(("is_older", "is_strict"), [(True, False), (True, True), (False, False)])
async def test_points_that_siblings_have_are_measured_where_they_were_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_older: bool, is_strict: bool
) -> None:
    """An older version measured them again."""
    asked = options(tmp_path, search={"rounds": 2, "tune_trials": 4}, rng_seed=7)
    with monkeypatch.context() as recorded:
        if is_older:
            recorded.setattr(tune, "_judged_elsewhere", lambda *_: [])
        await run_search(asked, engine=MemoryEngine(), models=[ScriptedModel("one:a", kernel=siblings)])
    with Archive.open_read_only(tmp_path / "run") as archive:
        repeated = repeated_sources(archive.candidates())
        assert any(archive.candidate(name).origin is Origin.TUNE for name in repeated) is is_older
    result = await run_search(replay(tmp_path / "run", tmp_path / "again", replay_strict=is_strict))
    original, again = decisions(tmp_path / "run"), decisions(tmp_path / "again")
    assert result.state == "finished"
    assert again == {**original, "measured": [each for each in original["measured"] if each[1] != "certify"]}


def tokens_of(run: Path) -> int:
    with Archive.open_read_only(run) as archive:
        return int(build_result(archive)["tokens"])


def test_replayed_times_are_named_and_certify_nothing(recorded: Path, tmp_path: Path) -> None:
    words = ["run", "--replay", str(recorded), "--replay-timings", "--run-dir", str(tmp_path / "again"), "--plain"]
    done = ridgeline(*words)
    assert done.returncode == 0, done.stderr
    out = " ".join(done.stdout.split())
    assert "note: nothing is certified, since every time is the recorded one" in out
    assert (
        "every time is the recorded one: nothing is built or run" in out
        and "eager PyTorch and the roofline floor are timed" not in out
    )
    assert "times are replayed: measured on " in out
    assert not (tmp_path / "again" / "certificate.json").exists()
    report = json.loads((tmp_path / "again" / "result.json").read_text())
    assert report["best"] is not None
    with Archive.open_read_only(recorded) as archive:
        run = archive.run()
    assert run.device is not None
    assert (report["replay"]["measured_on"], report["replay"]["measured_at"]) == (run.device.name, run.started_at)
    assert "times are replayed" in (tmp_path / "again" / "report.html").read_text()


def test_a_recording_is_replayed_from_a_program_as_from_the_command_line(
    recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = ridgeline_search(replay=recorded, replay_timings=True, run_dir=tmp_path / "again")
    assert (result.state, result.certified) == ("finished", False)
    assert decisions(tmp_path / "again")["ideas"] == decisions(recorded)["ideas"]
    with pytest.raises(RunError, match="rng_seed: a replay decides by the recorded one"):
        ridgeline_search(replay=recorded, rng_seed=1)
    with pytest.raises(RunError, match="belong to a replay"):
        ridgeline_search("quickstart", replay_strict=True)
    with pytest.raises(InputError, match="replay: must be a path, got 3"):
        ridgeline_search(replay=3)  # type: ignore[arg-type]
    shutil.copytree(recorded, tmp_path / "runs" / "toy-1")
    monkeypatch.chdir(tmp_path)
    named = ridgeline_search(replay="toy-1", replay_timings=True, replay_strict=True, rounds=1)
    assert (named.rounds, named.report["replay"]["run"], named.report["replay"]["strict"]) == (1, "toy-1", True)
    assert named.run_dir.parent == Path("runs")


async def test_answers_may_be_replayed_and_measured_here(recorded: Path, tmp_path: Path) -> None:
    engine = MemoryEngine()
    result = await run_search(replay(recorded, tmp_path / "again", replay_timings=False), engine=engine)
    assert (result.state, result.certified) == ("finished", True)
    assert engine.counts["BaselineTask"] > 0
    assert decisions(tmp_path / "again")["ideas"] == decisions(recorded)["ideas"]


async def test_a_call_that_was_not_recorded_stops_a_strict_replay_or_goes_to_a_named_model(
    recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    longer = {"rounds": 4}
    with pytest.raises(NotRecorded, match=r"run: holds no answer to r4:ideate:\d \(ideas\); replay_else names a model"):
        await run_search(
            replay(recorded, tmp_path / "again", replay_timings=False, replay_strict=True, settings=longer),
            engine=MemoryEngine(),
        )
    other, events = ScriptedModel("other:model"), list[Any]()

    monkeypatch.setattr(beginning, "make_models", lambda names, **_: [AskedAtOnce(other)])
    resumed = SearchRequest(run_dir=tmp_path / "again", resume=True, replay_else="other:model")
    result = await run_search(resumed, engine=MemoryEngine(), on_event=events.append)
    assert (result.state, result.rounds) == ("finished", 4)
    assert [request.round for request in other.proposals] == [4] * len(other.proposals)
    assert result.report["replay"]["not_recorded"] == len(other.proposals) + len(other.writes)
    warned = [e["message"] for e in events if e["event"] == "warning" and e["message"].startswith("replay: ")]
    assert len(warned) == 1
    assert "had no recorded answer" in warned[0]


async def test_a_measurement_that_was_not_recorded_stops_the_search(recorded: Path, tmp_path: Path) -> None:
    file = tmp_path / "recorded.jsonl"
    write_recording(recorded, file)
    lines = [line for line in file.read_text().splitlines() if '"what": "Timing"' not in line]
    file.write_text("\n".join(lines))
    with pytest.raises(NotRecorded, match=r"recorded.jsonl: the timing \(search\) of seed-naive was not recorded"):
        await run_search(replay(file, tmp_path / "again"))


async def test_kernels_that_the_engine_failed_on_fail_again(tmp_path: Path) -> None:
    class Fails(MemoryEngine):
        async def submit(self, task: Any) -> Any:
            if isinstance(task, CompileTask) and task.candidate.id == "r1i1v0a0":
                raise EngineError("the builder died")
            return await super().submit(task)

    await run_search(options(tmp_path), engine=Fails(), models=[ScriptedModel()])
    await run_search(replay(tmp_path / "run", tmp_path / "again"))
    with Archive.open_read_only(tmp_path / "again") as archive:
        assert [(f.candidate_id, f.reason) for f in archive.engine_failures()] == [
            ("r1i1v0a0", "the engine failed, the kernel may be sound: the builder died")
        ]


async def test_another_wording_of_the_prompts_is_counted_and_changes_no_answer(
    recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ridgeline.graph.models import journalled

    worded = journalled.render_request
    monkeypatch.setattr(journalled, "render_request", lambda request: f"In other words: {worded(request)}")
    events: list[Any] = []
    result = await run_search(replay(recorded, tmp_path / "again"), on_event=events.append)
    counts = result.report["replay"]
    assert (counts["other_prompts"], counts["other_questions"]) == (counts["calls"], 0)
    assert decisions(tmp_path / "again")["ideas"] == decisions(recorded)["ideas"]
    [said] = [e["message"] for e in events if e["event"] == "note" and e["message"].startswith("replay")]
    told = f"the wording of prompts has changed since it was recorded ({counts['calls']} of {counts['calls']} calls)"
    assert said == f"replay: {told}; the recorded answers count all the same"
    assert not [e for e in events if e["event"] == "warning" and "replay" in e["message"]], "nothing is wrong"


async def test_a_part_left_out_asks_something_else_and_says_so(recorded: Path, tmp_path: Path) -> None:
    without = {"without": ["memory", "tuning"]}
    result = await run_search(replay(recorded, tmp_path / "again", settings=without))
    assert result.report["without"] == ["memory", "tuning"]
    assert result.report["replay"]["other_questions"] > 0
    with Archive.open_read_only(tmp_path / "again") as archive:
        assert archive.candidates(origin=Origin.TUNE) == []


def test_a_recording_keeps_to_its_schema_and_holds_no_path_of_its_machine(recorded: Path, tmp_path: Path) -> None:
    file = tmp_path / "recorded.jsonl"
    assert cli.main(["export", str(recorded), "--replay", str(file)]) == 0
    jsonschema.Draft202012Validator.check_schema(read_schema("replay"))
    lines = jsonschema.Draft202012Validator(read_schema("replay"))
    for line in file.read_text().splitlines():
        lines.validate(json.loads(line))
    assert str(recorded.parent) not in file.read_text()
    assert read_recording(file) == read_recording(recorded)


def test_the_kernels_of_a_bank_come_from_the_recording(recorded: Path, tmp_path: Path) -> None:
    shutil.copytree(recorded, tmp_path / "run")
    with Archive.open(tmp_path / "run", create=False) as archive:
        seed = archive.candidate("seed-naive")
        archive.add_candidate(dataclasses.replace(seed, id="bank-1", origin=Origin.BANK))
    assert [each.id for each in read_recording(tmp_path / "run").given] == ["seed-naive", "bank-1"]


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda text: text.replace('"schema_version": 1', '"schema_version": 2', 1), "line 1: has schema 2"),
        (lambda text: text.replace('"schema_version": 1', '"schema_version": true', 1), "line 1: has schema True"),
        (lambda text: text.replace("ridgeline-replay", "notes", 1), "line 1: is no recording's"),
        (lambda text: text + "{", "is cut off; export the run again"),
        (lambda text: text[: text.index("\n", 500) - 9], r"line \d+: is cut off; export the run again"),
        (lambda text: text[:200], "line 1: is cut off; export the run again"),
        (lambda text: text.replace("\n", "\n{\n", 1), "line 2: is damaged; export the run again"),
        (lambda text: text.replace('"call_id"', '"id"', 1), "line 2: is damaged"),
        (lambda text: "", "is no recording"),
        (lambda text: "\x00", "is no recording"),
    ],
)
def test_a_spoiled_recording_is_one_line(recorded: Path, tmp_path: Path, spoil: Any, says: str) -> None:
    file = tmp_path / "recorded.jsonl"
    write_recording(recorded, file)
    file.write_text(spoil(file.read_text()))
    with pytest.raises(RunError, match=says) as told:
        read_recording(file)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"replay_timings": True}, "belong to a replay"),
        ({"replay": "run", "models": ("offline",)}, "a replay has the models of its run"),
        ({"replay": "nowhere"}, "nowhere: no such recording"),
        ({"replay": "run", "replay_else": "mailbox:a b"}, "write mailbox, or mailbox:NAME"),
        ({"replay": "run", "problem": "softmax"}, "recorded another reference"),
        ({"replay": "run", "settings": {"rounds": 0}}, "rounds"),
    ],
)
def test_a_replay_that_cannot_be_is_one_line(
    recorded: Path, tmp_path: Path, given: dict[str, Any], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(recorded.parent)
    with pytest.raises(InputError, match=says):
        SearchRequest(run_dir=tmp_path / "again", **given).resolve(is_local=False)
    assert not (tmp_path / "again").exists()


def test_a_replay_in_a_database_is_refused(recorded: Path, tmp_path: Path) -> None:
    sqlite3.connect(tmp_path / "other.sqlite").execute("CREATE TABLE a (b)").connection.close()
    with pytest.raises(RunError, match="holds a database, not a recording"):
        write_recording(recorded, tmp_path / "other.sqlite")
