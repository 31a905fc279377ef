"""Messages name arguments to a program that calls Ridgeline, and options to who types a command."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.environments import ROOT

import ridgeline
from ridgeline.graph import cli
from ridgeline.tools.errors import InputError
from ridgeline.tools.judge.start import judge_command
from ridgeline.tools.local.evaluator_process import evaluator_command
from ridgeline.tools.records.problem import Device
from ridgeline.tools.records.vocabulary import DeviceKind
from ridgeline.tools.wording import FOR_COMMAND_LINE, option, resuming, worded_for_command_line

OPTION = re.compile(r"--[a-z][a-z-]+")
OWN = {
    "graph/cli": "the command line's own",
    "graph/mcp/http.py": "of the command that serves",
    "graph/session/suite.py": "a suite is a command's",
    "checkpoints/runs/suite.py": "a suite is a command's",
    "problems/kernelbench.py": "of `ridgeline import`",
    "problems/new.py": "of `ridgeline new`",
}
"""Where a message may name an option, and why."""


def test_a_program_reads_arguments_and_a_command_line_its_options(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InputError, match=r"^replay_timings, replay_else and .* name its run with replay='RUN'$"):
        ridgeline.search("quickstart", replay_strict=True)
    assert cli.main(["run", "quickstart", "--replay-strict"]) == 2
    said = capsys.readouterr().err
    assert (
        "--replay-timings, --replay-else and --replay-strict belong to a replay: name its run with --replay RUN" in said
    )
    assert option("device", "cpu") == "device='cpu'"  # the command line has ended


def test_a_program_that_starts_a_command_has_it_worded_as_for_itself(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RIDGELINE_CALLER", "program")
    assert cli.main(["run", "quickstart", "--replay-strict"]) == 2
    assert "name its run with replay='RUN'" in capsys.readouterr().err


def test_an_evaluator_and_its_judge_word_their_messages_for_who_started_them() -> None:
    asked = Device(kind=DeviceKind.CPU, name="cpu", arch="any", uuid="cpu", cores=1, memory_bytes=1, cache_bytes=1)
    assert FOR_COMMAND_LINE not in {*evaluator_command(asked), *judge_command(3, 4)}
    with worded_for_command_line():
        assert FOR_COMMAND_LINE in evaluator_command(asked)
        assert FOR_COMMAND_LINE in judge_command(3, 4)


def test_an_option_is_worded_for_its_reader() -> None:
    run = Path("runs/mine")
    assert [option("replay_else"), option("resume", True), option("model", "offline")] == [
        "replay_else",
        "resume=True",
        "models='offline'",
    ]
    assert resuming("problem.yaml", run) == "search('problem.yaml', resume=True, run_dir='runs/mine')"
    with worded_for_command_line():
        assert [option("replay_else"), option("resume", True), option("model", "offline")] == [
            "--replay-else",
            "--resume",
            "--model offline",
        ]
        assert resuming("problem.yaml", run) == "ridgeline run problem.yaml --resume runs/mine"


def test_no_error_that_a_program_may_read_names_an_option() -> None:
    """A whole command of `ridgeline` may be named: it is what is to be run."""
    found = [each for room in ("graph", "checkpoints", "tools", "problems") for each in _named_options(ROOT / room)]
    assert found == []


def _named_options(room: Path) -> Iterator[str]:
    for path in sorted(room.rglob("*.py")):
        place, text = str(path.relative_to(ROOT)), path.read_text()
        if place.startswith(tuple(OWN)) or not OPTION.search(text):
            continue
        for node in ast.walk(ast.parse(text)):
            if not isinstance(node, ast.Raise):
                continue
            parts = (each.value for each in ast.walk(node) if isinstance(each, ast.Constant))
            words = " ".join(part for part in parts if isinstance(part, str))
            if OPTION.search(words) and not re.search(r"ridgeline (export|new|run|clean)|pip install", words):
                yield f"{place}:{node.lineno}: {OPTION.findall(words)}"
