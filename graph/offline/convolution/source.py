"""What the sources of both targets share: `run`'s parameters and the sections of native text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib import resources

from ridgeline.graph.offline.emit_cpp import parameter
from ridgeline.tools.records import ArgKind, Signature


def sections(file: str, names: Iterable[str]) -> str:
    """Return the named sections of a native file, in the order asked for."""
    text = resources.files("ridgeline.graph.offline.convolution").joinpath(f"native/{file}").read_text("utf-8")
    bodies = dict(part.split("\n", 1) for part in text.split("//: ")[1:])
    return "\n".join(bodies[name].rstrip() + "\n" for name in names)


def prototype(signature: Signature, *more: str) -> str:
    """Return `run` with its parameters, called NAME_data and NAME_value, and what the target adds."""
    parameters = [parameter(a) for a in signature.args if a.kind is not ArgKind.NONE]
    listed = ",\n    ".join([*parameters, *more])
    return f'extern "C" void run(\n    {listed})'


def constant(name: str, value: int | str, kind: str = "int") -> str:
    """Return the definition of a constant."""
    return f"constexpr {kind} {name} = {value};"


def tunable(name: str, value: int, values: Iterable[int]) -> str:
    """Return the definition of a constant that a search may set to other values; with one value it stays."""
    listed = sorted({*values, value})
    offer = f"  // tune: {name} = {' | '.join(map(str, listed))}" if len(listed) > 1 else ""
    return constant(name, value) + offer


def used(definitions: list[str], text: str) -> list[str]:
    """Return the definitions whose name the text or a later definition that is kept reads, in order."""
    kept: list[str] = []
    for line in reversed(definitions):
        name = line.split("=")[0].split()[-1]
        if re.search(rf"\b{name}\b", text):
            kept.append(line)
            text += line.split("=", 1)[1]
    return kept[::-1]


def flag(*, is_set: bool) -> str:
    """Return a C++ truth value."""
    return "true" if is_set else "false"
