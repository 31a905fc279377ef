"""The command line as a user meets it: its help, its speed, its exit codes and its streams."""

from __future__ import annotations

import os
import subprocess
import sys
import types

import pytest
from tests.environments import child_environment
from tests.graph.cli.command_line import into, ridgeline

from ridgeline.graph import cli
from ridgeline.tools.errors import EngineError, EvaluatorKilled, JudgeKilled, MachineBusyError

pytestmark = pytest.mark.long


def test_help_names_every_command() -> None:
    done = ridgeline("--help")
    assert done.returncode == 0
    for command in (
        "run",
        "evaluate",
        "show",
        "problems",
        "clean",
        "doctor",
        "new",
        "export",
        "merge",
        "import",
        "suite",
    ):
        assert command in done.stdout


def test_command_line_imports_neither_torch_nor_langgraph_for_its_help() -> None:
    code = (
        "import sys\nfrom ridgeline.graph.cli import main\n"
        "for words in (['--help'], ['run', '--help']): main(words)\n"
        "heavy = {'torch', 'langgraph', 'langchain_core', 'pydantic', 'rich'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env=child_environment(),
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_an_internal_error_asks_for_a_report_and_exits_with_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def execute(args: object) -> int:
        raise EngineError("the judge died")

    monkeypatch.setitem(sys.modules, "ridgeline.graph.cli.commands.show", types.SimpleNamespace(execute=execute))
    assert cli.main(["show", "x"]) == 1
    assert capsys.readouterr().err == "ridgeline: internal error, please report: the judge died\n"


@pytest.mark.parametrize("kind", [MachineBusyError, EvaluatorKilled, JudgeKilled])
def test_what_came_from_outside_is_nothing_to_report(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], kind: type[EngineError]
) -> None:
    def execute(args: object) -> int:
        raise kind("the machine is too busy to time this kernel")

    monkeypatch.setitem(sys.modules, "ridgeline.graph.cli.commands.show", types.SimpleNamespace(execute=execute))
    assert cli.main(["show", "x"]) == 1
    assert capsys.readouterr().err == "ridgeline: the machine is too busy to time this kernel\n"


def test_help_says_what_each_exit_code_means(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", "--help"]) == 0
    said = capsys.readouterr().out
    assert "1  internal error, please report" in said
    assert "2  invalid input, the message says how to fix it" in said


@pytest.mark.first_case
@pytest.mark.parametrize("words", [["problems"], ["problems", "--json"], ["doctor"]])
def test_a_reader_that_goes_away_ends_a_command_as_sigpipe_would(words: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = into(writing, *words)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")


def test_a_broken_pipe_of_our_own_is_no_reader_that_went_away(monkeypatch: pytest.MonkeyPatch) -> None:
    def execute(args: object) -> int:
        raise BrokenPipeError

    monkeypatch.setitem(sys.modules, "ridgeline.graph.cli.commands.show", types.SimpleNamespace(execute=execute))
    with open(os.devnull, "w") as out:  # pytest's own has no descriptor
        monkeypatch.setattr(sys, "stdout", out)
        monkeypatch.setattr(sys, "stderr", out)
        with pytest.raises(BrokenPipeError):
            cli.main(["show", "x"])


@pytest.mark.parametrize("words", [["problems"], ["problems", "--json"]])
def test_output_that_finds_no_room_is_said_in_one_line(words: list[str]) -> None:
    with open("/dev/full", "w") as full:
        done = into(full.fileno(), *words)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "standard output" in done.stderr
    assert "No space left on device" in done.stderr


@pytest.mark.parametrize("words", [["problems"], ["export", "x", "--jsonl"], ["show", "x"]])
def test_closed_standard_output_is_said_in_one_line(words: list[str]) -> None:
    done = into(subprocess.DEVNULL, *words, preexec_fn=lambda: os.close(1))
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "standard output is closed" in done.stderr


def test_closed_standard_error_leaves_the_exit_code() -> None:
    assert into(subprocess.DEVNULL, "show", "nothing-here", preexec_fn=lambda: os.close(2)).returncode == 2


@pytest.mark.parametrize("words", [["problems"], ["evaluate", "absent.yaml", "k.cpp"]])
def test_a_standard_output_for_reading_alone_is_one_line(words: list[str]) -> None:
    with open(os.devnull) as out:
        done = into(out.fileno(), *words)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "standard output is open for reading alone" in done.stderr


@pytest.mark.parametrize("command", ["evaluate", "show", "export"])
def test_interrupted_command_ends_without_a_traceback(command: str) -> None:
    code = (
        "import sys, types\nfrom ridgeline.graph import cli\n"
        "def execute(args): raise KeyboardInterrupt\n"
        f"sys.modules['ridgeline.graph.cli.commands.{command}'] = types.SimpleNamespace(execute=execute)\n"
        f"sys.exit(cli.main([{command!r}, 'x', *(['y.cpp'] if {command!r} == 'evaluate' else [])]))"
    )
    environment = child_environment()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert (done.returncode, done.stderr) == (130, "")
