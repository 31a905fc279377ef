"""A public name of graph/ means one thing: no two modules have a class or a function of one name."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PARALLEL = ("graph/cli/commands/", "graph/offline/", "graph/shipping/shipped/")
"""Folders whose modules are alike by design: commands, a family's parts for each device, what a package is shipped with."""
PUBLISHED = {"Evaluation", "Verdict"}
"""Records of the library and of the server's answers, which are named as those of tools/ that they tell of."""


def public_names(folder: str) -> Iterator[tuple[str, str]]:
    """Yield each module's public classes and functions, an overloaded one once."""
    for module in sorted((ROOT / folder).rglob("*.py")):
        path = module.relative_to(ROOT).as_posix()
        nodes = ast.parse(module.read_text(encoding="utf-8")).body
        kinds = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        names = {node.name for node in nodes if isinstance(node, kinds) and not node.name.startswith("_")}
        yield from ((name, path) for name in sorted(names))


def test_no_two_modules_have_a_class_or_a_function_of_one_name() -> None:
    places: dict[str, list[str]] = {}
    for name, path in public_names("graph"):
        if not (path.startswith(PARALLEL) and places.get(name, [path])[0].startswith(PARALLEL)):
            places.setdefault(name, []).append(path)
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}


def test_no_class_is_named_as_a_record_of_tools_but_those_that_are_published() -> None:
    records = {name for name, _ in public_names("tools/records") if name[0].isupper()}
    assert {name for name, _ in public_names("graph") if name in records} == PUBLISHED
