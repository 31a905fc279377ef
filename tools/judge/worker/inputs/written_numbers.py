"""The numbers that are written in a reference's source: limits, rates, and identities that mean something of their own."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import TypeGuard

import torch

_RANGE = torch.iinfo(torch.int64)


def numbers_written(source: str) -> list[int | float]:
    """Return the numbers in the order in which a walk meets them; one behind a minus also as it is without."""
    return [number for node in ast.walk(ast.parse(source)) if (number := _number(node)) is not None]


def whole_numbers_written(source: str) -> torch.Tensor:
    """Return those of them that are whole and fit 64 bits, each once, of shape (count,): a mark among words, say."""
    whole = {number for number in numbers_written(source) if _is_whole(number)}
    return torch.tensor(sorted(whole), dtype=torch.int64)


def whole_runs_written(source: str) -> list[tuple[int, ...]]:
    """Return the tuples and lists of two or more whole numbers, each once, in their order: a phrase that is looked for, say.

    A name among them stands for the last whole number that is assigned to it, in the module before any function or class.
    """
    tree = ast.parse(source)
    known = {
        target.id: value
        for node in (*ast.walk(tree), *tree.body)
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name) and (value := _whole(node.value, {})) is not None
    }
    listed = (node.elts for node in ast.walk(tree) if isinstance(node, ast.Tuple | ast.List))
    runs = ([_whole(each, known) for each in elements] for elements in listed)
    found = (tuple(n for n in run if n is not None) for run in runs if None not in run and len(run) > 1)
    return list(dict.fromkeys(found))


def _whole(node: ast.expr, known: Mapping[str, int]) -> int | None:
    """Return the whole number that an expression writes or names, None for any other."""
    number = known.get(node.id) if isinstance(node, ast.Name) else _number(node)
    return number if _is_whole(number) else None


def _is_whole(number: float | None) -> TypeGuard[int]:
    return isinstance(number, int) and _RANGE.min <= number <= _RANGE.max


def _number(node: ast.AST) -> int | float | None:
    """Return the number that an expression writes with its sign, None for any other."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        number = _number(node.operand)
        return None if number is None else -number
    value = node.value if isinstance(node, ast.Constant) else None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
