"""How far an output is from the expected one, in chunks of bounded memory (runs in the judge)."""

from __future__ import annotations

import math
import secrets
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from ridgeline.tools.precision import MIN_ROW_ELEMENTS, ROW_NORM_FLOOR, ROW_SCALE_FLOOR, Errors

_CHUNK = 1 << 22  # elements compared at once: 32 MiB in float64
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


@dataclass(frozen=True, slots=True)
class Expected:
    """One output in float64 with the figures that every comparison with it needs."""

    values: torch.Tensor  # float64, or the output's own integer type
    mean: float
    spread: float  # |o64 - mean|, over finite elements
    norm: float  # |o64|
    rms: float

    @property
    def is_exact(self) -> bool:
        """Return whether the output is integers or bools."""
        return not self.values.is_floating_point()


@dataclass(frozen=True, slots=True, kw_only=True)
class Worst:
    """The element that is furthest off."""

    index: tuple[int, ...]
    got: float
    expected: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """What a comparison found for one output."""

    errors: Errors
    crfm: float = 0.0  # max |o - o64| / (max(1, rms) + |o64|)
    worst: Worst | None = None
    non_finite: Worst | None = None  # an element whose NaN or infinity does not match
    wrong_integers: int = 0


def expect(values: torch.Tensor) -> Expected:
    """Take the figures of an expected output once."""
    if not values.is_floating_point():
        return Expected(values.contiguous(), 0.0, 0.0, 0.0, 0.0)
    values = values.double().contiguous()
    finite = torch.where(torch.isfinite(values), values, 0.0)
    count = max(int(torch.isfinite(values).sum()), 1)
    mean = float(finite.sum()) / count
    norm = float(torch.linalg.vector_norm(finite))
    spread = math.sqrt(max(norm**2 - count * mean**2, 0.0))
    if spread < 1e-4 * norm:  # the difference of two squares has no digits left
        spread = float(torch.linalg.vector_norm(torch.where(torch.isfinite(values), values - mean, 0.0)))
    return Expected(values, mean, spread, norm, norm / math.sqrt(count))


def compare(output: torch.Tensor, expected: Expected) -> Difference:
    """Return how far an output (of its own dtype) is from the expected one of the same shape."""
    if expected.is_exact:
        return _compare_exact(output, expected)
    total, worst_row, worst_ratio, crfm = 0.0, 0.0, 0.0, 0.0
    worst: Worst | None = None
    for start, got, want in _chunks(output, expected.values):
        mismatch = _non_finite_mismatch(got, want, output.dtype)
        if mismatch is not None:
            return Difference(errors=_HOPELESS, crfm=math.inf, non_finite=_located(output, start, mismatch, want))
        difference = _difference(got, want)
        total += float(torch.linalg.vector_norm(difference)) ** 2
        worst_row = max(worst_row, _worst_row(difference, want, expected.rms))
        magnitude = torch.nan_to_num(want, nan=0.0, posinf=0.0, neginf=0.0).abs_()
        ratio = difference / (magnitude + (expected.rms or 1.0))
        largest, index = (float(ratio.max()), int(ratio.argmax()))
        if largest > worst_ratio:
            worst_ratio, worst = largest, _located(output, start, index, want)
        crfm = max(crfm, float((difference / magnitude.add_(max(1.0, expected.rms))).max()))
    overall = math.sqrt(total) / (expected.spread or expected.norm or 1.0)
    return Difference(
        errors=Errors(overall=overall, worst_row=worst_row, worst_element=worst_ratio), crfm=crfm, worst=worst
    )


_HOPELESS = Errors(overall=math.inf, worst_row=math.inf, worst_element=math.inf)


def _compare_exact(output: torch.Tensor, expected: Expected) -> Difference:
    wrong = (output != expected.values).flatten()
    count = int(wrong.sum())
    if count == 0:
        return Difference(errors=Errors(overall=0.0))
    index = int(wrong.to(torch.uint8).argmax())
    worst = Worst(
        index=_unravel(index, output.shape),
        got=float(output.flatten()[index]),
        expected=float(expected.values.flatten()[index]),
    )
    share = count / wrong.numel()
    return Difference(
        errors=Errors(overall=share, worst_row=math.inf, worst_element=math.inf),
        crfm=math.inf,
        worst=worst,
        wrong_integers=count,
    )


def _chunks(output: torch.Tensor, expected: torch.Tensor) -> Iterator[tuple[int, torch.Tensor, torch.Tensor]]:
    """Yield (first element, output rows in float64, expected rows), whole rows of the last dimension at a time."""
    width = output.shape[-1] if output.dim() else 1
    got, want = output.reshape(-1, max(width, 1)), expected.reshape(-1, max(width, 1))
    rows = max(_CHUNK // max(width, 1), 1)
    for row in range(0, got.shape[0], rows):
        yield row * width, got[row : row + rows].double(), want[row : row + rows]


def _difference(got: torch.Tensor, want: torch.Tensor) -> torch.Tensor:
    difference = (got - want).abs_()
    return difference if bool(torch.isfinite(difference).all()) else torch.nan_to_num_(difference, 0.0, 0.0, 0.0)


def _non_finite_mismatch(got: torch.Tensor, want: torch.Tensor, dtype: torch.dtype) -> int | None:
    if bool(torch.isfinite(got).all()) and bool(torch.isfinite(want).all()):
        return None
    stored = want.to(dtype).double()  # 1e39 is infinity in float32
    same = (torch.isnan(got) & torch.isnan(stored)) | (torch.isinf(got) & (got == stored))
    wrong = ~(same | (torch.isfinite(got) & torch.isfinite(stored))).flatten()
    return int(wrong.to(torch.uint8).argmax()) if bool(wrong.any()) else None


def _worst_row(difference: torch.Tensor, want: torch.Tensor, rms: float) -> float:
    width = want.shape[-1]
    if width < MIN_ROW_ELEMENTS:
        return 0.0
    finite = torch.nan_to_num(want, nan=0.0, posinf=0.0, neginf=0.0)
    norm = torch.linalg.vector_norm(finite, dim=-1)
    spread = torch.linalg.vector_norm(finite - finite.mean(dim=-1, keepdim=True), dim=-1)
    floor = ROW_SCALE_FLOOR * rms * math.sqrt(width)
    over = torch.maximum(spread, norm * ROW_NORM_FLOOR).clamp_(min=floor or 1.0)
    return float((torch.linalg.vector_norm(difference, dim=-1) / over).max())


def _located(output: torch.Tensor, start: int, index: int, want: torch.Tensor) -> Worst:
    flat = start + index
    value = output.reshape(-1)[flat] if output.dim() else output
    return Worst(index=_unravel(flat, output.shape), got=float(value), expected=float(want.reshape(-1)[index]))


def _unravel(flat: int, shape: torch.Size) -> tuple[int, ...]:
    index: list[int] = []
    for size in reversed(shape):
        index.append(flat % size)
        flat //= size
    return tuple(reversed(index))


# -------------------------------------------------------------------------------------------------------------- poison


def poison_word(dtype: torch.dtype, *, nan: bool) -> int:
    """Return fresh secret bits to poison an output with: a NaN, or a large finite number; for integers, any bits."""
    patterns = _NAN if nan else _LARGE_FINITE
    if dtype in patterns:
        base, free = patterns[dtype]
        return base | secrets.randbits(free)
    if dtype is torch.bool:
        return 1 if nan else 0
    return secrets.randbits(8 * dtype.itemsize - 1) | 1


def fill_words(tensor: torch.Tensor, word: int) -> None:
    """Overwrite every element of a contiguous tensor with the same bits."""
    _as_words(tensor).fill_(word)


def missing_elements(tensor: torch.Tensor, word: int) -> torch.Tensor:
    """Return a flat mask of the elements that still hold the poison."""
    return _as_words(tensor).eq(word).flatten()


def _as_words(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.reshape(-1).view(_WORDS[tensor.dtype.itemsize])
