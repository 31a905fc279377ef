"""The script that `ridgeline completion` prints, sourced by a bash."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

from ridgeline.graph.cli import main
from ridgeline.graph.cli.arguments import make_parser
from ridgeline.graph.cli.commands.completion import VALUES, actions_of

COMPLETE = """
source {script}
COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
_shtab_ridgeline ridgeline "${{COMP_WORDS[-1]}}" "${{COMP_WORDS[-2]}}" 2> /dev/null
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("scripts")


def completed(words: str, script: Path, cwd: Path) -> list[str]:
    """Return what bash offers for the last of these words."""
    text = COMPLETE.format(script=shlex.quote(str(script)), words=words)
    done = subprocess.run(["bash", "-c", text], cwd=cwd, capture_output=True, text=True, check=True)
    assert not done.stderr
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("ridgeline ev", ["evaluate"]),
        ("ridgeline mailbox l", ["list"]),
        ("ridgeline run qui", ["quickstart"]),
        ("ridgeline run --max-w", ["--max-wall-s"]),
        ("ridgeline run quickstart --device cu", ["cuda"]),
        ("ridgeline run --strategy r", ["revision"]),
        ("ridgeline show quick", ["quickstart-20261123-1"]),
        ("ridgeline evaluate quickstart ker", ["kernel.cpp"]),
        ("ridgeline ship quickstart-20261123-1 --layout h", ["hf-kernels"]),
    ],
)
def test_bash_completes_commands_options_problems_runs_and_files(
    words: str, offered: list[str], scripts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["completion", "bash"]) == 0
    (scripts / "ridgeline").write_text(capsys.readouterr().out)
    (tmp_path / "runs" / "quickstart-20261123-1").mkdir(parents=True)
    (tmp_path / "kernel.cpp").touch()
    assert completed(words, scripts / "ridgeline", tmp_path) == offered


def test_zsh_gets_a_script_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "zsh"]) == 0
    script = capsys.readouterr().out
    assert script.startswith("#compdef ridgeline")
    assert "_ridgeline_runs() { compadd runs/*(N/:t); _files -/ }" in script


def test_every_kind_of_value_is_one_of_the_parsers_arguments() -> None:
    known = {action.dest for action in actions_of(make_parser())}
    assert {name for names in VALUES.values() for name in names} <= known
