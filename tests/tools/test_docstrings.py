"""A docstring begins with its subject: a reader who searches for a thing finds what the thing is."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

TOOLS = Path(__file__).parents[2] / "tools"
NO_SUBJECT = re.compile(r"(What|Whether|Whose|Which|How|Why|Where|When|It|They|Its|Their)\b")


def introduced_without_a_subject(path: Path) -> list[str]:
    """Return the first lines of docstrings, of the module and its classes, that begin with another word."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = [tree, *(node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))]
    firsts = [(ast.get_docstring(node) or "").partition("\n")[0] for node in nodes]
    return [first for first in firsts if NO_SUBJECT.match(first)]


@pytest.mark.parametrize(
    "folder", sorted({module.parent for module in TOOLS.rglob("*.py")}), ids=lambda path: path.name
)
def test_every_module_and_class_is_introduced_by_its_subject(folder: Path) -> None:
    assert [line for module in folder.glob("*.py") for line in introduced_without_a_subject(module)] == []
