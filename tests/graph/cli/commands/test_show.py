"""What `ridgeline show` prints of a run, on terminals of two widths."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.graph.cli.command_line import assert_one_line, ridgeline
from tests.graph.cli.commands.show_words import asked_for, shown
from tests.graph.conftest import Search, write_problem
from tests.graph.memory_engine import MemoryEngine
from tests.graph.scripted_model import ScriptedModel, distinct_ideas

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.calls.journal import Journal
from ridgeline.checkpoints.history.idea_results import idea_results
from ridgeline.checkpoints.history.lineage import figures
from ridgeline.checkpoints.report.outputs import write_run_outputs
from ridgeline.checkpoints.report.wording import IDEAS_BEST, IDEAS_GAIN, ending, figure_words
from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.checkpoints.runs.folders import lock_run
from ridgeline.checkpoints.steering import Steering
from ridgeline.graph.cli import main
from ridgeline.graph.cli.commands.show import execute
from ridgeline.graph.cli.summary import resume_line
from ridgeline.graph.models.requests import IdeationRequest
from ridgeline.graph.session.options import SearchRequest
from ridgeline.graph.session.session import run_search
from ridgeline.tools.errors import ModelError
from ridgeline.tools.records.results import Profile, StageTime
from ridgeline.tools.records.vocabulary import RunState
from ridgeline.tools.wording import ratio_words


async def test_show_says_which_error_ended_a_search_until_it_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(request: IdeationRequest) -> dict[str, Any]:
        raise ModelError("scripted: the key\n\ud800 was refused")

    problem = write_problem(
        tmp_path / "problem", search={"rounds": 1, "ideas": 1, "implementations": 1, "tune_trials": 0}
    )
    asked = SearchRequest(problem=problem, run_dir=tmp_path / "run")
    words = asked_for(run=str(asked.run_dir), json=False, profile=None)
    with pytest.raises(ModelError):
        await run_search(asked, engine=MemoryEngine(), models=[ScriptedModel(ideas=refused)])
    assert execute(words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["toy (run): interrupted, resumable", "ended by: scripted: the key ? was refused"]
    await run_search(replace(asked, resume=True), engine=MemoryEngine(), models=[ScriptedModel()])
    assert execute(words) == 0
    assert "ended by" not in capsys.readouterr().out
    with Archive.open_read_only(asked.run_dir) as archive:
        assert archive.run().ended_by == ""


async def test_show_of_a_search_that_certifies_does_not_say_that_its_rounds_go_on(
    search: Search, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    await search.run(search.context(rounds=1))
    search.archive.forget_winner()
    search.archive.save_run(RunRecord(state=RunState.RUNNING, stop_reason="1 round done"))
    with lock_run(search.archive.path.parent):
        text = shown(search, capsys, monkeypatch, 80)
        assert "its rounds are over (1 round done)" in text and "not certified: its certificate is not done yet" in text
        search.archive.save_run(RunRecord(stop_reason=""))
        text = shown(search, capsys, monkeypatch, 80)
        assert "not certified: the search goes on; kernels are certified when its rounds are over" in text
        assert "s in rounds and sessions that are over" in text and "can be stopped" in text
        Steering(search.archive).add_stop()
        text = shown(search, capsys, monkeypatch, 80)
        assert "it was told to stop, and ends after the steps in flight" in text and "can be stopped" not in text
    search.archive.save_run(RunRecord(state=RunState.WAITING))
    text = shown(search, capsys, monkeypatch, 80)
    assert "not certified: the search waits; kernels are certified when its rounds are over" in text


async def test_show_has_the_figures_of_each_kernel_that_it_lists(
    search: Search, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    await search.run(search.context(rounds=1))
    run_dir = search.archive.path.parent
    assert main(["show", str(run_dir), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    first, best = told["lineage"][0], told["best"]
    kept = search.archive.evaluation(best["id"])
    assert kept and first["speedup_ci95"] == kept.speedup_interval and first["reason_code"] == "none"
    [idea] = [each for each in told["ideas"] if each["best_candidate_id"] == best["id"]]
    assert (idea["best_speedup_ci95"], idea["best_median_ms"]) == (first["speedup_ci95"], first["median_ms"])
    interval = ratio_words(idea["best_speedup"], idea["best_speedup_ci95"])
    assert interval in shown(search, capsys, monkeypatch, 100)
    assert f"{IDEAS_BEST}\n" in shown(search, capsys, monkeypatch, 100), "another kernel's figure may be higher"
    monkeypatch.setattr("ridgeline.graph.cli.listed_runs.RUNS", run_dir.parent)
    assert main(["show"]) == 0
    figure = ratio_words(best["speedup"], best["speedup_ci95"], unit="eager")
    line = f"{run_dir.name}  {ending(told['state'], None)}; winner {figure}: {best['id']}"
    assert line in capsys.readouterr().out.splitlines()
    assert main(["show", "--json"]) == 0
    [listed] = [each for each in json.loads(capsys.readouterr().out) if each["run"] == run_dir.name]
    assert (listed["best_id"], listed["speedup"], listed["certified"]) == (best["id"], best["speedup"], True)


async def test_show_names_both_floors_where_arithmetic_binds_and_says_why_a_kernel_is_below_it(
    search: Search, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    await search.run(search.context(rounds=1))
    assert "; memory floor 0.100 ms\n" in shown(search, capsys, monkeypatch, 80)
    baselines = search.archive.baselines()
    assert baselines
    for arithmetic_ms, is_below in ((0.2, False), (99.0, True)):
        floor = replace(baselines.floor, compute_floor_ms=arithmetic_ms, bound="compute")
        search.archive.save_baselines(replace(baselines, floor=floor))
        text = shown(search, capsys, monkeypatch, 80)
        assert f"; memory floor 0.100 ms, arithmetic floor {arithmetic_ms:.3f} ms (binds)\n" in text
        assert ("does fewer operations than the reference, or that ceiling was measured on a busy" in text) is is_below


async def test_show_and_the_report_tell_a_stored_time_of_pytorch(
    search: Search, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    await search.run(search.context(rounds=1))
    baselines = search.archive.baselines()
    assert baselines
    entries = (replace(baselines.entries[0], stored_on="2026-05-04 10:12"), *baselines.entries[1:])
    search.archive.save_baselines(replace(baselines, entries=entries))
    told = "(stored, measured on 2026-05-04 10:12)"
    text = shown(search, capsys, monkeypatch, 80)
    assert f"PyTorch by itself, in the search: eager 10.000 ms {told}, torch.compile 8.000 ms; memory" in text
    search.archive.forget_winner()  # whose certificate measured all of PyTorch's times again
    write_run_outputs(search.archive.path.parent, search.archive)
    assert told in (search.archive.path.parent / "report.html").read_text()


def test_a_damaged_run_is_listed_with_what_is_damaged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "toy-1").mkdir()
    with Archive.open(tmp_path / "toy-1") as archive:
        archive.save_run(RunRecord(problem={"name": "toy"}))
        with archive.database.write() as rows:
            rows.execute("DROP TABLE evaluations")
    monkeypatch.setattr("ridgeline.graph.cli.listed_runs.RUNS", tmp_path)
    assert main(["show"]) == 0
    [line] = capsys.readouterr().out.splitlines()
    assert line.startswith("toy-1  ") and "archive.sqlite: the database is damaged" in line
    assert main(["show", "--json"]) == 0
    assert "damaged" in json.loads(capsys.readouterr().out)[0]["error"]


def test_a_kernel_without_a_figure_is_told_by_its_end() -> None:
    nothing = figures(None)
    assert figure_words(nothing) == "not judged"
    wrong = {"status": "wrong", "reason_code": "wrong_values", "reason": "21 of 64 are wrong"}
    assert figure_words(nothing | wrong) == "wrong (wrong_values): 21 of 64 are wrong"
    inner = {"status": "wrong", "reason_code": "wrong_values", "reason": "nominal_0: error 0.5, gate 1e-05"}
    assert (
        figure_words(nothing | inner)
        == "wrong (wrong_values): inputs like those of get_inputs(): error 0.5, limit 1e-05"
    )
    assert figure_words(nothing | {"status": "ok"}) == "right, not timed"
    assert figure_words(nothing | {"status": "ok", "speedup": 1.5, "median_ms": 2.0}) == "1.50x eager, 2.0000 ms"


async def test_show_in_json_names_the_best_kernels_file_once_it_holds_that_kernel(
    search: Search, capsys: pytest.CaptureFixture[str]
) -> None:
    await search.run(search.context(rounds=1))
    run_dir = search.archive.path.parent

    def path_shown() -> Any:
        assert main(["show", str(run_dir), "--json"]) == 0
        return json.loads(capsys.readouterr().out)["best"]["source_path"]

    assert path_shown() is None  # the graph has run, and nobody has written the run's files yet
    (run_dir / "best.cpp").write_text("// an earlier session's\n")
    assert path_shown() is None
    assert main(["show", str(run_dir)]) == 0
    assert "source is written when the search ends" in capsys.readouterr().out
    write_run_outputs(run_dir, search.archive)
    assert path_shown() == "best.cpp"


async def test_show_leaves_category_and_model_out_where_the_terminal_is_narrow(
    search: Search, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    await search.run(search.context(rounds=2))
    ideas = [result.to_json() for result in idea_results(search.archive)]
    narrow = shown(search, capsys, monkeypatch, 80).splitlines()
    assert [sum(line.startswith(idea["id"]) for line in narrow) for idea in ideas] == [1] * len(ideas)
    assert not any(ideas[0]["category"] in line for line in narrow)
    wide = shown(search, capsys, monkeypatch, 140)
    assert ideas[0]["category"] in wide
    assert re.search(rf"{ideas[0]['predicted_gain']:.2f}x +{ideas[0]['gain']:.2f}x", wide)
    assert not re.search(r"predicted +gain", shown(search, capsys, monkeypatch, 100))


async def test_a_kernel_for_a_users_idea_that_repeats_an_earlier_one_is_not_shown_as_new(
    search: Search, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    search.model = ScriptedModel(kernel=lambda request: {"source": "// one for all\n// speed 1.5\n"})
    context = search.context(rounds=1, ideas=1, implementations=1)
    Steering(search.archive).add_idea("keep the row in registers all the way")
    await search.run(replace(context, settings=context.settings.model_copy(update={"rounds": 2})))
    first, second = (f"r{n}i0v0a0" for n in (1, 2))
    told = {event["candidate_id"]: event["same_source_as"] for event in search.events_named("candidate_done")}
    assert (told[first], told[second]) == ("", first)
    lines = shown(search, capsys, monkeypatch, 140).splitlines()
    assert any(
        line.startswith("r2i0 ") and re.search(rf"1\.50x \(\S+ to \S+\), same source as {first}", line)
        for line in lines
    )
    page = (
        write_run_outputs(search.archive.path.parent, search.archive),
        search.archive.path.with_name("report.html"),
    )[1]
    assert f"Same source as {first}." in page.read_text()


async def test_show_of_a_name_takes_the_newest_run_and_show_alone_lists_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert execute(asked_for(run=None, json=False, profile=None)) == 0
    assert "there is no run in runs; ridgeline run quickstart begins one" in capsys.readouterr().out
    for name, reason in (("toy-0901", "no gain in 3 rounds"), ("toy-0902", "no model had a further idea")):
        with Archive.open(tmp_path / "runs" / name / "archive.sqlite") as archive:
            archive.save_run(RunRecord(problem={"name": "toy"}, state="stalled", stop_reason=reason))
    assert execute(asked_for(run="toy", json=False, profile=None)) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "the newest of the 2 runs called toy…; ridgeline show lists all"
    assert lines[1] == "toy (toy-0902): finished: no model had a further idea"
    assert execute(asked_for(run=None, json=False, profile=None)) == 0
    assert capsys.readouterr().out.splitlines()[0] == "toy-0901  finished: no gain in 3 rounds", "no kernel, no figure"
    assert execute(asked_for(run=None, json=True, profile=None)) == 0
    assert [run["state"] for run in json.loads(capsys.readouterr().out)] == ["stalled", "stalled"]


@pytest.mark.parametrize(
    ("models", "told"), [(("offline",), "cost: no language model (0 answers of"), (("a:b",), "cost: 0 model calls, ")]
)
def test_show_of_a_search_without_a_language_model_counts_no_calls_of_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], models: tuple[str, ...], told: str
) -> None:
    with Archive.open(tmp_path / "archive.sqlite") as archive:
        archive.save_run(RunRecord(problem={"name": "toy"}, state="finished", models=models))
    assert execute(asked_for(run=str(tmp_path), json=False, profile=None)) == 0
    assert told in capsys.readouterr().out


def test_show_of_an_unknown_run_gets_one_line(tmp_path: Path) -> None:
    assert_one_line(ridgeline("show", "nothing-here", cwd=tmp_path), "nothing-here")


def test_counters_without_a_kernel_get_one_line(tmp_path: Path) -> None:
    for words in (("softmax", "--counters"), ("--counters",)):
        assert_one_line(ridgeline("show", *words, cwd=tmp_path), "--counters is for --profile")


async def test_ideas_that_name_the_largest_stage_of_their_parent_are_counted(
    search: Search, capsys: pytest.CaptureFixture[str]
) -> None:
    search.model._ideas = lambda request: {
        "ideas": [each | {"stage": "gemm"} for each in distinct_ideas(request)["ideas"]]
    }
    await search.run(search.context(rounds=2))
    asked = asked_for(run=str(search.archive.path.parent), json=False, profile=None)
    capsys.readouterr()
    assert execute(asked) == 0
    assert "timed stages" not in capsys.readouterr().out
    stages = (StageTime(name="pack", ms=0.1, share=0.2), StageTime(name="gemm", ms=0.4, share=0.8))
    figures = {"fraction_of_floor": None, "achieved_gbps": None, "achieved_gflops": None}
    for each in search.archive.evaluations():
        profile = Profile(bound="memory", stages=stages, **figures)
        search.archive.save("profiles", each.key, each.candidate_id, profile)
    count = sum(idea.parent_id is not None for idea in search.archive.ideas())
    assert count and execute(asked) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert f"{count} of {count} ideas that start from a kernel with timed stages aim" in told


async def test_show_names_a_given_kernel_that_is_not_right_and_why(
    search: Search, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    context = search.context(rounds=1, ideas=1, implementations=1)
    (context.problem.path.parent / "seeds" / "naive.cpp").write_text("// fails verify\n")
    (context.problem.path.parent / "seeds" / "other.cpp").write_text("// other\n// speed 1.5\n")
    await search.run(context)
    told = [line for line in shown(search, capsys, monkeypatch, 200).splitlines() if line.startswith("not right: ")]
    assert len(told) == 1 and told[0].startswith("not right: seed-naive, a seed kernel: wrong (wrong_values)")


async def test_show_says_what_the_gain_of_an_idea_is_over(
    search: Search, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    await search.run(search.context(rounds=1))
    assert IDEAS_GAIN in shown(search, capsys, monkeypatch, 200)
    assert IDEAS_GAIN not in shown(search, capsys, monkeypatch, 80), "no gain is shown"


async def test_show_counts_no_answer_of_the_offline_model_that_never_came(
    search: Search, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    await search.run(search.context(rounds=1))
    search.archive.save_run(RunRecord(models=("offline",)))
    before = re.findall(r"(\d+) answers? of the offline one", shown(search, capsys, monkeypatch, 200))
    Journal(search.archive).begin("r2:ideate", model="offline", prompt_sha256="", request={})
    assert re.findall(r"(\d+) answers? of the offline one", shown(search, capsys, monkeypatch, 200)) == before
    line = resume_line(search.archive)
    assert f"{before[0]} offline model replies" in line
    assert line.endswith("; asked again, because the reply never came: 1 offline model reply")


async def test_show_lists_the_ideas_of_the_problems_file_that_no_round_took_up(
    search: Search, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    await search.run(search.context(rounds=1))
    search.archive.save_run(RunRecord(problem={"name": "toy", "ideas": ["keep a row in registers"]}))
    assert "not taken up yet: the idea 'keep a row in registers'" in shown(search, capsys, monkeypatch, 200)
