"""The modes in which the judge sees every operation of a reference: torch's own, ready before the first run in one.

Each dispatch of a mode goes through torch._dynamo. Its import takes a core for a second, which would count as the
reference's time, and is incomplete where it happens within a mode.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import torch
import torch._dynamo  # imported for what it makes ready
from torch.utils._python_dispatch import TorchDispatchMode

__all__ = ["TorchDispatchMode", "memory_of", "named_arguments", "noticed", "operation_name"]

Mode = TypeVar("Mode", bound=TorchDispatchMode)


def noticed(run: Callable[[], object], mode: Mode) -> Mode:
    """Return a mode that has seen each operation of a run, with what it noted."""
    with torch.no_grad(), mode:
        run()
    return mode


def operation_name(func: Any) -> str:
    """Return an operation's name, of whatever overload: "add", and "add_" where it writes in place."""
    return str(func.overloadpacket).removeprefix("aten.")


def named_arguments(func: Any, args: Any, kwargs: Any) -> dict[str, Any]:
    """Return what an operation is given by the names of its arguments; those left to their defaults are absent."""
    names = (argument.name for argument in func._schema.arguments)
    return dict(zip(names, args, strict=False)) | (kwargs or {})


def memory_of(tensor: torch.Tensor) -> int:
    """Return what tells the memory that a tensor is a view of, while it lives: what is given back may be another's next."""
    return tensor.untyped_storage().data_ptr()
