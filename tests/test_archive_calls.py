"""A coroutine calls archive and journal by `run_whole`: a cancelled one ends after its call, before anything is closed."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = ("graph", "tools", "checkpoints", "problems")
IN_A_SEARCH = ("graph/nodes/", "graph/search/", "graph/certificate/", "graph/models/")
"""Folders whose coroutines run while the search's archive is open, and are cancelled with it."""
KEEPERS = {"archive", "journal", "context", "store", "mailbox", "later", "steering", "bank"}
"""Names of what writes to an archive or holds one."""


def calls_that_leave_their_thread(source: str, *, is_in_a_search: bool = False) -> list[int]:
    """Return the lines that give `asyncio.to_thread` an archive, what holds one, or a method of either."""
    tree = ast.parse(source)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _name(node.func) == "to_thread"]
    return [call.lineno for call in calls if is_in_a_search or _names(call) & KEEPERS]


def _name(node: ast.AST) -> str | None:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else None


def _names(call: ast.Call) -> set[str]:
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    names = (_name(node) for each in given for node in ast.walk(each))
    return {name.lstrip("_").lower() for name in names if name}


@pytest.mark.parametrize("room", ROOMS)
def test_no_call_leaves_its_thread_with_an_archive(room: str) -> None:
    modules = {module.relative_to(ROOT).as_posix(): module for module in (ROOT / room).rglob("*.py")}
    found = [
        f"{name}:{line}"
        for name, module in sorted(modules.items())
        for line in calls_that_leave_their_thread(
            module.read_text(encoding="utf-8"), is_in_a_search=name.startswith(IN_A_SEARCH)
        )
    ]
    assert found == []


@pytest.mark.parametrize(
    "call",
    [
        "asyncio.to_thread(context.archive.idea, name)",
        "asyncio.to_thread(self._journal.totals)",
        "asyncio.to_thread(Archive.open, file)",
        "asyncio.to_thread(Steering(archive).told, kind)",
        "asyncio.to_thread(_store, context, best)",
        "asyncio.to_thread(lambda: held(store=self._engine.store))",
        "to_thread(read, given=[archive])",
    ],
)
def test_a_call_that_is_given_an_archive_is_found(call: str) -> None:
    assert calls_that_leave_their_thread(call) == [1]


def test_a_call_without_an_archive_is_let_be_outside_of_a_search() -> None:
    call = "asyncio.to_thread(find_problem, problem)"
    assert calls_that_leave_their_thread(call) == []
    assert calls_that_leave_their_thread(call, is_in_a_search=True) == [1]
