"""Fourier transforms by their definition: products with tables of sines and cosines, added as plain sums are.

Frames of a few hundred numbers are often transformed so. A fast transform adds far fewer roundings, and its own error says
nothing of these.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ridgeline.tools.judge.worker.grading.limits.lanes import Lanes

_LONGEST = 4096
"""Numbers of a transform at most: by its definition a longer one takes too long for anybody."""
_BY_ROOT, _BY_COUNT = 1, 2  # torch's words for a result over the root of its length, or over its length


def _from_real(given: dict[str, Any], lanes: Lanes) -> torch.Tensor | None:
    *others, last = given["dim"]
    terms = given["self"].movedim(last, -1)
    length = terms.shape[-1]
    cosines, sines = _tables(length, length // 2 + 1 if given["onesided"] else length)
    parts = [_product(terms, table, lanes) for table in (cosines, -sines)]
    if parts[0] is None or parts[1] is None:
        return None
    made = torch.complex(parts[0], parts[1]).movedim(-1, last)
    return _along(made, others, -1, lanes)


def _from_complex(given: dict[str, Any], lanes: Lanes) -> torch.Tensor | None:
    return _along(given["self"], given["dim"], -1 if given["forward"] else 1, lanes)


def _to_real(given: dict[str, Any], lanes: Lanes) -> torch.Tensor | None:
    *others, last = given["dim"]
    spectrum = _along(given["self"], others, 1, lanes)
    if spectrum is None:
        return None
    length, terms = given["last_dim_size"], spectrum.movedim(last, -1)
    count = length // 2 + 1
    cosines, sines = _tables(length, count)
    twice = torch.full((count, 1), 2.0, dtype=torch.float64)
    twice[0] = 1
    if length % 2 == 0:
        twice[-1] = 1  # its negative frequency is itself
    terms = terms[..., :count]
    made = _product(torch.cat([terms.real, terms.imag], -1), torch.cat([twice * cosines.mT, -twice * sines.mT]), lanes)
    return None if made is None else made.movedim(-1, last)


def _along(terms: torch.Tensor, dims: Sequence[int], sign: int, lanes: Lanes) -> torch.Tensor | None:
    """Return the sums of terms times exp(sign 2 pi i k t / n) along each of these dimensions."""
    made: torch.Tensor | None = terms
    for dim in dims:
        if made is None:
            return None
        moved = made.movedim(dim, -1)
        cosines, sines = _tables(moved.shape[-1], moved.shape[-1])
        both = torch.cat([moved.real, moved.imag], -1)
        real = _product(both, torch.cat([cosines, -sign * sines]), lanes)
        imaginary = _product(both, torch.cat([sign * sines, cosines]), lanes)
        made = None if real is None or imaginary is None else torch.complex(real, imaginary).movedim(-1, dim)
    return made


def _tables(length: int, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return cosines and sines (length, count) of 2 pi t k / length, in float64; of nothing where that is too long."""
    if length > _LONGEST:
        return torch.empty(0, 0, dtype=torch.float64), torch.empty(0, 0, dtype=torch.float64)
    places = torch.arange(length)[:, None] * torch.arange(count)[None]
    angles = 2 * math.pi * (places % length).double() / length
    return angles.cos(), angles.sin()


def _product(terms: torch.Tensor, table: torch.Tensor, lanes: Lanes) -> torch.Tensor | None:
    """Return plain sums along the last dimension of terms times a table's columns, in the type of the terms."""
    if not table.numel():
        return None
    made = lanes.product(terms.reshape(1, -1, terms.shape[-1]), table[None])
    return None if made is None else made.to(terms.dtype).reshape(*terms.shape[:-1], -1)


_TRANSFORMS: dict[str, Callable[[dict[str, Any], Lanes], torch.Tensor | None]] = {
    "_fft_r2c": _from_real,
    "_fft_c2c": _from_complex,
    "_fft_c2r": _to_real,
}


def transformed(name: str, given: dict[str, Any], lanes: Lanes) -> torch.Tensor | None:
    """Return what an operation of this name gives by its definition; None where it is no such transform, or a long one."""
    made = _TRANSFORMS[name](given, lanes) if name in _TRANSFORMS and given["self"].is_cpu and given["dim"] else None
    if made is None:
        return None
    sizes = made.shape if name == "_fft_c2r" else given["self"].shape
    count = math.prod(sizes[dim] for dim in given["dim"])
    normalization = given.get("normalization", 0)
    return made / (math.sqrt(count) if normalization == _BY_ROOT else count if normalization == _BY_COUNT else 1)
