"""The product's extents and the operands' addresses, the same for both devices."""

from __future__ import annotations

from ridgeline.graph.offline.matmul.read import Contraction, Operand


def extents(contraction: Contraction, index: str) -> list[str]:
    """Return the constants of the product: extents, and each operand's strides in elements."""
    shape = (("BATCH", contraction.batch), ("M", contraction.m), ("N", contraction.n), ("K", contraction.k))
    unused = "[[maybe_unused]] constexpr"
    lines = [f"{unused} {index} {', '.join(f'{name} = {value}' for name, value in shape)};"]
    for name, operand in (("LEFT", contraction.left), ("RIGHT", contraction.right)):
        lines.append(f"{unused} int64_t {name}_OUTER = {operand.outer_stride}, {name}_K = {operand.k_stride};")
    return lines


def batch_offset(operand: Operand, batch: int) -> str:
    """Return the offset of the matrix of `batch`, as an expression."""
    terms = [str(operand.offset)] if operand.offset or not operand.batch_terms else []
    for divisor, size, stride in operand.batch_terms:
        index = "batch" if divisor == 1 else f"batch / {divisor}"
        terms.append(f"int64_t{{{index if divisor * size == batch else f'({index}) % {size}'}}} * {stride}")
    return " + ".join(terms)
