"""A search that is told ideas, seeds and to stop, while it runs and while it is stopped."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from tests.graph.memory_engine import MemoryEngine
from tests.graph.scripted_model import ScriptedModel
from tests.graph.session.test_session import options

from ridgeline.checkpoints.archive import FILE_NAME, Archive
from ridgeline.checkpoints.history.progress import progress
from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.checkpoints.runs.folders import lock_run
from ridgeline.checkpoints.steering import Steering
from ridgeline.graph import cli
from ridgeline.graph.search.ideas.not_taken_up import not_taken_up
from ridgeline.graph.session.outputs import SearchResult
from ridgeline.graph.session.session import run_search
from ridgeline.graph.state import GRAPH_VERSION
from ridgeline.tools.records.vocabulary import Origin

pytestmark = pytest.mark.long

IDEA = "keep the sum of a row in a register of each lane"


async def steered(tmp_path: Path, at: str, *words: str, **given: Any) -> SearchResult:
    """Run a search to which a user types this command at the first event of this name."""
    typed = False

    def on_event(event: Any) -> None:
        nonlocal typed
        if event["event"] == at and not typed:
            typed = True
            assert cli.main([words[0], str(tmp_path / "run"), *words[1:]]) == 0

    model = given.pop("model", ScriptedModel())
    engine = given.pop("engine", MemoryEngine())
    return await run_search(options(tmp_path, **given), engine=engine, models=[model], on_event=on_event)


async def test_an_idea_enters_with_the_next_rounds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = ScriptedModel()
    await steered(tmp_path, "round_started", "idea", IDEA, model=model)
    assert "idea-1 enters with the next round" in capsys.readouterr().out
    with Archive.open_read_only(tmp_path / "run") as archive:
        assert [(idea.id, idea.mechanism) for idea in archive.ideas() if idea.model == "user"] == [("r2i0", IDEA)]
        assert len(archive.ideas(2)) == 2
        assert archive.candidates(idea_id="r2i0")
    assert IDEA in model.proposals[-1].user_ideas
    report = (tmp_path / "run" / "report.html").read_text()
    assert '<td class="small" data-name="by"><div>you' in report
    assert '<td class="small" data-name="by"><div>scripted' in report
    assert cli.main(["show", str(tmp_path / "run")]) == 0
    assert "you" in capsys.readouterr().out


async def test_a_seed_is_judged_when_the_next_round_begins_and_is_an_elite_of_it(tmp_path: Path) -> None:
    (tmp_path / "mine.cpp").write_text("// mine\n// speed 5\n")
    model = ScriptedModel()
    result = await steered(tmp_path, "round_started", "seed", str(tmp_path / "mine.cpp"), model=model)
    with Archive.open_read_only(tmp_path / "run") as archive:
        seed = archive.candidate("seed-mine")
        assert (seed.origin, seed.round) == (Origin.SEED, 2)
        assert {idea.parent_id for idea in archive.ideas(2)} == {"seed-mine"}
    assert model.proposals[-1].elites[0].candidate_id == "seed-mine"
    assert (result.best_id, result.certified) == ("r2i0v1a0", True)


async def test_a_seed_that_fails_costs_the_search_nothing(tmp_path: Path) -> None:
    (tmp_path / "mine.cpp").write_text("// fails verify\n")
    result = await steered(tmp_path, "round_started", "seed", str(tmp_path / "mine.cpp"))
    assert (result.state, result.certified) == ("finished", True)
    with Archive.open_read_only(tmp_path / "run") as archive:
        evaluation = archive.evaluation("seed-mine")
    assert evaluation is not None
    assert evaluation.status == "wrong"


async def test_a_search_that_is_told_to_stop_ends_after_the_steps_in_flight_and_can_be_resumed(tmp_path: Path) -> None:
    slow = MemoryEngine(delay_s=0.3)
    events: list[Any] = []

    def on_event(event: Any) -> None:
        events.append(event)
        if event["event"] == "round_started" and event["round"] == 1:
            assert cli.main(["stop", str(tmp_path / "run")]) == 0

    models = [ScriptedModel(delay_s=0.3)]
    stopped = await run_search(options(tmp_path), engine=slow, models=models, on_event=on_event)
    assert stopped.state == "stopped"
    assert [e["reason"] for e in events if e["event"] == "stopped"] == [
        "ridgeline stop: stopping after the steps in flight"
    ]
    result = await run_search(options(tmp_path, resume=True), engine=MemoryEngine(), models=[ScriptedModel()])
    assert (result.state, result.rounds) == ("finished", 2)


async def test_a_stop_that_met_no_living_search_does_not_stop_the_next_one(tmp_path: Path) -> None:
    result = await stopped_after_one_round(tmp_path)
    with Archive.open(result.run_dir, create=False) as archive:
        Steering(archive).add_stop()
    await asyncio.sleep(0.01)
    resumed = await run_search(options(tmp_path, resume=True), engine=MemoryEngine(), models=[ScriptedModel()])
    assert resumed.state == "finished"


async def stopped_after_one_round(tmp_path: Path) -> SearchResult:
    from langgraph.runtime import RunControl

    stop = RunControl()

    def on_event(event: Any) -> None:
        if event["event"] == "round_done":
            stop.request_drain("test")

    result = await run_search(
        options(tmp_path), engine=MemoryEngine(), models=[ScriptedModel()], stop=stop, on_event=on_event
    )
    assert (result.state, result.rounds) == ("stopped", 1)
    return result


async def test_what_a_stopped_search_is_told_enters_when_it_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = str((await stopped_after_one_round(tmp_path)).run_dir)
    (tmp_path / "mine.cpp").write_text("// mine\n// speed 5\n")
    assert cli.main(["idea", run, IDEA]) == 0
    assert cli.main(["seed", run, str(tmp_path / "mine.cpp")]) == 0
    assert "enters once the search goes on" in capsys.readouterr().out
    with Archive.open_read_only(run) as archive:
        assert not_taken_up(archive) == [f"not taken up yet: the idea '{IDEA}'", "not taken up yet: seed-mine"]
    assert cli.main(["show", run]) == 0
    assert "not taken up yet: seed-mine" in capsys.readouterr().out
    await run_search(options(tmp_path, resume=True), engine=MemoryEngine(), models=[ScriptedModel()])
    with Archive.open_read_only(run) as archive:
        assert not_taken_up(archive) == []
        assert (archive.idea("r2i0").mechanism, archive.idea("r2i0").parent_id) == (IDEA, "seed-mine")


async def test_what_cannot_be_told_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = str((await stopped_after_one_round(tmp_path)).run_dir)
    (tmp_path / "mine.cu").write_text("// speed 5\n")
    (tmp_path / "empty.cpp").write_text("")
    (tmp_path / "kernel.cpp").write_text("// speed 5\n")
    (tmp_path / "nul.cpp").write_text("// speed 5\n\0")
    (tmp_path / "long.cpp").write_text("// speed 5\n" * 40_000)
    assert cli.main(["idea", run, IDEA]) == 0
    refused = [
        (["idea", "nowhere", IDEA], "nowhere: no such run"),
        (["idea", run, " "], "is empty"),
        (["idea", run, "x" * 30_000], "30,000 characters"),
        (["idea", run, IDEA], "was told this idea before"),
        (["seed", run, str(tmp_path / "mine.cu")], "this device takes .cpp files"),
        (["seed", run, str(tmp_path / "missing.cpp")], "missing.cpp does not exist"),
        (["seed", run, str(tmp_path / "missing.cu")], "missing.cu does not exist"),
        (["seed", run, str(tmp_path / "empty.cpp")], "empty.cpp"),
        (["seed", run, str(tmp_path / "nul.cpp")], "nul.cpp: holds a NUL character"),
        (["seed", run, str(tmp_path / "long.cpp")], "440,000 characters, 400,000 at most"),
        (["idea", run, f"{IDEA} \udcff"], "idea: is no UTF-8 text"),
        (["stop", run], "nothing to stop"),
    ]
    capsys.readouterr()
    for words, said in refused:
        assert cli.main(words) == 2, words
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1), words
        assert said in err
    await run_search(options(tmp_path, resume=True), engine=MemoryEngine(), models=[ScriptedModel()])
    for words in (["idea", run, "another idea"], ["seed", run, str(tmp_path / "kernel.cpp")]):
        assert cli.main(words) == 2
        assert "its search is over; extend it first" in capsys.readouterr().err


async def test_the_report_of_an_earlier_session_does_not_say_stopped_while_the_search_goes_on(tmp_path: Path) -> None:
    await stopped_after_one_round(tmp_path)
    report, seen, after = tmp_path / "run" / "report.html", list[str](), list[str]()
    assert "stopped, and can be resumed" in report.read_text()

    def on_event(event: Any) -> None:
        seen.append(report.read_text() if event["event"] == "round_started" else "")
        after.append(report.read_text() if event["event"] == "certification" else "")

    await run_search(options(tmp_path, resume=True), engine=MemoryEngine(), models=[ScriptedModel()], on_event=on_event)
    while_it_ran = next(filter(None, seen))
    assert "stopped, and can be resumed" not in while_it_ran and "r2i0v0" not in while_it_ran
    notice = '<p class="notice" role="status">The search was going on at 20'
    assert " · running at 20" in while_it_ran and "still running" not in while_it_ran, "a kill leaves it so"
    assert notice in while_it_ran and f"ridgeline show {tmp_path / 'run'} --web" in while_it_ran
    certifying = next(filter(None, after))
    assert notice in certifying and "r2i0v0" in certifying, "it is written anew as each round ends"
    assert "was going on" not in report.read_text()


@pytest.mark.parametrize(
    ("at", "says"),
    [
        ("round_started", "is kept, but round 1 is the last: it enters once this search has ended and is extended:"),
        ("stopped", "is kept, but the rounds are over (1 round done): it enters once this search has ended"),
    ],
)
async def test_what_is_told_when_no_round_follows_enters_once_the_search_is_extended(
    at: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = str(tmp_path / "run")
    await steered(tmp_path, at, "idea", IDEA, settings={"rounds": 1})
    said = capsys.readouterr().out
    assert f"idea-1 {says}" in said and f"--resume {run} --rounds 2" in said
    model = ScriptedModel()
    request = options(tmp_path, resume=True, max_rounds=2, settings={})
    await run_search(request, engine=MemoryEngine(), models=[model])
    assert IDEA in model.proposals[-1].user_ideas
    with lock_run(tmp_path / "run"), Archive.open(tmp_path / "run" / FILE_NAME) as archive:
        assert archive.run().max_rounds == 2
        assert (progress(archive).round, progress(archive).rounds) == (2, 2)


async def test_a_file_name_that_commands_a_terminal_names_a_seed_without(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = str((await stopped_after_one_round(tmp_path)).run_dir)
    path = tmp_path / "a\x1b[2J\nb.cpp"
    path.write_text("// speed 5\n")
    capsys.readouterr()
    assert cli.main(["seed", run, str(path)]) == 0
    assert capsys.readouterr().out.startswith("seed-a__2J_b enters once")


def test_of_several_runs_of_a_name_the_one_that_runs_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    runs = [tmp_path / "runs" / f"toy-{n}" for n in (1, 2)]
    for run in runs:
        with Archive.open(run / FILE_NAME) as archive:
            archive.save_run(RunRecord(problem={"name": "toy"}, settings={}, graph_version=GRAPH_VERSION))
    assert cli.main(["idea", "toy", IDEA]) == 2
    assert "toy-1 (not running), toy-2 (not running)" in capsys.readouterr().err
    with lock_run(runs[0]):
        assert cli.main(["idea", "toy", IDEA]) == 0
    chosen = "toy-1 is the one that runs of the 2 runs called toy…"
    assert capsys.readouterr().out.splitlines() == [chosen, "idea-1 enters with the next round"]
    with lock_run(runs[1]):
        assert cli.main(["stop", "toy", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"run": "runs/toy-2", "id": "stop-1", "name": None, "running": True}
