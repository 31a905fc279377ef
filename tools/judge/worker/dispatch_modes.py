"""The modes in which the judge sees every operation of a reference: torch's own, ready before the first run in one.

Each dispatch of a mode goes through torch._dynamo. Its import takes a core for a second, which would count as the
reference's time, and is incomplete where it happens within a mode.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import torch
import torch._dynamo  # imported for what it makes ready
from torch.utils._python_dispatch import TorchDispatchMode

__all__ = ["Marked", "TorchDispatchMode", "memory_of", "named_arguments", "noticed", "operation_name", "run_in"]

Mode = TypeVar("Mode", bound=TorchDispatchMode)
Result = TypeVar("Result")


def noticed(run: Callable[[], object], mode: Mode) -> Mode:
    """Return a mode that has seen each operation of a run, with what it noted."""
    run_in(mode, run)
    return mode


def run_in(mode: TorchDispatchMode, run: Callable[[], Result]) -> Result:
    """Return what a run gives, each of whose operations a mode sees."""
    with torch.no_grad(), mode:
        return run()


def operation_name(func: Any) -> str:
    """Return an operation's name, of whatever overload: "add", and "add_" where it writes in place."""
    return str(func.overloadpacket).removeprefix("aten.")


def named_arguments(func: Any, args: Any, kwargs: Any) -> dict[str, Any]:
    """Return what an operation is given by the names of its arguments; those left to their defaults are absent."""
    names = (argument.name for argument in func._schema.arguments)
    return dict(zip(names, args, strict=False)) | (kwargs or {})


class Marked:
    """Tensors that bear a mark, by their memory, while an operation passes it on to what it makes."""

    def __init__(self) -> None:
        """Mark nothing yet."""
        self._memory: set[int] = set()

    def __contains__(self, tensor: torch.Tensor) -> bool:
        return memory_of(tensor) in self._memory

    def note(self, made: torch.Tensor, given: Iterable[torch.Tensor], *, is_marked: bool) -> None:
        """Mark what an operation made, or not.

        Where it is not marked, memory of what the operation was given keeps its mark. Other memory was given back before, and
        its mark was another tensor's.
        """
        memory = memory_of(made)
        if is_marked:
            self._memory.add(memory)
        elif memory not in map(memory_of, given):
            self._memory.discard(memory)


def memory_of(tensor: torch.Tensor) -> int:
    """Return what tells the memory that a tensor is a view of, while it lives: what is given back may be another's next."""
    return tensor.untyped_storage().data_ptr()
