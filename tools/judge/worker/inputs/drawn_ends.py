"""The ranges that `get_inputs` draws whole numbers from, seen in its calls of PyTorch: small draws seldom reach their ends."""

from __future__ import annotations

from typing import Any

import torch

from ridgeline.tools.judge.worker.dispatch_modes import TorchDispatchMode, named_arguments, operation_name, run_in
from ridgeline.tools.judge.worker.inputs.arrangements.links import Ends
from ridgeline.tools.judge.worker.inputs.values.structure import range_without_sentinels
from ridgeline.tools.judge.worker.reference import Reference

_COPIES = ("_to_copy", "clone")
_SET_SOME = ("fill_", "masked_fill_", "index_put_", "index_fill_")
"""What gives some places numbers of their own, such as padding: the others are drawn as before."""


def drawn_ends(reference: Reference) -> dict[int, Ends]:
    """Return the ends of the ranges that inputs of whole numbers are drawn from, by the input's position.

    Those are known of what `torch.randint` or `Tensor.random_` draws and of its copies, and of nothing that is computed.
    """
    mode = _Drawn()
    inputs = run_in(mode, lambda: reference.draw_inputs(1))
    return {i: ends for i, t in enumerate(inputs) if (ends := mode.ends_of(t)) and _is_of(t, ends)}


def _is_of(tensor: torch.Tensor, ends: Ends) -> bool:
    drawn = range_without_sentinels(tensor)
    return drawn is not None and ends[0] <= drawn[0] <= drawn[1] <= ends[1]


class _Drawn(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch has no types there
    """Notes the range that each tensor was drawn from."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch has no types there
        self._noted: dict[int, tuple[torch.UntypedStorage, Ends]] = {}  # memory that is kept is no other tensor's next

    def ends_of(self, tensor: torch.Tensor) -> Ends | None:
        """Return the ends of a tensor's range, None where it is not known."""
        noted = self._noted.get(tensor.untyped_storage().data_ptr())
        return noted[1] if noted else None

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        name, given = operation_name(func), named_arguments(func, args, kwargs)
        if name in ("randint", "randint_like"):
            self._note(result, (given.get("low", 0), given["high"] - 1))
        elif name == "random_":
            is_bound = given.get("to") is not None
            self._note(result, (given.get("from") or 0, given["to"] - 1) if is_bound else None)
        elif name in _COPIES:
            self._note(result, self.ends_of(given["self"]))
        elif func._schema.is_mutable and name not in _SET_SOME:
            for written in (
                given.get(a.name) for a in func._schema.arguments if a.alias_info and a.alias_info.is_write
            ):
                if isinstance(written, torch.Tensor):
                    self._note(written, None)
        return result

    def _note(self, tensor: torch.Tensor, ends: Ends | None) -> None:
        storage = tensor.untyped_storage()
        self._noted.pop(storage.data_ptr(), None)
        if ends is not None:
            self._noted[storage.data_ptr()] = storage, ends
