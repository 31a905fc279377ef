"""The numbers that are written in a reference's source: limits, rates, and identities that mean something of their own."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from typing import TypeGuard

import torch

_RANGE = torch.iinfo(torch.int64)
_BITS = 64
_EQUALITIES = (ast.Eq, ast.NotEq)
_COMPARISONS = (
    "eq",
    "ne",
    "gt",
    "ge",
    "lt",
    "le",
    "greater",
    "greater_equal",
    "less",
    "less_equal",
    "threshold",
    "heaviside",
)
"""Functions and methods that compare as operators do."""


class WrittenNumbers:
    """The numbers of one source, whose tree is read once."""

    def __init__(self, source: str) -> None:
        tree = ast.parse(source)
        self._nodes = list(ast.walk(tree))
        self._known = _named((*self._nodes, *tree.body))  # a module's name stands for its own number

    def numbers(self) -> list[int | float]:
        """Return the numbers in the order in which a walk meets them; one behind a minus also as it is without."""
        return [number for node in self._nodes if (number := _number(node)) is not None]

    def whole(self) -> torch.Tensor:
        """Return those of them that are whole and fit 64 bits, each once, of shape (count,): a mark among words, say.

        What is made of them by sums, products and powers counts as written: the last but five of so many words.
        """
        made = (_whole(node, self._known) for node in self._nodes if isinstance(node, ast.BinOp))
        whole = {number for number in (*self.numbers(), *made) if _is_whole(number)}
        return torch.tensor(sorted(whole), dtype=torch.int64)

    def whole_runs(self) -> list[tuple[int, ...]]:
        """Return the tuples and lists of two or more whole numbers, each once, in their order: a phrase that is looked for.

        So are bytes, and text that is encoded. A name among the numbers stands for the last whole number that is assigned to
        it, in the module before any function or class.
        """
        runs = [run for node in self._nodes if (run := _run_of(node, self._known)) is not None and len(run) > 1]
        return list(dict.fromkeys(runs))

    def thresholds(self) -> tuple[float, ...]:
        """Return the floating-point numbers that something is compared with, by themselves or by a name, each once."""
        called = (
            each
            for node in self._nodes
            if isinstance(node, ast.Call) and _name(node.func) in _COMPARISONS
            for each in node.args
        )
        return self._floats_of((*self._compared(ast.cmpop), *called))

    def codes(self) -> tuple[float, ...]:
        """Return those that something is, or is not, equal to, each once: codes for a missing value."""
        return self._floats_of(self._compared(*_EQUALITIES))

    def _compared(self, *operators: type[ast.cmpop]) -> tuple[ast.expr, ...]:
        comparisons = (node for node in self._nodes if isinstance(node, ast.Compare))
        chosen = (node for node in comparisons if any(isinstance(each, operators) for each in node.ops))
        return tuple(operand for node in chosen for operand in (node.left, *node.comparators))

    def _floats_of(self, operands: Iterable[ast.expr]) -> tuple[float, ...]:
        pairs = ((node.targets, _number(node.value)) for node in self._nodes if isinstance(node, ast.Assign))
        named = {
            name: number for targets, number in pairs if number is not None for each in targets if (name := _name(each))
        }
        found = (number if (number := _number(each)) is not None else named.get(_name(each) or "") for each in operands)
        return tuple(dict.fromkeys(number for number in found if isinstance(number, float)))


def _name(node: ast.AST) -> str | None:
    """Return what a name, or an attribute of any object, is called."""
    match node:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return None


def _named(nodes: Iterable[ast.AST]) -> dict[str, int]:
    """Return the whole numbers that names stand for, by the last of these nodes that assigns one."""
    known: dict[str, int] = {}
    for node in nodes:
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        value = _whole(node.value, known)
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        known |= {each.id: value for each in targets if isinstance(each, ast.Name) and value is not None}
    return known


def _run_of(node: ast.AST, known: Mapping[str, int]) -> tuple[int, ...] | None:
    """Return the whole numbers that an expression lists, None for any other."""
    if isinstance(node, ast.Tuple | ast.List):
        found = [_whole(each, known) for each in node.elts]
        return None if None in found else tuple(number for number in found if number is not None)
    match node:
        case ast.Constant(value=bytes() as written):
            return tuple(written)
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str() as text), attr="encode")):
            return tuple(text.encode())
    return None


def _whole(node: ast.expr, known: Mapping[str, int]) -> int | None:
    """Return the whole number that an expression writes, names or makes of such ones, None for any other."""
    number: float | None
    match node:
        case ast.BinOp():
            number = _made(node, known)
        case ast.Name():
            number = known.get(node.id)
        case _:
            number = _number(node)
    return number if _is_whole(number) else None


def _made(node: ast.BinOp, known: Mapping[str, int]) -> int | None:
    left, right = _whole(node.left, known), _whole(node.right, known)
    if left is None or right is None:
        return None
    match node.op:
        case ast.Add():
            return left + right
        case ast.Sub():
            return left - right
        case ast.Mult():
            return left * right
        case ast.FloorDiv() if right:
            return left // right
        case ast.LShift() if 0 <= right < _BITS:
            return left << right
        case ast.Pow() if 0 <= right < _BITS:
            return int(left**right)
    return None


def _is_whole(number: float | None) -> TypeGuard[int]:
    return isinstance(number, int) and _RANGE.min <= number <= _RANGE.max


def _number(node: ast.AST) -> int | float | None:
    """Return the number that an expression writes with its sign, None for any other."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        number = _number(node.operand)
        return None if number is None else -number
    value = node.value if isinstance(node, ast.Constant) else None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
