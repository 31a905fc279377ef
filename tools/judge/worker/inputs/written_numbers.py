"""The numbers that are written in a reference's source: limits, rates, and identities that mean something of their own."""

from __future__ import annotations

import ast
from typing import TypeGuard

import torch

_RANGE = torch.iinfo(torch.int64)


def numbers_written(source: str) -> list[int | float]:
    """Return the numbers in the order in which a walk meets them; one behind a minus also as it is without."""
    found: list[int | float] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
            found += [-value for value in (node.operand.value,) if _is_number(value)]
        elif isinstance(node, ast.Constant) and _is_number(node.value):
            found.append(node.value)
    return found


def whole_numbers_written(source: str) -> torch.Tensor:
    """Return those of them that are whole and fit 64 bits, each once, of shape (count,): a mark among words, say."""
    whole = {n for n in numbers_written(source) if isinstance(n, int) and _RANGE.min <= n <= _RANGE.max}
    return torch.tensor(sorted(whole), dtype=torch.int64)


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)
