"""What `ridgeline show` prints of the best kernel: its figures, its certificate, and why it has none."""

from __future__ import annotations

import json

import pytest
from tests.graph.cli.commands.show_words import shown
from tests.graph.conftest import Search
from tests.graph.scripted_model import ScriptedModel

from ridgeline.checkpoints.report.outputs import write_run_outputs
from ridgeline.checkpoints.report.wording import EAGER_TIMES, OVER_BEST
from ridgeline.graph.cli import main
from ridgeline.graph.cli.summary import closing_lines
from ridgeline.graph.session.outputs import write_result
from ridgeline.tools.records.vocabulary import RunState
from ridgeline.tools.wording import ratio_words


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
    at = next(
        number for number, line in enumerate(lines) if line.startswith("PyTorch by itself, in the search: eager 10")
    )
    assert lines[at + 1] == "PyTorch by itself, for the certificate: eager 10.000 ms, torch.compile 8.000 ms"
    assert lines[at + 2] == f"  Over its best configuration: {OVER_BEST}."
    assert lines[at + 3] == f"  {EAGER_TIMES}", "the terminal wraps a line, not the command"
    at = next(number for number, line in enumerate(lines) if line.startswith("lineage of the best"))
    assert lines[at].endswith("each with its figure in the search:")
    found = search.archive.own_evaluation(best["id"])
    assert found and found.timing and found.speedup
    figure = ratio_words(found.speedup, found.speedup_interval, unit="eager")
    assert lines[at + 1].startswith(f"  {best['id']:<16} {figure}, {found.timing.median_ms:.4f} ms: {best['idea']}")
    page = (run_dir / "report.html").read_text()
    assert "PyTorch's lines are at its times in the search; those of the certificate" in page
    assert EAGER_TIMES in page and "The medians here are the certificate&#39;s" in page


async def test_the_list_and_the_headline_say_where_a_winner_is_no_faster_than_pytorch_s_best(
    search: Search, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    search.model = ScriptedModel(kernel=lambda r: {"source": f"// {r.idea.title} {r.variation}\n// speed 1.245\n"})
    output = await search.run(search.context(rounds=1))
    told = "no faster than PyTorch's best configuration: 0.996x"
    assert output["certified"]
    assert told.replace("PyTorch's", "its") in shown(search, capsys, monkeypatch, 80)
    monkeypatch.setattr("ridgeline.graph.cli.listed_runs.RUNS", search.archive.path.parent.parent)
    assert main(["show"]) == 0
    [line] = [each for each in capsys.readouterr().out.splitlines() if search.archive.path.parent.name in each]
    assert line.endswith(f"; winner 1.25x eager (1.23 to 1.26): {output['best_id']} ({told})")
    assert main(["show", "--json"]) == 0
    [listed] = [e for e in json.loads(capsys.readouterr().out) if e["run"] == search.archive.path.parent.name]
    assert listed["speedup_vs_best"] == pytest.approx(0.996)


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


async def test_show_explains_the_fastest_kernels_refusal_and_names_the_others_in_short(
    search: Search, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = iter([f"speed 2\n// certified 0.{digit}" for digit in (9, 8, 7)] + ["speed 1.5\n// certified 1.0"])
    search.model = ScriptedModel(kernel=lambda r: {"source": f"// {r.idea.title} {r.variation}\n// {next(sources)}\n"})
    context = search.context(rounds=1)
    (context.problem.path.parent / "seeds" / "naive.cpp").write_text("// speed 0.7\n")
    output = await search.run(context)
    lines = shown(search, capsys, monkeypatch, 120).splitlines()
    assert lines[1].startswith(f"fastest:  {output['best_id']}: ") and lines[1].endswith("(not certified)")
    assert lines[2].startswith(
        "         1.00x (95 % 0.99 to 1.01) as fast as eager PyTorch, but no proven gain over it"
    )
    reason = "re-timing: the speedup's interval 0.990 to 1.010 does not exclude 1"
    assert f"         not certified: {reason}" in lines
    [others] = [line for line in lines if "others that were tried and not certified: " in line]
    assert others.count("re-timing: ") == 2 and others.endswith("; and 1 more") and reason not in others
    assert "was not certified: " not in "\n".join(lines)
    run_dir = search.archive.path.parent
    page = write_run_outputs(run_dir, search.archive) and (run_dir / "report.html").read_text()
    assert f"not certified ({reason.replace(chr(39), '&#39;')})" in page


async def test_a_certificate_outside_of_the_searchs_interval_is_told_with_both_figures(
    search: Search, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    search.model = ScriptedModel(kernel=lambda r: {"source": f"// {r.idea.title}\n// speed 4.40\n// certified 2.29\n"})
    output = await search.run(search.context(rounds=1, ideas=1, implementations=1))
    assert output["certified"]
    words = "the search measured 4.40x (4.36 to 4.44); the certificate's fresh measurements say 2.29x (2.27 to 2.31)"
    assert f"         {words}" in shown(search, capsys, monkeypatch, 120).splitlines()
    run_dir = search.archive.path.parent
    result = write_result(run_dir, search.archive, RunState.FINISHED)
    assert f"         {words}" in closing_lines(result)
    assert f"T{words[1:]}.".replace("'", "&#39;") in (run_dir / "report.html").read_text()
