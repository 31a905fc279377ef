"""The published schemas name every word of the records' vocabulary, and no other."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Any

import pytest

from ridgeline.checkpoints.result import read_schema
from ridgeline.tools.records.vocabulary import Interface, Label, Origin, PrecisionClass, ReasonCode, Status

VOCABULARY: dict[str, type[StrEnum]] = {
    "interface": Interface,
    "labels": Label,
    "origin": Origin,
    "precision_class": PrecisionClass,
    "reason_code": ReasonCode,
    "status": Status,
}


def enums(node: Any, name: str = "") -> Iterator[tuple[str, set[str]]]:
    """Yield each enum with the property that it is a value of."""
    if isinstance(node, list):
        for part in node:
            yield from enums(part, name)
    elif isinstance(node, dict):
        if "enum" in node:
            yield name, {value for value in node["enum"] if value is not None}
        for key, part in node.items():
            if key == "properties":
                for inner, schema in part.items():
                    yield from enums(schema, inner)
            else:
                yield from enums(part, name)


@pytest.mark.parametrize("schema", ["candidate", "certificate", "evaluation", "result"])
def test_a_schema_lists_the_whole_vocabulary(schema: str) -> None:
    found = [(name, values) for name, values in enums(read_schema(schema)) if name in VOCABULARY]
    assert len(found) >= 3
    for name, values in found:
        assert values == {member.value for member in VOCABULARY[name]}, name
