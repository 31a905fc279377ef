"""The frame of every family's source: `run`'s parameters, constants and tunables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ridgeline.graph.offline.program.ir import Load
from ridgeline.tools.build.header import C_TYPES, SCALAR_TYPES
from ridgeline.tools.records.problem import ArgSpec, Signature
from ridgeline.tools.records.vocabulary import ArgKind, Role


def parameters(signature: Signature) -> list[str]:
    """Return the parameters of `run`: tensors are called NAME_data and scalars NAME_value."""
    return [_parameter(a) for a in signature.args if a.kind is not ArgKind.NONE]


def prototype(signature: Signature, *more: str) -> str:
    """Return the declaration of `run`, with the device's own parameters at the end."""
    listed = ",\n    ".join([*parameters(signature), *more])
    return f'extern "C" void run(\n    {listed})'


def memory_type(load: Load) -> str:
    """Return the type to read a load as: a bool is a byte of 0 or 1, since g++ 12 does not vectorise loads of bool."""
    return "uint8_t" if load.dtype == "bool" else C_TYPES[load.dtype]


def constant(name: str, value: int | str, kind: str = "int") -> str:
    """Return the definition of a constant."""
    return f"constexpr {kind} {name} = {value};"


def tunable(name: str, value: int, values: Sequence[int], kind: str = "int") -> str:
    """Return the definition of a constant that a search may set; a default outside the values becomes the last."""
    chosen = value if value in values else values[-1]
    return f"{constant(name, chosen, kind)}  // tune: {name} = {' | '.join(map(str, values))}"


def choice(name: str, value: int, values: Iterable[int]) -> str:
    """Return a tunable, or a plain constant where there is nothing to choose."""
    listed = list(values) or [value]
    return tunable(name, value, listed) if len(listed) > 1 else constant(name, listed[0])


def flag(*, is_set: bool) -> str:
    """Return a C++ truth value."""
    return "true" if is_set else "false"


def used(definitions: list[str], text: str) -> list[str]:
    """Return the definitions whose name the text, or a later definition that is kept, reads; in order."""
    kept: list[str] = []
    for line in reversed(definitions):
        name = line.split("=")[0].split()[-1]
        if re.search(rf"\b{name}\b", text):
            kept.append(line)
            text += line.split("=", 1)[1]
    return kept[::-1]


def _parameter(arg: ArgSpec) -> str:
    if arg.kind is ArgKind.SCALAR:
        return f"{SCALAR_TYPES[arg.dtype]} {arg.name}_value"
    const = "" if arg.role is Role.OUTPUT else "const "
    return f"{const}{C_TYPES[arg.dtype]}* __restrict__ {arg.name}_data"
