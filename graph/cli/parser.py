"""The parser of the command line: whole options alone, and a mistake in one line."""

from __future__ import annotations

import argparse
import difflib
from typing import Any, NoReturn


class Parser(argparse.ArgumentParser):
    """Takes whole options alone and reports invalid ones in one line, as commands report every other invalid input."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **(options | {"allow_abbrev": False}))

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Return the parsed words; an unknown one ends the command here, where the chosen command's options are known."""
        known, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"{unknown[0]}: no such option or word here{self._near(unknown[0])}")
        return known, []

    def _near(self, word: str) -> str:
        name = word.partition("=")[0]
        close = difflib.get_close_matches(name, self._option_string_actions, n=1) if name.startswith("-") else []
        return f"; did you mean {close[0]}?" if close else ""

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> object:
        """Return an option's value; of `--option=--` argparse makes an empty list."""
        if action.option_strings and arg_strings == ["--"]:
            raise argparse.ArgumentError(action, "is empty; give it a value or leave it out")
        return super()._get_values(action, arg_strings)

    def error(self, message: str) -> NoReturn:
        """Exit with status 2."""
        message = message.replace("the following arguments are required:", "missing:")
        self.exit(2, f"{self.prog}: {message} ({self.prog} --help lists the options)\n")


Commands = argparse._SubParsersAction  # noqa: SLF001 - argparse gives this type no public name
"""Where a command adds its own parser; `Commands[Parser]` in annotations."""
