"""C++ for the place of an argument's element: `offset + sum(row // divisor % size * stride) + col * col_stride`."""

from __future__ import annotations

from ridgeline.graph.offline.program.ir import Load


def row_start(load: Load, rows: int) -> str:
    """Return the offset of the first element of `row`."""
    terms = [str(load.offset)] if load.offset or not load.row_terms else []
    terms += [f"{_place('row', divisor, size, rows)} * {stride}" for divisor, size, stride in load.row_terms]
    return " + ".join(terms)


def element_offset(load: Load, rows: int) -> str:
    """Return the offset of the element at `row` and `col`."""
    terms = [str(load.offset)] if load.offset or not (load.row_terms or load.col_stride) else []
    for divisor, size, stride in load.row_terms:
        place = _place("row", divisor, size, rows)
        terms.append(place if stride == 1 else f"{place} * {stride}")
    if load.col_stride:
        terms.append("col" if load.col_stride == 1 else f"col * {load.col_stride}")
    return " + ".join(terms)


def _place(index: str, divisor: int, size: int, extent: int) -> str:
    """Return `index // divisor % size`, without the operations that change nothing below `extent`."""
    quotient = index if divisor == 1 else f"{index} / {divisor}"
    return quotient if divisor * size == extent else f"{quotient} % {size}"
