"""Tensors as Python source: drawn at random in the way that an example shows, or held exactly.

A drawn tensor takes from its example the shape, the type, the sign and the size. Its figures are rounded coarsely, so that
another draw of the same kind, or other weights of the same module, make the same source.
"""

from __future__ import annotations

import base64
import math
import zlib
from dataclasses import dataclass, field

import torch

from ridgeline.tools.errors import ProblemError

FIGURES = ("mean", "std", "low", "high", "fill_value", "share")
"""The words before a figure that is rounded."""
LARGEST_BYTES = 4 << 20
"""Of all tensors that are held exactly, compressed: a reference's text travels to each of its processes."""
_LARGEST_EXAMPLE_BYTES = 1 << 16  # compressed: a mask with structure is far below, random values are drawn
_MOST_WRITTEN = 16  # elements of a tensor that are written out
_SIGNIFICANT = 8  # a figure is rounded to eighths of a power of two
_FEW_INPUTS = 8  # values that show a sign
_FEW_WEIGHTS = 16
_FAR = 8  # deviations between a mean and 0, beyond which no draw has the other sign
_LARGEST_WHOLE = 2**62

HELPERS = {
    "_normal": """
def _normal(shape, dtype, mean, std):
    return (torch.randn(shape) * std + mean).to(dtype)
""",
    "_uniform": """
def _uniform(shape, dtype, low, high):
    return (torch.rand(shape) * (high - low) + low).to(dtype)
""",
    "_whole": """
def _whole(shape, dtype, low, high):
    return torch.randint(low, high + 1, shape, dtype=torch.int64).to(dtype)
""",
    "_mask": """
def _mask(shape, dtype, share):
    return (torch.rand(shape) < share).to(dtype)
""",
    "_laid_out": """
def _laid_out(tensor, strides):
    return torch.empty_strided(tensor.shape, strides, dtype=tensor.dtype, device=tensor.device).copy_(tensor)
""",
    "_packed": """
def _packed(name, shape, dtype):
    values = bytearray(zlib.decompress(base64.b64decode(_VALUES[name])))
    return torch.frombuffer(values, dtype=dtype).reshape(shape)
""",
}
"""The functions that drawn tensors call, by name."""


@dataclass(slots=True)
class Drawing:
    """The tensors of one reference, and what their source needs."""

    packed: dict[str, str] = field(default_factory=dict)  # values held exactly, by name
    used: set[str] = field(default_factory=set)  # of HELPERS

    def weight(self, name: str, tensor: torch.Tensor, *, is_buffer: bool, is_exact: bool) -> str:
        """Return the source of a parameter or buffer; drawn, unless its very values matter, or they are no plain numbers.

        The judge gives parameters values of its own, and a `state_dict` brings a module's along. It brings no buffer that
        is not persistent, and the judge leaves masks as they are.
        """
        tensor = tensor.detach().cpu()
        if is_exact or not tensor.is_floating_point() or not _is_finite(tensor):
            return self.exact(name, tensor)
        if (constant := _constant(tensor)) is not None:
            return _full(tensor, constant, word="fill_value=")
        return self._drawn(tensor, few=1 if is_buffer else _FEW_WEIGHTS)  # a variance has one sign, a bias by chance

    def exact(self, name: str, tensor: torch.Tensor) -> str:
        """Return the source of a tensor that holds the very values.

        Raises:
            ProblemError: with it the tensors that are held exactly are larger than LARGEST_BYTES.
        """
        tensor = tensor.detach().cpu().contiguous()
        if (constant := _constant(tensor)) is not None:
            return _full(tensor, constant, word="")
        if tensor.numel() <= _MOST_WRITTEN:
            return f"torch.tensor({listed(tensor.tolist())}, dtype={tensor.dtype})"
        text = _compressed(tensor)
        if sum(map(len, self.packed.values())) + len(text) > LARGEST_BYTES:
            raise ProblemError(
                f"{name}: its {tensor.nbytes} bytes are held exactly, and all such tensors may take {LARGEST_BYTES >> 20} MiB "
                "compressed; make it a parameter or a persistent buffer, or compute it in forward"
            )
        return self._pack(name, tensor, text)

    def example(self, name: str, tensor: torch.Tensor) -> str:
        """Return the source of a new draw of an input; an example with structure is kept as it is."""
        laid_out = tensor.detach().cpu()
        tensor = laid_out.contiguous()
        source = self._example(name, tensor)
        if laid_out.is_contiguous() or not _is_dense(laid_out):
            return source
        self.used.add("_laid_out")
        return f"_laid_out({source}, {tuple(laid_out.stride())})"

    def _example(self, name: str, tensor: torch.Tensor) -> str:
        has_two, name = is_mask(tensor), f"input {name}"
        if has_two or _has_order(tensor) or not _is_finite(tensor):
            text = _compressed(tensor)
            if tensor.numel() <= _MOST_WRITTEN or (len(text) > _LARGEST_EXAMPLE_BYTES and not _is_drawable(tensor)):
                return self.exact(name, tensor)
            if len(text) <= _LARGEST_EXAMPLE_BYTES:
                return self._pack(name, tensor, text)
        constant = _constant(tensor)
        if constant is not None and not (tensor.is_floating_point() and tensor.numel()):
            return _full(tensor, constant, word="")
        if has_two and float(tensor.min()) == 0 and float(tensor.max()) == 1:
            return self._helper("_mask", tensor, share=_rounded(float(tensor.double().mean())))
        return self._drawn(tensor, few=_FEW_INPUTS)

    def _drawn(self, tensor: torch.Tensor, *, few: int) -> str:
        """Draw anew; `few` values or more that have one sign show that all have."""
        if not tensor.is_floating_point():
            most = min(int(tensor.max()), _LARGEST_WHOLE)
            return self._helper("_whole", tensor, low=int(tensor.min()), high=most)
        values = tensor.double()
        low, high = float(values.min()), float(values.max())
        if low == high:
            return self._of_one_value(tensor, low)
        spread, mean = float(values.std(correction=0)), float(values.mean())
        if tensor.numel() >= few and (low >= 0 or high <= 0) and abs(mean) < _FAR * spread:
            return self._between(tensor, low, high)
        std = 2.0 ** round(math.log2(spread))
        is_by_chance = abs(mean) < spread * max(1 / 4, 4 / math.sqrt(tensor.numel()))
        return self._helper("_normal", tensor, mean=0.0 if is_by_chance else round(mean / std * 2) * std / 2, std=std)

    def _of_one_value(self, tensor: torch.Tensor, value: float) -> str:
        """Draw around a value that says nothing of a spread: torch.ones as an example means numbers of order one."""
        if value == 0:
            return self._helper("_normal", tensor, mean=0.0, std=1.0)
        return self._between(tensor, *sorted((_rounded(value) / 2, _rounded(value) * 3 / 2)))

    def _between(self, tensor: torch.Tensor, low: float, high: float) -> str:
        least, most = _rounded(low), _rounded(high)
        if abs(least) * 16 < abs(most) and not _stays_away_from_0(tensor):
            least = 0.0
        if abs(most) * 16 < abs(least) and not _stays_away_from_0(tensor):
            most = 0.0
        return self._helper("_uniform", tensor, low=least, high=most if most != least else most * 1.5)

    def _helper(self, helper: str, tensor: torch.Tensor, **figures: float) -> str:
        self.used.add(helper)
        words = ", ".join(f"{name}={figure!r}" for name, figure in figures.items())
        return f"{helper}({tuple(tensor.shape)}, {tensor.dtype}, {words})"

    def _pack(self, name: str, tensor: torch.Tensor, text: str) -> str:
        self.used.add("_packed")
        self.packed[name] = text
        return f"_packed({name!r}, {tuple(tensor.shape)}, {tensor.dtype})"


def _is_finite(tensor: torch.Tensor) -> bool:
    return not tensor.is_floating_point() or bool(torch.isfinite(tensor).all())


def is_mask(tensor: torch.Tensor) -> bool:
    """Say whether a tensor holds two values and no third, as 0 and 1, or 0 and minus infinity."""
    if tensor.numel() < 2:  # two values
        return False
    if tensor.dtype is torch.bool:
        return _constant(tensor) is None
    low, high = tensor.min(), tensor.max()
    return bool(low < high) and bool(((tensor == low) | (tensor == high)).all())


def _is_drawable(tensor: torch.Tensor) -> bool:
    """Say whether a draw may stand for an example with a structure that is too large to be kept: masks of 0 and 1."""
    return _is_finite(tensor) and bool(((tensor == 0) | (tensor == 1)).all())


def _has_order(tensor: torch.Tensor) -> bool:
    """Say whether rows are sorted, or whole numbers are a permutation: draws would be neither."""
    if tensor.is_floating_point() or tensor.dtype is torch.bool:
        return tensor.is_floating_point() and _is_sorted(tensor)
    flat = tensor.flatten()
    is_permutation = bool(torch.equal(flat.sort().values, torch.arange(flat.numel(), dtype=flat.dtype)))
    return (is_permutation and flat.numel() > 1) or _is_sorted(tensor)


def _is_sorted(tensor: torch.Tensor) -> bool:
    if not tensor.dim() or tensor.shape[-1] < 3:  # two numbers are in order by chance
        return False
    steps = tensor.double().diff(dim=-1)
    return bool((steps >= 0).all()) and bool((steps > 0).any())


def _stays_away_from_0(tensor: torch.Tensor) -> bool:
    """Say whether small values are still far from 0 beside their number: a variance may not be drawn as 0."""
    values = tensor.double().abs()
    return bool((values > 0).all()) and float(values.min()) * tensor.numel() > 4 * float(values.max())


def _is_dense(tensor: torch.Tensor) -> bool:
    """Say whether a tensor's elements fill its memory, in some order: kernels read any other as a contiguous copy."""
    expected = 1
    for stride, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size > 1 and stride != expected:
            return False
        expected *= size
    return True


def _constant(tensor: torch.Tensor) -> float | int | bool | None:
    """Return the value that all elements have; None where they differ, or there is none."""
    if not tensor.numel():
        return 0
    first = tensor.flatten()[0]
    value: float | int | bool = first.item()
    return value if math.isfinite(value) and bool((tensor == first).all()) else None


def _full(tensor: torch.Tensor, value: float, *, word: str) -> str:
    """Return the source of a tensor of one value; the word before it says whether another draw may have another."""
    shape, dtype = tuple(tensor.shape), tensor.dtype
    if value in (0, 1) and not math.copysign(1, value) < 0:
        return f"torch.{'ones' if value else 'zeros'}({shape}, dtype={dtype})"
    return f"torch.full({shape}, {word}{value!r}, dtype={dtype})"


def listed(value: object) -> str:
    """Return a number, or nested lists of them, as source; infinities and NaN too."""
    if isinstance(value, list):
        return f"[{', '.join(map(listed, value))}]"
    is_strange = isinstance(value, float) and not math.isfinite(value)
    return f'float("{value}")' if is_strange else repr(value)


def _compressed(tensor: torch.Tensor) -> str:
    content = tensor.flatten().view(torch.uint8).numpy().tobytes()
    return base64.b64encode(zlib.compress(content)).decode()


def _rounded(figure: float) -> float:
    """Return a figure in eighths of its power of two."""
    if not figure:
        return 0.0
    step = 2.0 ** math.floor(math.log2(abs(figure))) / _SIGNIFICANT
    return round(figure / step) * step
