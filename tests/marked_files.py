"""Files of tests that `-m` leaves out unread: whatever has one of some marks names that mark in its own file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import product
from pathlib import Path

import pytest
from _pytest.mark.expression import Expression

NAMED = ("gpu", "sandboxed", "timing")
"""Marks that are given in the file of the test alone; another may come from a conftest or a table of parameters."""
_MARK = re.compile(rf"\bmark\.({'|'.join(NAMED)})\b")


class MarkedFiles:
    """Imports no file without a test that `-m` may take: to import all takes a core for ten seconds."""

    def __init__(self, expression: str) -> None:
        self._expression = Expression.compile(expression) if expression else None
        self._others = set(re.findall(r"\w+", expression)) - set(NAMED)

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Return True for a file none of whose tests is taken, whichever of its marks they have."""
        expression = self._expression
        if expression is None or not re.fullmatch(r"test_\w+\.py", collection_path.name):
            return None
        possible = _subsets(self._others | _named_in(collection_path))
        return None if any(expression.evaluate(partial(_is_in, marks)) for marks in possible) else True

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """End the run where a test has a mark that its file does not name: `-m` would not find it."""
        named: dict[Path, set[str]] = {}
        for item in items:
            if item.path not in named:
                named[item.path] = _named_in(item.path)
            missing = {name for name in NAMED if item.get_closest_marker(name)} - named[item.path]
            if missing:
                raise pytest.UsageError(f"{item.nodeid}: write mark.{min(missing)} in {item.path.name} itself")


def _is_in(marks: set[str], name: str, /, **_: object) -> bool:
    return name in marks


def _named_in(path: Path) -> set[str]:
    return set(_MARK.findall(path.read_text()))


def _subsets(names: Iterable[str]) -> Iterator[set[str]]:
    ordered = sorted(names)
    for taken in product((False, True), repeat=len(ordered)):
        yield {name for name, is_taken in zip(ordered, taken, strict=True) if is_taken}
