"""The parser of the command line: whole options alone, and a mistake in one line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from typing import Any, NoReturn

from ridgeline.graph.cli.values import EMPTY
from ridgeline.tools.wording import did_you_mean


class Parser(argparse.ArgumentParser):
    """Takes whole options alone and reports invalid ones in one line, as commands report every other invalid input."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **(options | {"allow_abbrev": False}))

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Return the parsed words; an unknown one ends the command here, where the chosen command's options are known."""
        self._refuse_unknown(sys.argv[1:] if args is None else args)
        known, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"{unknown[0]}: no such option or word here{self._near(unknown[0])}")
        return known, []

    def _refuse_unknown(self, words: Iterable[str]) -> None:
        """Refuse an option that there is not, before argparse tells of the words that are missing beside it."""
        for word in words:
            if word == "--" or (self._subparsers is not None and not word.startswith("-")):
                return  # what follows are no options, or those of a command
            if word.startswith("--") and word.partition("=")[0] not in self._option_string_actions:
                self.error(f"{word}: no such option or word here{self._near(word)}")

    def _near(self, word: str) -> str:
        name = word.partition("=")[0]
        return did_you_mean(name, self._option_string_actions, before="; ") if name.startswith("-") else ""

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuse a word that is none of a fixed set with the near one."""
        if action.choices is None or value in action.choices:
            return
        remedy = did_you_mean(str(value), action.choices, before="; ") or f"; choose from {', '.join(action.choices)}"
        if isinstance(action, Commands):
            raise argparse.ArgumentError(None, f"{value}: no such command{'' if value == 'help' else remedy}")
        raise argparse.ArgumentError(action, f"{value}: no such choice{remedy}")

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> object:
        """Return an option's value; of `--option=--` argparse makes an empty list."""
        if action.option_strings and arg_strings == ["--"]:
            raise argparse.ArgumentError(action, EMPTY)
        return super()._get_values(action, arg_strings)

    def _get_value(self, action: argparse.Action, arg_string: str) -> object:
        """Return one word's value; an empty one that cannot be left out either is refused as such."""
        try:
            return super()._get_value(action, arg_string)
        except argparse.ArgumentError as error:
            if action.required and error.message == EMPTY:
                raise argparse.ArgumentError(action, "is empty; it needs a value") from None
            raise

    def error(self, message: str) -> NoReturn:
        """Exit with status 2."""
        message = message.replace("the following arguments are required:", "missing:")
        message = message.replace("missing: COMMAND", "no command was named")
        listed = "options" if self._subparsers is None else "commands"
        self.exit(2, f"{self.prog}: {message} ({self.prog} --help lists the {listed})\n")


def describe_commands(commands: Commands[Parser]) -> None:
    """Begin the help of each command that has no description with what the list of commands says of it."""
    for listed in commands._choices_actions:  # noqa: SLF001 - argparse keeps these words nowhere else
        command, summary = commands.choices[listed.dest], listed.help or ""
        command.description = command.description or f"{summary[:1].upper()}{summary[1:]}."


Commands = argparse._SubParsersAction  # noqa: SLF001 - argparse gives this type no public name
"""Where a command adds its own parser; `Commands[Parser]` in annotations."""
