"""Names of a reference graph's operations, for those who must not import torch."""

from __future__ import annotations


def base_name(op: str) -> str:
    """Return "mul" for "aten.mul.Tensor"; the name of another namespace's operation stays as it is."""
    parts = op.split(".")
    return parts[1] if len(parts) > 1 and parts[0] == "aten" else op
