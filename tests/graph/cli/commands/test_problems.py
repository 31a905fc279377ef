"""What `ridgeline problems` lists."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.graph.cli.command_line import ridgeline

from ridgeline.graph import cli

pytestmark = pytest.mark.usefixtures("warm_judge")


def test_problems_lists_what_ships_as_json() -> None:
    rows = json.loads(ridgeline("problems", "--json").stdout)
    assert {"quickstart": ["cpu", "cuda"]}.items() <= {row["name"]: row["keyless"] for row in rows}.items()


def test_a_problem_that_is_named_is_told_as_a_kernel_sees_it(problem: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["problems", str(problem)]) == 0
    told = capsys.readouterr().out
    assert told.startswith(f'mine, {problem}\non cpu: extern "C" void run(const float* __restrict__ x')
    assert "  x    input   float32 [64, 128]\n" in told and "  keyless: yes\n" in told
    assert "problem.h on cpu:\n\n#ifndef RIDGELINE_PROBLEM_H" in told and "X_SHAPE_1 = 128;" in told
    signature = told.partition("\n\n")[0]
    assert told.endswith(f"\n\n{signature}\n") and told.count(signature) == 2, "a header is longer than a screen"
    assert cli.main(["problems", str(problem), "--json"]) == 0
    (on_cpu,) = json.loads(capsys.readouterr().out)
    assert (on_cpu["target"], on_cpu["keyless"], on_cpu["why_not"]) == ("cpu", True, None)
    assert [arg["name"] for arg in on_cpu["args"]] == ["x", "out"] and on_cpu["problem_h"] in told


@pytest.mark.parametrize(
    ("rows", "says", "perhaps"),
    [
        ("9" * 18, "get_inputs() raised ", ""),
        ("0", "empty", ""),
        ("-12", "get_inputs() raised ", "; perhaps for ROWS, in the reference 64"),
        ("12.5", "get_inputs() raised ", "; perhaps for ROWS, in the reference 64"),
    ],
)
def test_a_size_that_the_reference_cannot_take_is_named_beside_what_it_led_to(
    problem: Path, capsys: pytest.CaptureFixture[str], rows: str, says: str, perhaps: str
) -> None:
    problem.write_text(f"name: mine\nreference: reference.py\ntargets: {{cpu: {{sizes: {{ROWS: {rows}}}}}}}\n")
    assert cli.main(["problems", str(problem)]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"ridgeline: {problem.with_name('reference.py')}: ") and says in said
    assert said.endswith(f" (with ROWS = {rows} of {problem}'s targets.cpu.sizes{perhaps})\n") and said.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("ofline", "did you mean offline?"),
        ("o3", "write provider:name"),
        ("opena:o3@nowhere", "is no URL of a server"),
        ("mailbox:a b", "write mailbox, or mailbox:NAME"),
    ],
)
def test_a_name_under_models_that_means_none_is_refused_before_the_reference_is_looked_at(
    problem: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str, says: str
) -> None:
    monkeypatch.setattr("ridgeline.graph.cli.commands.problems.OutlineProcess", None)
    problem.write_text(f"{problem.read_text()}models: [offline, 'openai:o3', '{name}']\n")
    assert cli.main(["problems", str(problem)]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"ridgeline: {problem}: models: ") and says in said and said.count("\n") == 1


def test_sizes_that_this_machine_s_memory_does_not_hold_are_refused_and_told_beside_another_device_s(
    problem: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    large = "name: mine\nreference: reference.py\ntargets: {cpu: {sizes: {ROWS: 20480000000}}"
    problem.write_text(large + "}\n")
    assert cli.main(["problems", str(problem)]) == 2
    refused = capsys.readouterr().err
    assert re.search(
        r"reference.py: judging it takes at least \d+ GB .* this machine has .*: choose smaller sizes", refused
    )
    assert refused.endswith(f" (with ROWS = 20480000000 of {problem}'s targets.cpu.sizes)\n")
    problem.write_text(large + ", cuda: {}}\n")
    assert cli.main(["problems", str(problem)]) == 0
    told = capsys.readouterr().out.partition("\non cuda:")
    assert (
        "\n  on this machine: judging it takes at least " in told[0]
        and "on this machine" not in told[2].partition("\n\n")[0]
    )
    assert cli.main(["problems", str(problem), "--json"]) == 0
    on_cpu, on_cuda = json.loads(capsys.readouterr().out)
    assert on_cpu["memory"] in told[0] and on_cuda["memory"] is None


def test_of_a_reference_that_reads_values_only_a_run_tells_the_signature(
    problem: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reference = problem.with_name("reference.py")
    reference.write_text(reference.read_text().replace("torch.softmax(x, dim=-1)", "x * float(x.sum())"))
    assert cli.main(["problems", str(problem)]) == 0
    assert "on cpu: only a run can tell its signature: " in capsys.readouterr().out
