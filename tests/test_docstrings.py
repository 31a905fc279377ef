"""A docstring begins with its subject: a reader who searches for a thing finds what the thing is.

The errors that it tells of stand in a section of their own.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = ("graph", "tools", "checkpoints", "problems")
NO_SUBJECT = re.compile(r"(What|Whether|Whose|Which|How|Why|Where|When|It|They|Its|Their)\b")
RAISES_INLINE = re.compile(r"(?:^|[.;] )Raises(?! \([^)]*\):$)(?!:$).*", re.MULTILINE)
DESCRIPTIONS = "Section"
"""The base of classes whose docstrings the published schema gives as descriptions, each beside the name of its key."""


def folders_with_modules() -> list[Path]:
    return sorted({module.parent.relative_to(ROOT) for room in ROOMS for module in (ROOT / room).rglob("*.py")})


def introduced_without_a_subject(source: str) -> list[str]:
    """Return the first lines of docstrings, of the module and its classes, that begin with another word."""
    tree = ast.parse(source)
    classes = (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    nodes = [tree, *(node for node in classes if DESCRIPTIONS not in {ast.unparse(base) for base in node.bases})]
    firsts = [(ast.get_docstring(node) or "").partition("\n")[0] for node in nodes]
    return [first for first in firsts if NO_SUBJECT.match(first)]


def errors_told_inline(source: str) -> list[str]:
    """Return the sentences of docstrings that tell of an error outside of a section `Raises:`."""
    return [found.group() for text in _docstrings(source) for found in RAISES_INLINE.finditer(text)]


def _docstrings(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""


@pytest.mark.parametrize("folder", folders_with_modules(), ids=str)
def test_every_module_and_class_is_introduced_by_its_subject(folder: Path) -> None:
    found = [(module.name, introduced_without_a_subject(_text(module))) for module in (ROOT / folder).glob("*.py")]
    assert [(name, lines) for name, lines in found if lines] == []


@pytest.mark.parametrize("room", ROOMS)
def test_every_error_that_a_docstring_tells_of_stands_in_its_section(room: str) -> None:
    found = [(module.name, errors_told_inline(_text(module))) for module in (ROOT / room).rglob("*.py")]
    assert [(name, lines) for name, lines in found if lines] == []


def _text(module: Path) -> str:
    return module.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("doc", "found"),
    [
        ("Return it.\n\n    Raises ValueError for a wrong one.\n    ", ["Raises ValueError for a wrong one."]),
        ("Return it. Raises ValueError for a wrong one.", [". Raises ValueError for a wrong one."]),
        ("Return it.\n\n    Raises:\n        ValueError: it is wrong.\n    ", []),
        ("Return it.\n\n    Raises (the node):\n        ValueError: it is wrong.\n    ", []),
        ("Return whether it raises.", []),
    ],
)
def test_an_error_outside_of_a_section_is_found(doc: str, found: list[str]) -> None:
    assert errors_told_inline(f'def call():\n    """{doc}"""\n') == found


def test_a_description_of_the_published_schema_may_begin_with_another_word() -> None:
    assert introduced_without_a_subject('class Budget(Section):\n    """What may be used."""\n') == []
    assert introduced_without_a_subject('class Budget:\n    """What may be used."""\n') == ["What may be used."]
