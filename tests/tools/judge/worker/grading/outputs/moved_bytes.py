"""How much memory operations of PyTorch read and write, counted and not measured: on any device the same number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class MovedBytes(TorchDispatchMode):
    """Counts the bytes of every tensor that an operation reads or writes; views move none."""

    def __init__(self) -> None:
        super().__init__()
        self.total = 0

    def __torch_dispatch__(
        self, func: Any, _types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        written = _tensors(kwargs.get("out") if kwargs else None) or _tensors(result)
        read = {_key(t): t for t in _tensors((args, {k: v for k, v in (kwargs or {}).items() if k != "out"}))}
        if func.is_view or func is torch.ops.aten.split.Tensor or func is torch.ops.aten.empty_like.default:
            return result
        if func._schema.name in {"aten::copy_", "aten::fill_"}:  # what they write they do not read
            read.pop(_key(args[0]), None)
        self.total += sum(map(_bytes, [*read.values(), *written]))
        return result


def bytes_an_element(work: Callable[[], object], of: torch.Tensor) -> float:
    """Return how many bytes some work moves for each element of a tensor."""
    with MovedBytes() as moved:
        work()
    return moved.total / of.numel()


def _tensors(values: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(values) if isinstance(leaf, torch.Tensor)]


def _key(tensor: torch.Tensor) -> tuple[Any, ...]:
    return (tensor.data_ptr(), tensor.shape, tensor.stride())


def _bytes(tensor: torch.Tensor) -> int:
    """Return the bytes of a tensor's elements, each once: a broadcast tensor is small."""
    sizes = [size for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if stride]
    return int(torch.Size(sizes).numel()) * tensor.element_size()
