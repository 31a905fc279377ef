"""What `ridgeline new` tells to type next."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from ridgeline.graph import cli

REFERENCE = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return x * 2
def get_inputs():
    return [torch.randn(8, 8)]
"""


def test_the_command_to_type_is_quoted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "reference.py").write_text(REFERENCE)
    out = tmp_path / "my $HOME; problems"
    assert cli.main(["new", "mine", "--from", str(tmp_path / "reference.py"), "--out", str(out)]) == 0
    line = capsys.readouterr().out.splitlines()[-1]
    assert shlex.split(line.removeprefix("search it with: ")) == [
        *("ridgeline", "run"),
        str(out / "mine" / "problem.yaml"),
    ]
