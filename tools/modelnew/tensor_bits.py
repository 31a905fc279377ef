"""Compare tensors bit by bit, in chunks: a comparison of a whole tensor takes its memory once more."""

from __future__ import annotations

import math

import torch

_CHUNK_BYTES = 1 << 28
_WORDS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def equal_bits(one: torch.Tensor, two: torch.Tensor) -> bool:
    """Return whether two tensors of one shape and type hold the same bits; NaN equals itself."""
    first, second = _bytes(one), _bytes(two)
    starts = range(0, first.numel(), _CHUNK_BYTES)
    chunks = ((first[i : i + _CHUNK_BYTES], second[i : i + _CHUNK_BYTES]) for i in starts)
    return all(torch.equal(*_as_words(one, two)) for one, two in chunks)


def copied_bits(tensor: torch.Tensor) -> torch.Tensor:
    """Return a copy with the same bits: PyTorch's own copy of a bool turns a byte that is neither 0 nor 1 into 1."""
    return tensor.view(torch.uint8).clone().view(torch.bool) if tensor.dtype is torch.bool else tensor.clone()


def _as_words(first: torch.Tensor, second: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return bytes as the largest words that they consist of: a GPU's comparison writes a byte for each element."""
    size = math.gcd(8, first.numel(), first.storage_offset(), second.storage_offset())
    return first.view(_WORDS[size]), second.view(_WORDS[size])


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    raw = tensor.view(torch.uint8) if tensor.dtype is torch.bool else tensor
    return raw.contiguous().reshape(-1).view(torch.uint8)
