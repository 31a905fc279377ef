"""A live module is its owner's: what a call of it writes is seen, and undone."""

from __future__ import annotations

import collections
import contextlib
import copy
import dataclasses
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
        ChangesOwn: a parameter, a buffer or a tensor in an attribute was written, or has another size or type.
    """
    kept = {name: _Kept.of(tensor) for name, tensor in _tensors(module).items()}
    held = [(part, dict(vars(part)), _contents(part)) for part in module.modules()]
    try:
        yield
    finally:
        for part, attributes, contents in held:
            _put_back(part, attributes, contents)
        written = [name for name, each in kept.items() if each.is_written()]
        for each in kept.values():
            each.put_back_place()
        for name in written:
            kept[name].put_back_values()
    if written:
        raise ChangesOwn(changes_own(written[0]))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    """A tensor, and what it was: the place in memory, and the values."""

    tensor: torch.Tensor
    place: torch.Tensor  # over the same memory, of the size and type of then
    storage_bytes: int
    values: torch.Tensor
    version: int

    @classmethod
    def of(cls, tensor: torch.Tensor) -> _Kept:
        place = tensor.detach()
        return cls(
            tensor=tensor,
            place=place,
            storage_bytes=place.untyped_storage().nbytes(),
            values=place.clone(),
            version=_version(tensor),
        )

    def is_written(self) -> bool:
        """Return whether it is another tensor now; one of the same values elsewhere, as an RNN's flat weights, is not."""
        return (
            self.place.untyped_storage().nbytes() != self.storage_bytes  # first: none of it may be left to be read
            or _form(self.tensor) != _form(self.place)
            or _version(self.tensor) != self.version
            or not torch.equal(_bits(self.tensor), _bits(self.values))
        )

    def put_back_place(self) -> None:
        """Let it have the memory that it had: `resize_`, and what is assigned to its `data`, give it other memory."""
        storage = self.place.untyped_storage()
        if storage.nbytes() != self.storage_bytes:
            storage.resize_(self.storage_bytes)
        if _form(self.tensor) != _form(self.place) or self.tensor.data_ptr() != self.place.data_ptr():
            self.tensor.data = self.place

    def put_back_values(self) -> None:
        with torch.inference_mode(self.tensor.is_inference()), torch.no_grad():
            self.tensor.copy_(self.values)


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


def _form(tensor: torch.Tensor) -> tuple[Any, ...]:
    return tensor.shape, tensor.stride(), tensor.dtype, tensor.device


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
