"""What `ridgeline new` makes, and what it tells to type next."""

from __future__ import annotations

import functools
import re
import shlex
from pathlib import Path

import pytest
from tests.graph.cli.command_line import REFERENCE, assert_one_line, ridgeline

from ridgeline.graph import cli
from ridgeline.graph.cli.commands import new
from ridgeline.tools.judge import outline_process

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("warm_judge")]

DOUBLING = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return x * 2
def get_inputs():
    return [torch.randn(8, 8)]
"""
UNPACKED = "x.sum().item(); return torch.ops.aten._convert_weight_to_int4pack(x.int(), 2)"
"""It reads a value, and has no kernel for a processor."""


def test_the_command_to_type_is_quoted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "reference.py").write_text(DOUBLING)
    out = tmp_path / "my $HOME; problems"
    assert cli.main(["new", "mine", "--from", str(tmp_path / "reference.py"), "--out", str(out)]) == 0
    line = capsys.readouterr().out.splitlines()[-1]
    assert shlex.split(line.removeprefix("search it with: ")) == [
        *("ridgeline", "run"),
        str(out / "mine" / "problem.yaml"),
    ]


@pytest.mark.thorough
def test_new_problem_of_a_users_module_can_be_loaded(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(REFERENCE)
    done = ridgeline("new", "mine", "--from", str(tmp_path / "mine.py"), "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "mine" / "problem.yaml").is_file()
    assert_one_line(ridgeline("new", "mine", "--from", str(tmp_path / "mine.py"), "--out", str(tmp_path)), "mine")


BROKEN = {
    "raises": ("return x * 2", "return x @ torch.randn(3, 3)", "forward() raised RuntimeError"),
    "imports": ("import torch\n", "import torch, nowhere_to_be_found\n", "No module named 'nowhere_to_be_found'"),
    "draws": ("return x * 2", "return torch.nn.functional.dropout(x, 0.5, True)", "two runs differ"),
    "raises for real": (
        "return x * 2",
        "return x.long().bincount()",
        "forward() raised RuntimeError: bincount only supports",
    ),
    "moves": (
        "x * 2",
        "x.cuda() * float(x.sum())",
        "make model and inputs on the CPU: Ridgeline moves them to the device",
    ),
    "asserts": (
        "return x * 2",
        "assert float(x.sum()) == 9, 'the GPU takes 9 rows'",
        "AssertionError: the GPU takes 9 rows",
    ),
    "other shapes": ("return x * 2", "return x[x > 0]", "and then float32"),
    "float": (
        "return x * 2",
        "return {'y': x * 2, 'lr': 0.1}",
        "forward() returns 0.1 as result['lr']: beside tensors",
    ),
    "form": ("[torch.randn(8, 8)]", "torch.randn(8, 8)", "get_inputs() must return a list, got Tensor"),
}


def test_what_a_kernel_gets_and_whether_a_search_needs_a_key_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "reference.py").write_text(DOUBLING)
    assert cli.main(["new", "mine", "--from", str(tmp_path / "reference.py"), "--out", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith('on cpu: extern "C" void run(const float* __restrict__ x, float* __restrict__ out')
    assert lines[2].startswith('on cuda: extern "C" void run(') and "cudaStream_t" in lines[2]
    assert lines[3:6] == ["  x    input   float32 [8, 8]", "  out  output  float32 [8, 8]", "  keyless: yes"]
    (tmp_path / "reference.py").write_text(DOUBLING.replace("x * 2", "torch.sort(x)[0]"))
    assert cli.main(["new", "sorted", "--from", str(tmp_path / "reference.py"), "--out", str(tmp_path)]) == 0
    told = capsys.readouterr().out
    assert "keyless: no, because the offline model" in told and "not covered: the operation sort" in told
    assert told.endswith(f"search it with: ridgeline run {tmp_path / 'sorted' / 'problem.yaml'} --model openai:o3\n")


def test_where_an_output_lies_in_a_nested_result_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nested = DOUBLING.replace("return x * 2", "return {'y': x * 2, 'rest': [x.sum(-1)], 'rows': x.shape[0]}")
    (tmp_path / "reference.py").write_text(nested)
    assert cli.main(["new", "mine", "--from", str(tmp_path / "reference.py"), "--out", str(tmp_path)]) == 0
    told = capsys.readouterr().out.splitlines()
    assert "  out_0  output  float32 [8, 8]  result['y']" in told
    assert "  out_1  output  float32 [8]  result['rest'][0]" in told
    assert cli.main(["problems", str(tmp_path / "mine" / "problem.yaml")]) == 0
    assert "// out_1: output `result['rest'][0]`, float32 (8)\n" in capsys.readouterr().out


@pytest.mark.parametrize("kind", BROKEN)
def test_a_reference_that_only_running_shows_to_be_wrong_is_refused_in_one_line_and_nothing_is_written(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    was, now, says = BROKEN[kind]
    (tmp_path / "reference.py").write_text(DOUBLING.replace(was, now))
    assert cli.main(["new", "mine", "--from", str(tmp_path / "reference.py"), "--out", str(tmp_path)]) == 2
    said = capsys.readouterr()
    assert (
        not said.out and said.err.count("\n") == 1 and f"{tmp_path / 'reference.py'}: " in said.err and says in said.err
    )
    assert not (tmp_path / "mine").exists()


def test_a_reference_that_reads_values_and_does_not_raise_is_left_to_a_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "reference.py").write_text(DOUBLING.replace("x * 2", "x * float(x.sum())"))
    assert cli.main(["new", "mine", "--from", str(tmp_path / "reference.py"), "--out", str(tmp_path)]) == 0
    told = capsys.readouterr().out
    assert "on cpu: only a run can tell its signature: depends on values" in told
    assert "its problem.h: a run writes it into its folder\n" in told and "--model" not in told


def test_what_the_processor_may_have_no_kernel_for_is_told_and_searched_on_a_gpu(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "reference.py").write_text(DOUBLING.replace("return x * 2", UNPACKED))
    assert cli.main(["new", "mine", "--from", str(tmp_path / "reference.py"), "--out", str(tmp_path)]) == 0
    lines, problem = capsys.readouterr().out.splitlines(), tmp_path / "mine" / "problem.yaml"
    said = (
        "on the processor forward() raised NotImplementedError: Could not run 'aten::_convert_weight_to_int4pack' with "
    )
    (told,) = [line for line in lines if line.startswith(said)]
    assert told.endswith("; perhaps it lacks a GPU alone")
    assert lines[-1] == f"search it with: ridgeline run {problem} --device cuda"
    assert cli.main(["problems", str(problem)]) == 0
    on_cpu = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("on cpu: "))
    assert on_cpu == f"on cpu: only a run can tell its signature: {told}"


def test_what_the_processor_may_have_no_kernel_for_is_refused_of_a_problem_that_names_no_gpu(
    problem: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    problem.with_name("reference.py").write_text(DOUBLING.replace("return x * 2", UNPACKED))
    assert cli.main(["problems", str(problem)]) == 2
    assert f"{problem.with_name('reference.py')}: forward() raised NotImplementedError: " in capsys.readouterr().err


def test_a_reference_that_never_ends_is_waited_for_in_words_and_refused_with_a_remedy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outline_process, "TELL_AFTER_S", 0.0)
    monkeypatch.setattr(new, "OutlineProcess", functools.partial(outline_process.OutlineProcess, limit_s=4.0))
    reference = tmp_path / "reference.py"
    reference.write_text(DOUBLING.replace("return x * 2", "while True: pass"))
    assert cli.main(["new", "mine", "--from", str(reference), "--out", str(tmp_path)]) == 2
    said = capsys.readouterr()
    told, refused = said.err.splitlines()
    assert re.fullmatch(rf"ridgeline: {re.escape(str(reference))}: waiting for .* until about \d\d:\d\d:\d\d", told)
    assert f"{reference}: line 5 in forward did not end within 2 s" in refused and "mend an endless loop" in refused
    assert not said.out and not (tmp_path / "mine").exists()
