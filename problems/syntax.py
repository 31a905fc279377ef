"""A reference read as text: what it defines, and the same text with other sizes. Nothing here ever runs it.

The judge runs references; everyone else needs only to know that the parts are there and to write a target's sizes in.
"""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path

from ridgeline.problems.files import as_name, read_text
from ridgeline.tools.errors import ProblemError

Number = int | float

DTYPE_NAMES = ("float32", "float16", "bfloat16")
"""The texts that `sizes` may set: a reference says `getattr(torch, DTYPE)` where a target needs another type."""

_FLOAT64 = {"float64", "double", "DoubleTensor"}

REQUIRED_NAMES = {
    "Model": "define `class Model(torch.nn.Module)` at the top level",
    "get_inputs": "define `def get_inputs()` at the top level; it returns the list of arguments of forward",
}


def read_reference(path: Path, where: str, given: Path) -> tuple[str, ast.Module]:
    """Return a reference's text and its tree, once its parts are there; messages say `where` it is named, and call it `given`.

    Raises:
        ProblemError: it cannot be read, or as `parse_reference`.
    """
    source = read_text(path, where)
    return source, parse_reference(source, str(given))


def parse_reference(source: str, where: str) -> ast.Module:
    """Return the syntax tree of a reference that has the KernelBench form.

    Args:
        source: the reference's text.
        where: what a message calls it: "problem.yaml: reference: reference.py".

    Raises:
        ProblemError: not Python, or without `Model` or `get_inputs`.
    """
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        line = f"line {error.lineno}: " if error.lineno else ""
        raise ProblemError(f"{where}: {line}{error.msg}; mend the Python syntax") from None
    except ValueError as error:  # a null byte, in a Python older than 3.12
        raise ProblemError(f"{where}: {error}; save it as plain UTF-8 text") from None
    except (RecursionError, MemoryError):  # how CPython's parser says that its stack is spent
        raise ProblemError(f"{where}: an expression is nested too deeply; split it") from None
    defined = set(_defined_names(tree))
    for name, remedy in REQUIRED_NAMES.items():
        if name not in defined:
            raise ProblemError(f"{where}: has no `{name}`; {remedy}")
    return tree


def substitute_sizes(source: str, sizes: Mapping[str, Number | str], where: str) -> str:
    """Return the reference with other values in its top-level assignments; every other character stays.

    What the reference computes from a replaced constant follows by itself, since only the constant's own value changes.

    Raises:
        ProblemError: a name that is not assigned at the top level exactly once, or only together with another, or a value
            of another kind than the reference's own.
    """
    values = assigned_values(ast.parse(source))
    return _replace(source, [(_replaced(name, value, values, where), repr(value)) for name, value in sizes.items()])


def _replaced(name: str, value: Number | str, values: Mapping[str, Sequence[ast.expr | None]], where: str) -> ast.expr:
    """Return the node of the value that a size replaces."""
    if name not in values:
        raise ProblemError(
            f"{where}: the reference assigns no `{as_name(name)}` at its top level; {_near(name, values)}"
        )
    if len(values[name]) != 1:
        raise ProblemError(f"{where}: the reference assigns `{name}` more than once; assign it in one place")
    node = values[name][0]
    if node is None:
        raise ProblemError(f"{where}: the reference assigns `{name}` together with other names; give it a line")
    if isinstance(value, str) != _is_text(node):
        wanted = f"one of {', '.join(DTYPE_NAMES)}" if _is_text(node) else "a number"
        raise ProblemError(f"{where}.{name}: must be {wanted} as in the reference, got {value!r}")
    return node


def odd_counts(tree: ast.Module, sizes: Mapping[str, Number | str]) -> dict[str, str]:
    """Return the sizes below 0, or no whole numbers, that replace a whole number above 0, each with that as it is written.

    They may be meant, as a scale or an axis is; where the reference fails, they are worth a look.
    """
    values = assigned_values(tree)
    replaced = {name: values[name][0] for name in sizes if len(values.get(name, ())) == 1}
    return {
        name: ast.unparse(node)
        for name, node in replaced.items()
        if node is not None and _is_count(node) and _is_odd(sizes[name])
    }


def _is_odd(size: Number | str) -> bool:
    return isinstance(size, float) or (isinstance(size, int) and size < 0)


def is_finite(number: Number) -> bool:
    """Tell whether a float can hold a number: no infinity, and no whole number beyond its range."""
    return abs(number) <= sys.float_info.max


def top_level_numbers(tree: ast.Module) -> dict[str, Number]:
    """Return the top-level constants that are plain numbers, in order: what a target's `sizes` may replace."""
    numbers: dict[str, Number] = {}
    for name, nodes in assigned_values(tree).items():
        node = nodes[0] if len(nodes) == 1 else None
        value = node.value if isinstance(node, ast.Constant) else None
        if isinstance(value, int | float) and not isinstance(value, bool) and is_finite(value):
            numbers[name] = value
    return numbers


def named_dtypes(tree: ast.Module) -> set[str]:
    """Return the attribute names of torch that the reference mentions: {"bfloat16", "randn", …}."""
    return {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "torch"
    }


def names_float64(tree: ast.Module) -> bool:
    """Return whether the reference names float64 or what is it by default: numpy's numbers, Python's float as a dtype.

    It may name it for other things than its outputs: an output that is not in float64 is never asked for float64's digits.
    """
    return any(_is_float64(node) for node in ast.walk(tree))


def _is_float64(node: ast.AST) -> bool:
    match node:
        case ast.Attribute(attr=name) | ast.Name(id=name) | ast.Constant(value=str(name)):
            return name in _FLOAT64
        case ast.Import(names=aliases):
            return any(alias.name.partition(".")[0] == "numpy" for alias in aliases)
        case ast.ImportFrom(module=str(name), names=aliases):
            return name.partition(".")[0] == "numpy" or any(alias.name in _FLOAT64 for alias in aliases)
        case ast.keyword(arg="dtype", value=ast.Name(id="float")):
            return True
    return False


def missing_packages(tree: ast.Module) -> list[str]:
    """Return the packages that the file imports when it is loaded and that this Python has not; nothing is imported."""
    roots: dict[str, None] = {}
    for node in tree.body:
        if isinstance(node, ast.Import):
            roots |= {alias.name.split(".")[0]: None for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            roots[node.module.split(".")[0]] = None
    return [root for root in roots if root not in sys.modules and importlib.util.find_spec(root) is None]


def _defined_names(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            yield node.name
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from (alias.asname or alias.name for alias in node.names)
    yield from assigned_values(tree)


def assigned_values(tree: ast.Module) -> dict[str, list[ast.expr | None]]:
    """Map each name assigned at the top level to its value nodes; None where the value is not that name's alone."""
    values: dict[str, list[ast.expr | None]] = {}
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and node.value is not None:
            pairs = _pairs(node.target, node.value)
        elif isinstance(node, ast.AugAssign):
            pairs = [(name, None) for name, _ in _pairs(node.target, node.value)]
        elif isinstance(node, ast.Assign):
            pairs = [pair for target in node.targets for pair in _pairs(target, node.value)]
            if len(node.targets) > 1:
                pairs = [(name, None) for name, _ in pairs]
        else:
            continue
        for name, value in pairs:
            values.setdefault(name, []).append(value)
    return values


def _pairs(target: ast.expr, value: ast.expr | None) -> list[tuple[str, ast.expr | None]]:
    if isinstance(target, ast.Name):
        return [(target.id, value)]
    if not isinstance(target, ast.Tuple | ast.List):
        return []
    parts: list[ast.expr | None] = [None] * len(target.elts)
    is_starred = any(isinstance(e, ast.Starred) for e in target.elts)
    if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(parts) and not is_starred:
        parts = list(value.elts)
    return [pair for element, part in zip(target.elts, parts, strict=True) for pair in _pairs(element, part)]


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _is_count(node: ast.expr) -> bool:
    """Say whether a value is written as a whole number above 0: `64`, or `4 * 1024`."""
    match node:
        case ast.Constant(value=int(number)):
            return not isinstance(number, bool) and number > 0
        case ast.BinOp(left=left, op=ast.Add() | ast.Mult() | ast.Pow() | ast.LShift(), right=right):
            return _is_count(left) and _is_count(right)
    return False


def _near(name: str, known: Mapping[str, object]) -> str:
    close = get_close_matches(name, known, n=1, cutoff=0.5)
    if close:
        return f"did you mean `{close[0]}`?"
    return f"it assigns {', '.join(sorted(known))}" if known else "it assigns none: give its sizes names there"


def _replace(source: str, edits: list[tuple[ast.expr, str]]) -> str:
    # Columns of the syntax tree count UTF-8 bytes, and its lines end at "\n" only (the text was read with universal
    # newlines), so `splitlines` would split at a form feed too many.
    lines = [line.encode() for line in source.split("\n")]
    for node, text in sorted(edits, key=lambda edit: (edit[0].lineno, edit[0].col_offset), reverse=True):
        first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
        joined = lines[first][: node.col_offset] + text.encode() + lines[last][node.end_col_offset or 0 :]
        lines[first : last + 1] = [joined]
    return b"\n".join(lines).decode()


def has_init_inputs(reference: str | None) -> bool:
    """Say whether a reference has a `get_init_inputs`, which it may leave out: its model takes no arguments then."""
    return any(_given_name(node) == "get_init_inputs" for node in ast.walk(ast.parse(reference or "")))


def _given_name(node: ast.AST) -> str | None:
    """Return the name that a definition, an import or an assignment gives."""
    if isinstance(node, ast.FunctionDef):
        return node.name
    if isinstance(node, ast.alias):
        return node.asname or node.name
    return node.id if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else None
