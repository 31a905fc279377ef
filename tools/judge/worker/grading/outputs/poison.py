"""Poison: secret bits that an output holds before a call, and that mark the elements which the call left out.

Every element of an output holds the same word, but for bools: of two values, one everywhere is right where most of them are
that one. Their word draws a secret pattern of both.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass

import torch

from ridgeline.tools.judge.worker.grading.outputs.expected import Expected

_NEAR = 1e-2  # of the expected value and the output's rms: an element so close was written, whatever its bits
_BOOLS_PERIOD = 4093
"""Elements after which a pattern of bools begins again: a prime, so that no two rows are likely to hold the same."""
_FEW_BOOLS = 16
"""Wrong bools of which all being as the poison may be chance."""
_WORDS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_LARGE_FINITE = {  # bits of the sign and exponent of a large finite number, and how many mantissa bits are free
    torch.float64: (0x7FD << 52, 52),
    torch.float32: (0xFB << 23, 23),
    torch.bfloat16: (0xFB << 7, 7),
    torch.float16: (0x1D << 10, 10),
}
_NAN = {
    torch.float64: (0x7FF8 << 48, 51),
    torch.float32: (0x7FC << 20, 22),
    torch.bfloat16: (0x7FC << 4, 6),
    torch.float16: (0x7E << 8, 9),
}


def poison_word(dtype: torch.dtype, *, nan: bool) -> int:
    """Return fresh secret bits to poison an output with: a NaN, or a large finite number; for integers and bools, any bits."""
    patterns = _NAN if nan else _LARGE_FINITE
    if dtype in patterns:
        base, free = patterns[dtype]
        return base | 1 + secrets.randbelow((1 << free) - 2)  # hardware's own NaNs have none of the free bits or all
    return secrets.randbits(31 if dtype is torch.bool else 8 * dtype.itemsize - 1) | 1


def fill_words(tensor: torch.Tensor, word: int) -> None:
    """Overwrite a contiguous tensor with poison."""
    if tensor.dtype is torch.bool:
        _as_words(tensor).copy_(_bools(tensor, word))
    else:
        _as_words(tensor).fill_(word)


def holds_only(tensor: torch.Tensor, word: int) -> bool:
    """Return whether every element holds the poison: one pass, without a mask."""
    if tensor.numel() == 0:
        return True
    if tensor.dtype is torch.bool:
        return torch.equal(_as_words(tensor), _bools(tensor, word))
    low, high = torch.stack(torch.aminmax(_as_words(tensor))).tolist()
    return bool(low == high == word)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unwritten:
    """The elements of an output that a call left out."""

    count: int
    first: int


def unwritten(output: torch.Tensor, word: int, want: Expected) -> Unwritten | None:
    """Return the elements that still hold the poison and are nowhere near what is expected; None where there are none.

    Half of a wrong output's bools are as the poison by chance. So none counts where one of the wrong ones is not, or few are
    wrong: the comparison finds those.
    """
    if not _may_hold(output, word):
        return None
    mask = missing_elements(output, word)
    if not bool(mask.any()):
        return None
    far = _is_far(output.flatten(), want)
    mask &= far  # a bool may rightly equal its poison, and so may one of 10^7 fp16 values
    count = int(mask.sum())
    if output.dtype is torch.bool and (count < _FEW_BOOLS or count < int(far.sum())):
        return None
    return Unwritten(count=count, first=int(mask.to(torch.uint8).argmax())) if count else None


def missing_elements(tensor: torch.Tensor, word: int) -> torch.Tensor:
    """Return a flat mask of the elements that still hold the poison."""
    words = _as_words(tensor)
    return words.eq(_bools(tensor, word) if tensor.dtype is torch.bool else word).flatten()


def _may_hold(tensor: torch.Tensor, word: int) -> bool:
    """Return False only where no element holds the poison: the largest word shows it in one pass, without a mask.

    The poison of floating-point types is a larger word than any number but the very largest.
    """
    if tensor.dtype is torch.bool:
        return tensor.numel() > 0
    return tensor.numel() > 0 and int(_as_words(tensor).max()) >= word


def _is_far(output: torch.Tensor, want: Expected) -> torch.Tensor:
    """Return a flat mask of elements nowhere near their expected value, NaN included; of integers that differ.

    Integers of 8 bits are near where they differ by one: of a million that round at last bits some do, and one of 128 of
    these holds what the poison is.
    """
    values = want.values.flatten()
    if output.dtype in (torch.int8, torch.uint8):
        return (output.short() - values.short()).abs() > 1
    if want.is_exact:
        return output.ne(values.to(output.dtype))
    bound = _NEAR * (values.abs() + want.rms)
    return ~((output.double() - values).abs() <= bound)


def _bools(like: torch.Tensor, word: int) -> torch.Tensor:
    """Return the flat pattern of zeros and ones that a word draws for a tensor of bools."""
    drawn = torch.Generator().manual_seed(word)
    block = torch.randint(0, 2, (_BOOLS_PERIOD,), dtype=torch.uint8, generator=drawn).to(like.device)
    return block.repeat(like.numel() // _BOOLS_PERIOD + 1)[: like.numel()]


def _as_words(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.reshape(-1).view(_WORDS[tensor.dtype.itemsize])
