"""What `ridgeline suite` refuses before it writes anything, and how a suite is mended by resuming it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from ridgeline.checkpoints.runs.folders import lock_run
from ridgeline.checkpoints.runs.suite import Row, Suite, write_suite
from ridgeline.graph import cli
from ridgeline.graph.cli.arguments import make_parser
from ridgeline.graph.cli.commands.suite import _planned, _request
from ridgeline.graph.cli.console import make_console
from ridgeline.graph.cli.suite_options import OPTIONS, given_options

ROW = Row(name="softmax", problem="softmax", run="01-softmax")


def said_by(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Return the one line with which the command line refuses these words."""
    assert cli.main(list(words)) == 2
    out, said = capsys.readouterr()
    assert said.count("\n") == 1, said
    assert "suite of" not in out
    return said


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--model", "opnai:o3"], "opnai"),
        (["--model", "offline", "--model", "nonsense"], "nonsense"),
        (["--device", "gpu"], "use cpu, cuda or cuda:N"),
        (["--bank", "/proc/no/bank.sqlite"], "/proc/no"),
    ],
)
def test_a_mistaken_option_is_refused_before_there_is_a_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], says: str
) -> None:
    out = tmp_path / "suite"
    assert says in said_by(capsys, "suite", "softmax", "quickstart", "--out", str(out), *words)
    assert not out.exists()


def test_a_resumed_suite_takes_models_budget_and_bank_anew_and_keeps_the_rest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    began = {"model": ["openai:o33"], "rounds": 2, "max_usd": 1.0, "bank": "/gone/bank.sqlite", "device": "cpu"}
    write_suite(tmp_path, Suite(options=began, rows=(ROW,), state="stopped"))
    words = "--model offline --max-usd 3 --rounds 7 --bank none --device cuda"
    args = make_parser().parse_args(["suite", "--resume", str(tmp_path), *words.split()])
    folder, suite = _planned(args, make_console())
    assert suite.options == {"model": ["offline"], "rounds": 2, "max_usd": 3.0, "bank": "none", "device": "cpu"}
    assert "ignored, a suite keeps what it began with: --rounds, --device\n" in capsys.readouterr().out
    asked = _request(suite, ROW, folder / ROW.run, is_begun=True)
    assert (asked.models, asked.bank, asked.resume) == (("offline",), None, True)


def test_a_suite_takes_an_option_of_zero_as_given_and_leaves_out_a_flag_that_was_not() -> None:
    words = "suite softmax --repairs 0 --tune-trials 0 --rng-seed 0"
    given = given_options(vars(make_parser().parse_args(words.split())))
    assert given == {"repairs": 0, "tune_trials": 0, "rng_seed": 0}
    asked = _request(Suite(options=given, rows=(ROW,)), ROW, Path("suite"), is_begun=False)
    assert asked.settings == {"repairs": 0, "tune_trials": 0}


def test_a_resumed_suite_that_is_refused_stays_as_it_was(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "suite"
    folder.mkdir()
    write_suite(folder, Suite(options={"model": ["offline"], "bank": "none"}, rows=(ROW,), state="stopped"))
    before = (folder / "suite.json").read_bytes()
    for words, says in (
        (["--model", "opnai:o3"], "opnai"),
        (["--bank", str(tmp_path)], "is a folder, not a Ridgeline seed bank"),
        (["--bank", "/proc/no/bank.sqlite"], "/proc/no"),
    ):
        assert says in said_by(capsys, "suite", "--resume", str(folder), *words)
        assert (os.listdir(folder), (folder / "suite.json").read_bytes()) == (["suite.json"], before)


def test_a_folder_with_other_things_in_it_or_a_file_is_no_suites(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "thesis.tex").write_text("")
    said = said_by(capsys, "suite", "softmax", "--out", str(tmp_path))
    assert "a folder with other things in it (thesis.tex, …), no suite's; name a new --out" in said
    said = said_by(capsys, "suite", "softmax", "--out", str(tmp_path / "thesis.tex"))
    assert "thesis.tex: is a file, and no suite's" in said
    assert os.listdir(tmp_path) == ["thesis.tex"]


def test_a_suite_that_is_held_is_refused_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_suite(tmp_path, Suite(rows=(ROW,)))
    with lock_run(tmp_path):
        assert "another search of this process uses it" in said_by(capsys, "suite", "--resume", str(tmp_path))


SOUND = {
    "device": ["'x'"],
    "bank": ["'x'"],
    "rng_seed": ["0", "-1"],
    "repairs": ["0"],
    "tune_trials": ["0"],
    "unsafe_no_sandbox": ["True"],
    "park": ["True"],
}


VALUES = ["x", 0, -1, 1e400, None, True, [1], {"a": 1}]
UNSOUND = [
    (name, value) for name in (*OPTIONS, "unknown") for value in VALUES if repr(value) not in SOUND.get(name, ())
]


@pytest.mark.parametrize(("name", "value"), UNSOUND)
def test_an_option_that_no_command_line_gives_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, value: Any
) -> None:
    write_suite(tmp_path, Suite(rows=(), state="stopped"))  # without a search, were it not refused
    content = json.loads((tmp_path / "suite.json").read_text())
    (tmp_path / "suite.json").write_text(json.dumps(content | {"options": {name: value}}))
    said = said_by(capsys, "suite", "--resume", str(tmp_path))
    assert "suite.json: is damaged: options: " in said
