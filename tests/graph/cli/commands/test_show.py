"""What `ridgeline show` prints of a run, on terminals of two widths."""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path

import pytest
from tests.graph.cli.command_line import assert_one_line, ridgeline
from tests.graph.conftest import Search
from tests.graph.scripted_model import ScriptedModel

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.history.idea_results import idea_results
from ridgeline.checkpoints.report.outputs import write_run_outputs
from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.graph.cli.commands.show import execute
from ridgeline.tools.errors import InputError
from ridgeline.tools.records.results import Profile, StageTime


def shown(search: Search, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: int) -> str:
    """Return what `show` prints of the search on a terminal of this width."""
    monkeypatch.setenv("COLUMNS", str(width))
    capsys.readouterr()
    assert execute(argparse.Namespace(run=str(search.archive.path.parent), json=False, profile=None)) == 0
    return capsys.readouterr().out


async def test_show_tells_the_winner_and_its_path_first(
    search: Search, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    await search.run(search.context(rounds=1))
    run_dir = search.archive.path.parent
    best = write_run_outputs(run_dir, search.archive)["best"]
    lines = shown(search, capsys, monkeypatch, 80).splitlines()
    assert lines[1] == f"winner:  {best['id']}: {best['idea']}"
    assert f"{best['speedup']:.2f}x (95 %" in lines[2] and "as fast as eager PyTorch" in lines[2]
    assert f"         certified; source {run_dir / 'best.cpp'}" in lines


async def test_show_of_a_run_without_a_certified_kernel_names_no_winner(
    search: Search, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    search.model = ScriptedModel(kernel=lambda r: {"source": f"// {r.idea.title} {r.variation}\n// speed 0.9\n"})
    context = search.context(rounds=1)
    (context.problem.path.parent / "seeds" / "naive.cpp").write_text("// speed 0.7\n")
    await search.run(context)
    text = shown(search, capsys, monkeypatch, 80)
    assert "fastest:  r1i" in text and "(slower than PyTorch, not certified)" in text
    assert "winner" not in text


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


async def test_show_of_a_name_takes_the_newest_run_and_show_alone_lists_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert execute(argparse.Namespace(run=None, json=False, profile=None)) == 0
    assert "there is no run in runs; ridgeline run quickstart begins one" in capsys.readouterr().out
    for name, reason in (("toy-0901", "no gain in 3 rounds"), ("toy-0902", "no model had a further idea")):
        with Archive.open(tmp_path / "runs" / name / "archive.sqlite") as archive:
            archive.save_run(RunRecord(problem={"name": "toy"}, state="stalled", stop_reason=reason))
    assert execute(argparse.Namespace(run="toy", json=False, profile=None)) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "the newest of the 2 runs called toy…; ridgeline show lists all"
    assert lines[1] == "toy (toy-0902): finished: no model had a further idea"
    assert execute(argparse.Namespace(run=None, json=False, profile=None)) == 0
    assert capsys.readouterr().out.splitlines()[0] == "toy-0901  finished: no gain in 3 rounds"
    assert execute(argparse.Namespace(run=None, json=True, profile=None)) == 0
    assert [run["state"] for run in json.loads(capsys.readouterr().out)] == ["stalled", "stalled"]


@pytest.mark.parametrize(
    ("models", "told"), [(("offline",), "cost: no language model (0 answers of"), (("a:b",), "cost: 0 model calls, ")]
)
def test_show_of_a_search_without_a_language_model_counts_no_calls_of_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], models: tuple[str, ...], told: str
) -> None:
    with Archive.open(tmp_path / "archive.sqlite") as archive:
        archive.save_run(RunRecord(problem={"name": "toy"}, state="finished", models=models))
    assert execute(argparse.Namespace(run=str(tmp_path), json=False, profile=None)) == 0
    assert told in capsys.readouterr().out


def test_show_of_an_unknown_run_gets_one_line(tmp_path: Path) -> None:
    assert_one_line(ridgeline("show", "nothing-here", cwd=tmp_path), "nothing-here")


async def test_profile_of_a_kernel_is_one_paragraph_and_its_counters_are_shown_on_request(
    search: Search, capsys: pytest.CaptureFixture[str]
) -> None:
    await search.run(search.context(rounds=1))
    key, _ = search.archive.records("profiles")[0]
    [best] = [e.candidate_id for e in search.archive.evaluations() if e.key == key]
    stage = StageTime(name="gemm", ms=0.5, share=0.59)
    profile = Profile(
        bound="memory",
        fraction_of_floor=None,
        achieved_gbps=None,
        achieved_gflops=None,
        details={"spills": 3.0},
        paragraph="It waits for memory.",
        stages=(stage,),
    )
    search.archive.save("profiles", key, best, profile)
    run = str(search.archive.path.parent)

    def told(**wanted: object) -> str:
        capsys.readouterr()
        asked = {"run": run, "json": False, "profile": best, "counters": False} | wanted
        assert execute(argparse.Namespace(**asked)) == 0
        return capsys.readouterr().out

    assert told() == "It waits for memory.\n  gemm                      59%  0.5 ms a call\n"
    assert told(counters=True).endswith("  spills = 3\n")
    assert "details" not in json.loads(told(json=True))
    assert json.loads(told(json=True, counters=True))["details"] == {"spills": 3.0}


async def test_profile_of_a_kernel_that_has_none_is_one_line(search: Search) -> None:
    await search.run(search.context(rounds=1))
    run = str(search.archive.path.parent)
    with pytest.raises(InputError, match="no kernel 'nothing'"):
        execute(argparse.Namespace(run=run, json=False, profile="nothing", counters=False))
    with pytest.raises(InputError, match="needs the run"):
        execute(argparse.Namespace(run=None, json=False, profile="nothing", counters=False))
