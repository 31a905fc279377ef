"""What `ridgeline run` refuses before it announces or writes anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from ridgeline.graph import cli


@pytest.mark.parametrize(
    ("bank", "says"),
    [
        (".", "is a folder, not a Ridgeline seed bank; name a file"),
        ("notes.txt", "notes.txt: not a Ridgeline seed bank"),
        ("/proc/no/bank.sqlite", "/proc/no/bank.sqlite: "),
    ],
)
def test_a_bank_that_cannot_be_opened_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], bank: str, says: str
) -> None:
    (tmp_path / "notes.txt").write_text("kernels")
    words = ["run", "softmax", "--run-dir", str(tmp_path / "run"), "--bank", str(tmp_path / bank)]
    assert cli.main(words) == 2
    out, said = capsys.readouterr()
    assert (out, said.count("\n")) == ("", 1)
    assert says in said
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
