"""The operations of one call, seen as they run: those that draw random numbers, and the bytes that live at once."""

from __future__ import annotations

from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._pytree import tree_leaves

from ridgeline.tools.judge.worker.call_form import Tensors
from ridgeline.tools.judge.worker.dispatch_modes import TorchDispatchMode


class CallWatch(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch gives these no types, nor those below
    """Sees every operation of a call: which draw random numbers, and how many bytes live at once."""

    def __init__(self, held: Tensors) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.random: list[str] = []
        self.peak_bytes = 0
        self._live: dict[StorageWeakRef, int] = {}
        self._bound_bytes = 0  # at least what lives: counted anew only when it could be a new peak
        self._note(held)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the operation and note its results."""
        result = func(*args, **(kwargs or {}))
        if torch.Tag.nondeterministic_seeded in func.tags and not _drops_nothing(func, args, kwargs or {}):
            self.random.append(str(func).removeprefix("aten.").split(".")[0])
        self._note(tuple(t for t in tree_leaves(result) if isinstance(t, torch.Tensor)))
        return result

    def _note(self, tensors: Tensors) -> None:
        for tensor in tensors:
            storage = tensor.untyped_storage()
            key = StorageWeakRef(storage)  # type: ignore[no-untyped-call]
            if key not in self._live:
                self._live[key] = storage.nbytes()
                self._bound_bytes += storage.nbytes()
        if self._bound_bytes > self.peak_bytes:
            self._live = {k: n for k, n in self._live.items() if not k.expired()}  # type: ignore[no-untyped-call]
            self._bound_bytes = sum(self._live.values())
            self.peak_bytes = max(self.peak_bytes, self._bound_bytes)


def _drops_nothing(func: Any, args: Any, kwargs: dict[str, Any]) -> bool:
    """Return whether an operation that could drop elements at random (attention) is told to drop none."""
    for index, argument in enumerate(func._schema.arguments):
        if argument.name == "dropout_p":
            given = args[index] if index < len(args) else argument.default_value
            return not kwargs.get("dropout_p", given)
    return False
