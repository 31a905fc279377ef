"""What both targets' sources share: sections of native text, the prototype of `run`, the operands' addresses."""

from __future__ import annotations

from importlib import resources

from ridgeline.graph.offline.matmul.contraction import Contraction, Operand
from ridgeline.tools.records import ArgKind, ArgSpec, Role, Signature

TENSOR_TYPES = {
    "float32": "float",
    "float64": "double",
    "float16": "fp16",
    "bfloat16": "bf16",
    "bool": "bool",
    "int8": "int8_t",
    "int16": "int16_t",
    "int32": "int32_t",
    "int64": "int64_t",
    "uint8": "uint8_t",
}
SCALAR_TYPES = {"float64": "double", "int64": "int64_t", "bool": "bool"}


def native_sections(file: str) -> dict[str, str]:
    """Return the sections of a native text by the names of their `//: name` lines."""
    text = resources.files("ridgeline.graph.offline").joinpath(f"native/{file}").read_text(encoding="utf-8")
    parts = (part.split("\n", 1) for part in text.split("//: ")[1:])
    return {name: body.rstrip() + "\n" for name, body in parts}


def prototype(signature: Signature, *, cuda: bool) -> str:
    """Return the head of `run`; tensors are called NAME_data and scalars NAME_value."""
    parameters = [_parameter(a) for a in signature.args if a.kind is not ArgKind.NONE] + ["void* workspace"]
    listed = ",\n    ".join([*parameters, *(["cudaStream_t stream"] if cuda else [])])
    return f'extern "C" void run(\n    {listed}) {{'


def tunable(name: str, value: int, values: tuple[int, ...]) -> str:
    """Return the line that defines a tunable; a default outside the values becomes the last of them."""
    chosen = value if value in values else values[-1]
    return f"constexpr int {name} = {chosen};  // tune: {name} = {' | '.join(map(str, values))}"


def extents(contraction: Contraction, index: str) -> list[str]:
    """Return the constants of the product: extents, and each operand's strides in elements."""
    shape = (("BATCH", contraction.batch), ("M", contraction.m), ("N", contraction.n), ("K", contraction.k))
    unused = "[[maybe_unused]] constexpr"
    lines = [f"{unused} {index} {', '.join(f'{name} = {value}' for name, value in shape)};"]
    for name, operand in (("LEFT", contraction.left), ("RIGHT", contraction.right)):
        lines.append(f"{unused} int64_t {name}_OUTER = {operand.outer_stride}, {name}_K = {operand.k_stride};")
    return lines


def batch_offset(operand: Operand, batch: int) -> str:
    """Return where the matrix of `batch` starts, as an expression."""
    terms = [str(operand.offset)] if operand.offset or not operand.batch_terms else []
    for divisor, size, stride in operand.batch_terms:
        index = "batch" if divisor == 1 else f"batch / {divisor}"
        terms.append(f"int64_t{{{index if divisor * size == batch else f'({index}) % {size}'}}} * {stride}")
    return " + ".join(terms)


def _parameter(arg: ArgSpec) -> str:
    if arg.kind is ArgKind.SCALAR:
        return f"{SCALAR_TYPES[arg.dtype]} {arg.name}_value"
    const = "" if arg.role is Role.OUTPUT else "const "
    return f"{const}{TENSOR_TYPES[arg.dtype]}* __restrict__ {arg.name}_data"
