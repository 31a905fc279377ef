"""C++ for the row program's operations, with the library's functions or with inline polynomials."""

from __future__ import annotations

import math

INLINE = ("exp", "log", "erf", "gelu", "sigmoid", "silu", "tanh")
"""Operations that have an inline polynomial."""

FORMS = {
    "add": "{0} + {1}",
    "sub": "{0} - {1}",
    "mul": "{0} * {1}",
    "div": "{0} / {1}",
    "neg": "-{0}",
    "square": "{0} * {0}",
    "reciprocal": "1.0f / {0}",
    "rsqrt": "1.0f / std::sqrt({0})",
    "gelu": "0.5f * {0} * (1.0f + std::erf({0} * 0.70710678f))",
    "sigmoid": "1.0f / (1.0f + std::exp(-{0}))",
    "silu": "{0} / (1.0f + std::exp(-{0}))",
    "relu": "{0} < 0 ? 0 : {0}",  # NaN fails the comparison and stays
    "at_least": "{0} < {1} ? {1} : {0}",
    "at_most": "{0} > {1} ? {1} : {0}",
    "maximum": "{0} < {1} || {1} != {1} ? {1} : {0}",
    "minimum": "{0} > {1} || {1} != {1} ? {1} : {0}",
    "where": "{0} != 0 ? {1} : {2}",
    "to_float": "static_cast<float>({0})",
    "eq": "{0} == {1}",
    "ne": "{0} != {1}",
    "lt": "{0} < {1}",
    "le": "{0} <= {1}",
    "gt": "{0} > {1}",
    "ge": "{0} >= {1}",
    "and": "{0} & {1}",
    "or": "{0} | {1}",
    "not": "{0} == 0",
    "isnan": "{0} != {0}",
    "isinf": "std::fabs({0}) == __builtin_inff()",
    "abs": "std::abs({0})",
    "round": "std::rint({0})",  # halves to even, as torch rounds
}
LIBRARY = (
    "exp",
    "exp2",
    "log",
    "log2",
    "log1p",
    "expm1",
    "tanh",
    "erf",
    "sqrt",
    "sin",
    "cos",
    "floor",
    "ceil",
    "trunc",
    "pow",
)


def expression(op: str, names: list[str], *, inline: bool) -> str:
    """Return C++ for one operation on named operands. A KeyError is a rule for an operation that has no C++."""
    if (inline and op in INLINE) or op in LIBRARY:
        return f"{function(op, inline=inline)}({', '.join(names)})"
    return FORMS[op].format(*names)


def function(op: str, *, inline: bool) -> str:
    """Return the name of a function of one float."""
    return f"rl_{op}" if inline and op in INLINE else f"std::{op}"


def register_type(ctype: str) -> str:
    """Return a value's type between operations: truth is an int, since g++ 12 does not vectorise bool chains."""
    return "int32_t" if ctype == "bool" else ctype


def literal(value: float, ctype: str = "float") -> str:
    """Return a C++ literal; an infinity is the variable `infinite`, whose value the compiler does not know.

    For a known infinity g++ 12 gives masked elements a path of their own through exp and vectorises nothing.
    """
    if ctype == "bool":
        return "true" if value else "false"
    if ctype == "int64_t":
        return f"int64_t{{{int(value)}}}"
    if math.isnan(value):
        return '__builtin_nanf("")'
    if math.isinf(value):
        return "infinite" if value > 0 else "(-infinite)"
    text = f"{value:.9g}"
    text += "" if any(c in text for c in ".e") else ".0"
    return f"({text}f)" if value < 0 else f"{text}f"
