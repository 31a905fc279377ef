"""`ridgeline completion`: a script by which a shell completes `ridgeline`'s words."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from ridgeline.graph.cli.arguments import make_parser
from ridgeline.problems.spec import shipped_problems

VALUES = {
    "problems": ("problem", "problems"),
    "runs": ("run", "resume", "replay", "sources"),
    "files": ("files", "file", "reference", "path", "out", "bank", "into"),
    "folders": ("run_dir", "runs"),
    "devices": ("device",),
}
"""The preamble's functions that complete values, and the arguments that each completes, by their names in the parser."""


def execute(args: argparse.Namespace) -> int:
    """Print the script for the shell that is named."""
    import shtab

    parser = make_parser()
    for action in actions_of(parser):
        if functions := _functions(action):
            action.complete = functions  # type: ignore[attr-defined]  # shtab's own mark on an argument
    sys.stdout.write(shtab.complete(parser, shell=args.shell, preamble=_preamble(args.shell)))
    return 0


def actions_of(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Give every option and word of a parser and of its commands."""
    for action in parser._actions:  # noqa: SLF001 - argparse has no public list, and shtab reads this one too
        if isinstance(action.choices, dict):
            for command in action.choices.values():
                yield from actions_of(command)
        else:
            yield action


def _functions(action: argparse.Action) -> dict[str, str]:
    """Return the functions of the preamble, by shell, that complete an argument's value; none where nothing can."""
    kind = next((kind for kind, names in VALUES.items() if action.dest in names), "")
    return {"bash": f"_ridgeline_{kind}", "zsh": f"_ridgeline_{kind}"} if kind else {}


def _preamble(shell: str) -> str:
    """Return the functions that complete values, in the shell's own language."""
    return {"bash": _BASH, "zsh": _ZSH}[shell].replace("PROBLEMS", " ".join(sorted(shipped_problems())))


_BASH = """
_ridgeline_files() { compgen -f -- "$1"; }
_ridgeline_folders() { compgen -d -- "$1"; }
_ridgeline_devices() { compgen -W "cpu cuda" -- "$1"; }
_ridgeline_problems() { compgen -W "PROBLEMS" -- "$1"; compgen -f -- "$1"; }
_ridgeline_runs() { (cd runs 2> /dev/null && compgen -d -- "$1"); compgen -d -- "$1"; }
"""
_ZSH = """
_ridgeline_files() { _files }
_ridgeline_folders() { _files -/ }
_ridgeline_devices() { compadd cpu cuda }
_ridgeline_problems() { compadd PROBLEMS; _files }
_ridgeline_runs() { compadd runs/*(N/:t); _files -/ }
"""
