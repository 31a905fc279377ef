"""What `ridgeline new` makes, and what it tells to type next."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from tests.graph.cli.command_line import REFERENCE, assert_one_line, ridgeline

from ridgeline.graph import cli

DOUBLING = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return x * 2
def get_inputs():
    return [torch.randn(8, 8)]
"""


def test_the_command_to_type_is_quoted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "reference.py").write_text(DOUBLING)
    out = tmp_path / "my $HOME; problems"
    assert cli.main(["new", "mine", "--from", str(tmp_path / "reference.py"), "--out", str(out)]) == 0
    line = capsys.readouterr().out.splitlines()[-1]
    assert shlex.split(line.removeprefix("search it with: ")) == [
        *("ridgeline", "run"),
        str(out / "mine" / "problem.yaml"),
    ]


def test_new_problem_of_a_users_module_can_be_loaded(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(REFERENCE)
    done = ridgeline("new", "mine", "--from", str(tmp_path / "mine.py"), "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "mine" / "problem.yaml").is_file()
    assert_one_line(ridgeline("new", "mine", "--from", str(tmp_path / "mine.py"), "--out", str(tmp_path)), "mine")
