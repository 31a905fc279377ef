"""Reading what a user wrote: text and YAML, with one line that says what is wrong and where."""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from ridgeline.tools.errors import ProblemError

LARGEST_BYTES = 32 << 20
"""No text of a problem is near it; a device or a core dump is beyond."""
LARGEST_YAML_CHARS = 256 << 10
"""Of a YAML file: the parser, which is written in Python, takes a core for three seconds."""
MOST_KEYS = 10_000
"""Of one mapping: `<<` can repeat a short one without end."""
_ENDING = ("while parsing a flow ", "while scanning a quoted ")
"""The parser's words for what a bracket or a quote begins, which another one ends."""
LONGEST_SHOWN = 60
"""Characters of a value in a message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemPlace:
    """The place that a problem was read from."""

    path: Path  # reference and seeds are relative to its folder
    given: Path  # as its reader gave it, for messages


def read_text(path: Path, where: str) -> str:
    """Return a UTF-8 text file whose lines end as Python's do, at LF.

    Raises:
        ProblemError: `where` says for whom it was read.
    """
    try:
        with open(path, "rb", opener=_without_waiting) as file:
            status = os.fstat(file.fileno())
            data = file.read(LARGEST_BYTES + 1) if stat.S_ISREG(status.st_mode) else None
    except FileNotFoundError:
        raise ProblemError(f"{where}: {_shown(path)} does not exist; mend the path") from None
    except IsADirectoryError:
        raise ProblemError(f"{where}: {_shown(path)} is a folder; name a file, or put one in its place") from None
    except OSError as error:
        raise ProblemError(
            f"{where}: {_shown(path)} cannot be read ({error.strerror}); mend the path or its rights"
        ) from None
    except ValueError as error:  # a null byte in the path
        raise ProblemError(f"{where}: {as_words(str(path))} is no path ({error}); mend it") from None
    if data is None:
        raise ProblemError(f"{where}: {_shown(path)} is not a file; mend the path")
    if len(data) > LARGEST_BYTES:
        raise ProblemError(f"{where}: {_shown(path)} is larger than {LARGEST_BYTES >> 20} MiB; mend the path")
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError:
        raise ProblemError(f"{where}: {_shown(path)} is not UTF-8 text; save it as UTF-8") from None


def _shown(path: Path) -> str:
    return str(path) if str(path).isprintable() else repr(str(path))


def _without_waiting(path: str, flags: int) -> int:
    """Open a pipe that nobody writes to as everything else, at once."""
    return os.open(path, flags | os.O_NONBLOCK)


def read_yaml(path: Path) -> dict[str, Any]:
    """Return the mapping that a YAML file holds.

    Raises:
        ProblemError: no such file, no YAML (with the line), too long a one, a key written twice, or no mapping.
    """
    text = read_text(path, "problem")
    if len(text) > LARGEST_YAML_CHARS:
        most = f"{LARGEST_YAML_CHARS >> 10} Ki characters"
        raise ProblemError(f"{path}: has {len(text)} characters, more than {most}; leave some out")
    try:
        data = yaml.load(text, Loader=_UniqueKeyLoader)  # noqa: S506  # a SafeLoader
    except yaml.MarkedYAMLError as error:
        raise ProblemError(f"{path}: {_mistake(error, text)}; mend it") from None
    except RecursionError:
        raise ProblemError(f"{path}: lists or mappings are nested too deeply; mend the YAML") from None
    except yaml.YAMLError as error:
        raise ProblemError(f"{path}: not valid YAML: {' '.join(str(error).split())}; mend it") from None
    if not isinstance(data, dict):
        found = "nothing" if data is None else as_words(data)
        raise ProblemError(f"{path}: holds {found}; write `name:` and `reference:` at least, see docs/problem.md")
    return data


def _mistake(error: yaml.MarkedYAMLError, text: str) -> str:
    """Return the line of a mistake in YAML and what it is; of a bracket or a quote that nothing ends, where it begins."""
    mark, begun = error.problem_mark, error.context_mark
    if mark is None:
        return f"not valid YAML: {error.problem}"
    last = max(1, len(text.rstrip().splitlines()))
    said = f"line {min(mark.line + 1, last)}: not valid YAML: {error.problem}"
    if begun is None or begun.line >= mark.line or not str(error.context).startswith(_ENDING):
        return said
    if mark.line >= last:
        return f"line {begun.line + 1}: not valid YAML: what begins here does not end: {error.problem}"
    return f"{said}, in what begins on line {begun.line + 1}"


def as_words(value: object) -> str:
    """Return a value as a message shows it: short, on one line."""
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    try:
        text = repr(value)
    except ValueError:  # Python does not write a whole number of more than 4300 digits
        return "a whole number of thousands of digits"
    return text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 3] + "…"


def as_name(name: str) -> str:
    """Return a key or a glob as a message shows it: as it is, but short and on one line."""
    return name if len(name) <= LONGEST_SHOWN and name.isprintable() else as_words(name)


class _UniqueKeyLoader(yaml.SafeLoader):
    """YAML without tags, in which a key written twice is a mistake instead of a silent choice.

    Not ruamel.yaml, which refuses such keys by itself: it reads YAML 1.2, where `yes` and `on` are text and `017`
    is 17, and langchain-core brings PyYAML anyway.
    """

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._flat: set[yaml.Node] = set()

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Put what `<<` names among the mapping's own keys, which are looked at before: theirs come first."""
        if node in self._flat:
            return
        self._flat.add(node)
        _refuse_twice(node)
        super().flatten_mapping(node)
        if len(node.value) > MOST_KEYS:
            raise yaml.MarkedYAMLError(problem=f"more than {MOST_KEYS} keys", problem_mark=node.start_mark)

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:  # noqa: FBT001, FBT002  # PyYAML's
        """Return a node's value; what PyYAML raises for a scalar that its type cannot have gets the line and the text."""
        try:
            return super().construct_object(node, deep=deep)
        except (ValueError, KeyError, AttributeError) as error:
            reason = f" ({error})" if isinstance(error, ValueError) else ""
            what = f"{as_words(node.value)} is no {node.tag.rpartition(':')[2]}{reason}"
            raise yaml.MarkedYAMLError(problem=what, problem_mark=node.start_mark) from None


def _refuse_twice(node: yaml.MappingNode) -> None:
    seen: set[Any] = set()
    for key_node, _ in node.value:
        key = key_node.value if isinstance(key_node, yaml.ScalarNode) else None
        if key is not None and key in seen and key != "<<":
            raise yaml.MarkedYAMLError(problem=f"`{as_name(key)}` is written twice", problem_mark=key_node.start_mark)
        seen.add(key)


# YAML 1.1, which PyYAML reads, takes `1e3` for text; YAML 1.2 and every reader of a budget take it for a number.
_UniqueKeyLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?[0-9][0-9_]*(\.[0-9_]*)?[eE][-+]?[0-9]+"), list("-+0123456789")
)
