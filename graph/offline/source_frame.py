"""What every family's source is framed by: `run`'s parameters, constants and tunables, sections of native text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import resources

from ridgeline.graph.offline.ir import Load
from ridgeline.tools.build.header import C_TYPES, SCALAR_TYPES
from ridgeline.tools.records.problem import ArgSpec, Signature
from ridgeline.tools.records.vocabulary import ArgKind, Role


def parameters(signature: Signature) -> list[str]:
    """Return `run`'s parameters for its arguments: tensors are called NAME_data and scalars NAME_value."""
    return [_parameter(a) for a in signature.args if a.kind is not ArgKind.NONE]


def prototype(signature: Signature, *more: str) -> str:
    """Return the declaration of `run`, with the parameters that the target adds."""
    listed = ",\n    ".join([*parameters(signature), *more])
    return f'extern "C" void run(\n    {listed})'


def memory_type(load: Load) -> str:
    """Return what a load is read as: g++ 12 does not vectorise loads of bool, which is one byte of 0 or 1."""
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


def native_sections(file: str) -> dict[str, str]:
    """Return the sections of a native text beside this module by what follows `//: ` above each."""
    text = resources.files("ridgeline.graph.offline").joinpath(file).read_text(encoding="utf-8")
    parts = (part.split("\n", 1) for part in text.split("//: ")[1:])
    return {title: body.rstrip() + "\n" for title, body in parts}


def _parameter(arg: ArgSpec) -> str:
    if arg.kind is ArgKind.SCALAR:
        return f"{SCALAR_TYPES[arg.dtype]} {arg.name}_value"
    const = "" if arg.role is Role.OUTPUT else "const "
    return f"{const}{C_TYPES[arg.dtype]}* __restrict__ {arg.name}_data"
