"""Secret inputs and parameters for the trials and for the timed sets (runs in the judge).

Nothing here leaves the domain of what `get_inputs` gives, save for the transforms that say so: a mixture of two draws
is as non-negative, as triangular or as normalised as they are, and infinities (a mask's) are where they were.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from ridgeline.tools.judge_reference import Reference, Tensors
from ridgeline.tools.tensor_bits import equal_bits

_POOL = 8  # different draws of integer and bool tensors beside floating ones, dealt over the sets
_MIXTURE = (0.15, 0.85)  # weight of the second draw: never one draw alone, so every set has contents of its own
_OFFSETS = 1 << 16  # where a set's weights may begin in the table of weights
_ROW_SCALE_BITS = 5.0  # row scales are 2^U(-5, 5)
_STRUCTURE = 0.2  # this share of exact zeros is no accident
_INTEGER_RANGE = 4  # small integers are exact in every class down to fp8


class SecretSource:
    """Inputs and parameters drawn from one secret; the same label gives the same values."""

    def __init__(self, reference: Reference, secret: bytes, randomized: frozenset[str] | None = None) -> None:
        """Draw from `secret`; only the parameters and buffers named in `randomized`, absent all, get random values."""
        self._reference = reference
        self._randomized = randomized
        self._secret = secret
        self._defaults = {n: t.detach().clone() for n, t in reference.named_tensors().items()}
        first = reference.draw_inputs(1)
        self._ignores_seed = _all_equal(first, reference.draw_inputs(2))
        floating = [t.numel() for t in first if t.is_floating_point()]
        self._weights = self._mixing_weights(_OFFSETS + max(floating)) if floating else torch.empty(0)

    def nominal(self, label: str) -> Tensors:
        """Return inputs as `get_inputs` gives them; rows are shuffled where it always gives the same ones."""
        inputs = self._reference.draw_inputs(self._seed(label))
        if not self._ignores_seed:
            return inputs
        generator = self._generator(label + ":rows")
        return tuple(_shuffled_rows(t, generator) if t.is_floating_point() else t for t in inputs)

    def parameters(self, label: str) -> dict[str, torch.Tensor]:
        """Return random parameters and buffers: none keeps a default such as weight 1 and bias 0."""
        generator = self._generator(label + ":parameters")
        names = self._defaults if self._randomized is None else self._randomized
        return {n: _randomized(t, generator) if n in names else t for n, t in self._defaults.items()}

    def default_parameters(self) -> dict[str, torch.Tensor]:
        """Return the parameters that the model was made with."""
        return self._defaults

    def tweaked(self, base: str, label: str) -> Tensors:
        """Return the inputs of `base` with one secret row changed: no few elements tell the two apart."""
        generator = self._generator(label + ":row")
        pairs = zip(self.nominal(base), self.nominal(label), strict=True)
        return tuple(_with_one_row(t, other, generator) if t.is_floating_point() else t for t, other in pairs)

    def tweaked_parameters(self, base: str, label: str) -> dict[str, torch.Tensor]:
        """Return the parameters of `base` with one secret row of each changed, one element where there are no rows."""
        generator = self._generator(label + ":parameter rows")
        values, others = self.parameters(base), self.parameters(label)
        return {n: _with_one_slice(t, others[n], generator) for n, t in values.items()}

    def shifted(self, label: str) -> Tensors:
        """Return 3x + 2; zeros stay zero where they are structure (a triangular matrix)."""
        return tuple(_shifted(t) if t.is_floating_point() else t for t in self.nominal(label))

    def row_scaled(self, label: str) -> Tensors:
        """Return every row (the last dimension) times its own power of two."""
        generator = self._generator(label + ":scales")
        return tuple(_row_scaled(t, generator) if t.is_floating_point() else t for t in self.nominal(label))

    def integers(self, label: str) -> Tensors:
        """Return small whole numbers of the same sign and range as the inputs."""
        generator = self._generator(label + ":integers")
        return tuple(_whole(t, generator) if t.is_floating_point() else t for t in self.nominal(label))

    def fill(self, label: str, n_sets: int) -> Filling:
        """Return contents for every set, drawn now: its own mixture of two fresh draws, with a weight for each element.

        With one weight for a set all contents would lie on a line, and all outputs of a linear reference too: two
        calls would be enough to know every other.
        """
        first, second = self.nominal(label + ":a"), self.nominal(label + ":b")
        return Filling(
            first=first,
            second=second,
            pool=self._pool(first, n_sets, label),
            mirrored=tuple(_is_symmetric(t) for t in first),
            finite=tuple(_are_finite(a, b) for a, b in zip(first, second, strict=True)),
            weights=self._weights,
            offsets=torch.randperm(_OFFSETS, generator=self._cpu_generator(label + ":weights"))[:n_sets].tolist(),
        )

    def _pool(self, first: Tensors, n_sets: int, label: str) -> list[Tensors]:
        """Return the draws whose integers and bools are dealt over the sets: one for each set where nothing else differs."""
        floating = [t.is_floating_point() for t in first]
        if all(floating):
            return [first]
        count = min(_POOL, n_sets) if any(floating) else n_sets
        return [self.nominal(f"{label}:{i}") for i in range(count)]

    def _mixing_weights(self, count: int) -> torch.Tensor:
        low, high = _MIXTURE
        generator = self._generator("mixture")
        return torch.rand(count, generator=generator, device=generator.device) * (high - low) + low

    def _seed(self, label: str) -> int:
        return int.from_bytes(hashlib.sha256(self._secret + label.encode()).digest()[:7], "big")

    def _generator(self, label: str) -> torch.Generator:
        return torch.Generator(self._reference.device).manual_seed(self._seed(label))

    def _cpu_generator(self, label: str) -> torch.Generator:
        return torch.Generator().manual_seed(self._seed(label))


@dataclass(frozen=True, slots=True, kw_only=True)
class Filling:
    """New contents of all sets at once; `write` puts those of one set in place."""

    first: Tensors
    second: Tensors
    pool: list[Tensors]  # of integers and bools
    mirrored: tuple[bool, ...]  # which inputs are symmetric matrices, and stay so
    finite: tuple[torch.Tensor | None, ...]  # where an input may be mixed: not at a mask's infinities; None: everywhere
    weights: torch.Tensor  # a table that every set reads from another offset on
    offsets: list[int]

    def write(self, index: int, views: Tensors) -> None:
        """Fill the views of one set."""
        whole = self.pool[index % len(self.pool)]
        for i, (view, a, b) in enumerate(zip(views, self.first, self.second, strict=True)):
            if not view.is_floating_point():
                view.copy_(whole[i])
                continue
            start = self.offsets[index]
            weights = self.weights[start : start + view.numel()].view(view.shape).to(view.dtype)
            torch.lerp(a, b, _mirrored(weights) if self.mirrored[i] else weights, out=view)
            finite = self.finite[i]
            if finite is not None:
                torch.where(finite, view, a, out=view)

    def is_intact(self, index: int, views: Tensors) -> bool:
        """Return whether the views of a set still hold what `write` put there, bit by bit."""
        expected = tuple(torch.empty_like(view) for view in views)
        self.write(index, expected)
        return all(equal_bits(view, fresh) for view, fresh in zip(views, expected, strict=True))


def _are_finite(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor | None:
    """Return where two draws are finite, None when they are everywhere: a mixture with an infinity is NaN."""
    if not first.is_floating_point():
        return None
    finite = torch.isfinite(first) & torch.isfinite(second)
    return None if bool(finite.all()) else finite


def _mirrored(weights: torch.Tensor) -> torch.Tensor:
    return weights.tril() + weights.tril(-1).mT


def _all_equal(first: Tensors, second: Tensors) -> bool:
    return all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def _shuffled_rows(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    if tensor.dim() == 0:
        return tensor
    return tensor[torch.randperm(tensor.shape[0], generator=generator, device=generator.device)]


def _randomized(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    if not tensor.is_floating_point() or tensor.numel() == 0 or not bool(torch.isfinite(tensor).all()):
        return tensor  # an index table or a mask of infinities
    values = torch.unique(tensor) if tensor.numel() <= 4096 else torch.unique(tensor.flatten()[:4096])
    if values.numel() == 2 and values.tolist() == [0.0, 1.0]:
        return tensor  # a mask
    if bool((tensor > 0).all()):
        factors = 0.5 + torch.rand(tensor.shape, generator=generator, device=generator.device)
        return tensor * factors.to(tensor.dtype)  # a variance stays one
    spread = float(tensor.double().std()) if tensor.numel() > 1 else 0.0
    noise = torch.randn(tensor.shape, generator=generator, device=generator.device) * (spread or 0.2)
    return tensor + noise.to(tensor.dtype)


def _with_one_slice(tensor: torch.Tensor, other: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    if tensor.dim() != 1 or tensor.numel() == 0:
        return _with_one_row(tensor, other, generator)
    changed = tensor.clone()
    index = _random_index(tensor.shape, generator)
    changed[index] = other[index]
    return changed


def _random_index(shape: Sequence[int], generator: torch.Generator) -> tuple[int, ...]:
    return tuple(int(torch.randint(size, (), generator=generator, device=generator.device)) for size in shape)


def _with_one_row(tensor: torch.Tensor, other: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    if tensor.dim() < 2 or tensor.numel() == 0:
        return other
    changed = tensor.clone()
    index = _random_index(tensor.shape[:-1], generator)
    changed[index] = other[index]
    if _is_symmetric(tensor):
        changed.mT[index] = other[index]
    return changed


def _shifted(tensor: torch.Tensor) -> torch.Tensor:
    shifted = tensor * 3 + 2
    return torch.where(tensor == 0, tensor, shifted) if _has_structural_zeros(tensor) else shifted


def _row_scaled(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    shape = (*tensor.shape[:-1], 1) if tensor.dim() > 1 else tensor.shape
    bits = torch.rand(shape, generator=generator, device=generator.device) * 2 * _ROW_SCALE_BITS - _ROW_SCALE_BITS
    scale = torch.exp2(bits).to(tensor.dtype)
    return tensor * scale * scale.mT if _is_symmetric(tensor) else tensor * scale


def _whole(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    finite = torch.isfinite(tensor)
    if not bool(finite.any()):
        return tensor
    low, high = float(tensor[finite].min()), float(tensor[finite].max())
    lowest = 0 if low >= 0 else -_INTEGER_RANGE
    highest = 1 if lowest == 0 and high <= 1 else _INTEGER_RANGE
    drawn = torch.randint(lowest, highest + 1, tensor.shape, generator=generator, device=generator.device)
    whole = torch.where(finite, drawn.to(tensor.dtype), tensor)
    if _is_symmetric(tensor):
        whole = whole.tril() + whole.tril(-1).mT
    return torch.where(tensor == 0, tensor, whole) if _has_structural_zeros(tensor) else whole


def _has_structural_zeros(tensor: torch.Tensor) -> bool:
    """A kernel may rely on the zeros of a triangular or sparse input."""
    return tensor.numel() > 0 and int((tensor == 0).sum()) > _STRUCTURE * tensor.numel()


def _is_symmetric(tensor: torch.Tensor) -> bool:
    """A kernel may rely on the symmetry of its input."""
    return tensor.dim() > 1 and tensor.shape[-1] == tensor.shape[-2] > 1 and torch.equal(tensor, tensor.mT)
