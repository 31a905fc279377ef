"""A live module is its owner's: what a call of it writes is seen, and undone."""

from __future__ import annotations

import collections
import contextlib
import copy
from collections.abc import Iterator
from typing import Any

import torch

from ridgeline.problems.own_state import changes_own
from ridgeline.tools.errors import ProblemError

_HOLDERS = (list, dict, set, collections.OrderedDict, collections.deque)
"""What a module keeps by name and may add to, as its own `_buffers`; of these alone the contents are put back."""


class ChangesOwn(ProblemError):
    """The module's `forward` writes a tensor of its own."""


@contextlib.contextmanager
def unchanged(module: torch.nn.Module) -> Iterator[None]:
    """Leave a module's tensors and attributes as they were, whatever its `forward` does to them meanwhile.

    Objects of other classes, which an attribute may hold, keep what was done to them, and so do tensors in attributes
    that are no plain memory: sparse, quantized, nested or without data.

    Raises:
        ChangesOwn: a parameter, a buffer or a tensor in an attribute was written.
    """
    tensors = _tensors(module)
    copies = {name: tensor.detach().clone() for name, tensor in tensors.items()}
    versions = {name: _version(tensor) for name, tensor in tensors.items()}
    held = [(part, dict(vars(part)), _contents(part)) for part in module.modules()]
    try:
        yield
    finally:
        for part, attributes, contents in held:
            _put_back(part, attributes, contents)
        written = [
            n for n, t in tensors.items() if _version(t) != versions[n] or not torch.equal(_bits(t), _bits(copies[n]))
        ]
        for name in written:
            with torch.no_grad():
                tensors[name].copy_(copies[name])
    if written:
        raise ChangesOwn(changes_own(written[0]))


def _tensors(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    named = dict(module.named_parameters()) | dict(module.named_buffers())
    for path, part in module.named_modules():
        own = {name: value for name, value in vars(part).items() if type(value) is torch.Tensor and _is_plain(value)}
        named |= {f"{path}.{name}" if path else name: tensor for name, tensor in own.items()}
    return named


def _is_plain(tensor: torch.Tensor) -> bool:
    """Return whether a tensor's bytes can be looked at and written."""
    is_of_another_kind = (
        tensor.is_nested or tensor.is_quantized or tensor.is_meta or tensor.is_conj() or tensor.is_neg()
    )
    return tensor.layout is torch.strided and not is_of_another_kind


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor's bytes: NaN equals itself there."""
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8)


def _version(tensor: torch.Tensor) -> int:
    """Return how often a tensor was written in place; one that was made in inference mode is not counted."""
    return 0 if tensor.is_inference() else tensor._version


def _contents(part: torch.nn.Module) -> list[tuple[Any, Any]]:
    return [(value, copy.copy(value)) for value in vars(part).values() if type(value) in _HOLDERS]


def _put_back(part: torch.nn.Module, attributes: dict[str, Any], contents: list[tuple[Any, Any]]) -> None:
    for holder, was in contents:
        if not _is_same(holder, was):
            holder.clear()
            holder.update(was) if isinstance(holder, dict | set) else holder.extend(was)
    if not _is_same(vars(part), attributes):
        vars(part).clear()
        vars(part).update(attributes)


def _is_same(holder: Any, was: Any) -> bool:
    """Say whether two hold the very same objects: `==` of tensors would be a tensor."""
    if isinstance(holder, dict):
        return list(map(id, holder)) == list(map(id, was)) and _is_same(list(holder.values()), list(was.values()))
    return list(map(id, holder)) == list(map(id, was))
