"""The structure of an input's values that a kernel may rely on: zeros, symmetry, order."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ridgeline.tools.judge.worker.finite import is_finite

_STRUCTURE = 0.2  # this share of exact zeros is no accident
_LOOKED_AT = 256
LEAST_ORDERED = 3  # a row of two is always in some order
_FEWEST_OTHERS = 3  # different numbers beside one that may be apart
_OF_FEW = 8  # times that each of two others comes, on average; and numbers beside several that may be apart
_MOST_AT_AN_END = 2  # sentinels: one that is left out, and one for a place that is empty
_MOST_COUNTED = 1 << 20  # places of a larger tensor whose numbers are sorted, and numbers of a range that are not
_LARGEST_OF_INT = 2**31 - 1  # there is no dimension of so many places
_LARGEST_OF_TYPES = (2**7 - 1, 2**8 - 1, 2**15 - 1, 2**16 - 1, _LARGEST_OF_INT, 2**32 - 1, 2**63 - 1)
_FAR_APART = 8  # times the largest other gap: of hundreds of even draws no gap is so wide beside the others
_FAR_MORE_OFTEN = 8  # times as often as the number in the middle of the counts
_OFTEN_ALONE_BELOW_0 = 2  # times as often, where all others are 0 or more: few of many labels do not count


def has_structural_zeros(tensor: torch.Tensor) -> bool:
    """Return whether a kernel may rely on the zeros: those of a triangular or sparse input."""
    return tensor.numel() > 0 and int((tensor == 0).sum()) > _STRUCTURE * tensor.numel()


def is_symmetric(tensor: torch.Tensor) -> bool:
    """Return whether a kernel may rely on the symmetry of the last two dimensions."""
    return tensor.dim() > 1 and tensor.shape[-1] == tensor.shape[-2] > 1 and torch.equal(tensor, tensor.mT)


def mirrored(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor whose last two dimensions are symmetric to the last bit: its lower triangle, and that once more."""
    return tensor.tril() + tensor.tril(-1).mT


def is_binary(tensor: torch.Tensor) -> bool:
    """Return whether there are zeros and ones and nothing else: a mask."""
    first = tensor.flatten()[:_LOOKED_AT] if tensor.is_contiguous() else tensor
    if not bool(((first == 0) | (first == 1)).all()):
        return False  # nearly every other tensor ends here, without masks of its own size
    zeros, ones = tensor == 0, tensor == 1
    return bool((zeros | ones).all()) and bool(zeros.any()) and bool(ones.any())


def is_without_structure(tensor: torch.Tensor) -> bool:
    """Return whether floating-point numbers are finite, no mask, not symmetric, and without zeros that are structure.

    Whether they are in order, and in every draw, is another matter.
    """
    if not tensor.is_floating_point() or not is_finite(tensor):
        return False
    return not (is_binary(tensor) or is_symmetric(tensor) or has_structural_zeros(tensor))


def is_mask(tensor: torch.Tensor) -> bool:
    """Return whether an input is a mask, of whatever type; one row of whole numbers that rises may be segments instead."""
    if tensor.dtype == torch.bool:
        return True
    if tensor.is_complex() or tensor.numel() < LEAST_ORDERED or not is_binary(tensor):
        return False
    return tensor.is_floating_point() or tensor.dim() > 1 or order_of(tensor) <= 0


def order_of(tensor: torch.Tensor) -> int:
    """Return 1 when every row (the last dimension) rises, -1 when every one falls, 0 for anything else."""
    if tensor.dtype == torch.bool or tensor.dim() == 0 or tensor.shape[-1] < LEAST_ORDERED or tensor.numel() == 0:
        return 0
    last_row = tensor[(-1,) * (tensor.dim() - 1)]
    may_be_ordered = _order(last_row) != 0 or bool((last_row == last_row[0]).all())  # one number alone: padding
    return _order(tensor) if may_be_ordered else 0  # nearly every tensor without order shows that in one row


def _order(tensor: torch.Tensor) -> int:
    before, after = tensor[..., :-1], tensor[..., 1:]
    if bool((before == after).all()):
        return 0
    if bool((before <= after).all()):
        return 1
    return -1 if bool((before >= after).all()) else 0


def common_order(first: torch.Tensor, second: torch.Tensor) -> int:
    """Return the order that two draws have both, 0 where they have none."""
    order = order_of(first)
    return order if order and order_of(second) == order else 0


def have_same_values(first: torch.Tensor, second: torch.Tensor) -> bool:
    """Return whether two draws hold the same values, in any order."""
    return torch.equal(first.flatten().sort().values, second.flatten().sort().values)


def are_distinct(tensor: torch.Tensor) -> bool:
    """Return whether no value occurs twice: a permutation."""
    return tensor.numel() > 1 and torch.unique(tensor).numel() == tensor.numel()


def row_axis(tensor: torch.Tensor) -> int:
    """Return the last dimension of more than one place: a mask may end in ones, to be broadcast."""
    return next((axis for axis in reversed(range(tensor.dim())) if tensor.shape[axis] > 1), -1)


def are_permuted_rows(tensor: torch.Tensor) -> bool:
    """Return whether all rows hold the same distinct numbers, each in an order of its own: a batch of permutations."""
    if tensor.dim() < 2 or tensor.shape[-1] < LEAST_ORDERED or tensor.dtype == torch.bool:
        return False
    rows = tensor.reshape(-1, tensor.shape[-1])
    if not are_distinct(rows[0]):
        return False
    return bool((rows.sort(-1).values == rows[0].sort().values).all())


def in_order(tensor: torch.Tensor, order: int) -> torch.Tensor:
    """Return every row sorted as `order` says; the tensor itself for 0."""
    return tensor.sort(dim=-1, descending=order < 0).values if order else tensor


def may_be_compared(dtype: torch.dtype) -> bool:
    """Return whether PyTorch compares and gathers numbers of a type everywhere: of wide ones without a sign it does not."""
    return dtype.is_signed or dtype == torch.uint8


def range_of_whole(tensor: torch.Tensor) -> tuple[int, int] | None:
    """Return the smallest and the largest of whole numbers, None of anything else."""
    if tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool or not tensor.numel():
        return None
    low, high = torch.aminmax(tensor if may_be_compared(tensor.dtype) else tensor.long())
    return int(low), int(high)


def range_without_sentinels(tensor: torch.Tensor) -> tuple[int, int] | None:
    """Return the range of whole numbers without sentinels at either end, two at most; None of anything else.

    Such are -100 for a label that does not count, and the largest number for a place that is empty: a reference that
    replaces a sentinel takes any number beyond the others, which no kernel need. They are far apart from the others, or
    drawn far more often.
    """
    if (ends := range_of_whole(tensor)) is None:
        return None
    numbers, counts = _counted(tensor, ends)
    gaps = _at_both_ends(_gaps(numbers))
    frequent = (
        _is_frequent(gaps, counts, _often_below(numbers)),
        _is_frequent(gaps[::-1], counts.flip(0), _FAR_MORE_OFTEN),
    )
    of_low, of_high = (n or int(is_one) for n, is_one in zip(_apart(numbers, counts, ends), frequent, strict=True))
    n_others = numbers.numel() - of_low - of_high
    if n_others <= 1:
        return ends  # two groups, of which none is the others
    if n_others < _FEWEST_OTHERS:  # of three classes one may be far from the others
        of_low, of_high = (
            count if _names_no_class(end) else 0 for count, end in zip((of_low, of_high), ends, strict=True)
        )
    return int(numbers[of_low]), int(numbers[-1 - of_high])


def range_within_padding(rows: torch.Tensor) -> tuple[int, int] | None:
    """Return the range of whole numbers of rows in order without what they are padded with; None of anything else.

    The last of a few offsets may be far above the others, or come twice, and names a place all the same. So padding is an
    end that names none, far apart or drawn far more often.
    """
    if (ends := range_of_whole(rows)) is None or rows.dim() == 0:
        return ends
    may_pad = [_names_no_place(end) for end in ends]
    if not any(may_pad):
        return ends
    numbers, counts = _counted(rows, ends)
    gaps = _at_both_ends(_gaps(numbers))
    of_low, of_high = (
        may_be and (_are_apart(1, each, counted) or _is_frequent(each, counted, times))
        for may_be, each, counted, times in (
            (may_pad[0], gaps, counts, _often_below(numbers)),
            (may_pad[1], gaps[::-1], counts.flip(0), _FAR_MORE_OFTEN),
        )
    )
    return int(numbers[int(of_low)]), int(numbers[-1 - int(of_high)])


def _names_no_place(number: int) -> bool:
    return number < 0 or number >= _LARGEST_OF_INT


def _names_no_class(number: int) -> bool:
    return _names_no_place(number) or _is_marked(number)


def _is_marked(number: int) -> bool:
    """Return whether a number is below 0, or the largest of a type: no other grows up to it."""
    return number < 0 or number in _LARGEST_OF_TYPES


def _counted(tensor: torch.Tensor, ends: tuple[int, int]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the different whole numbers of a tensor and how often each comes: in many of its places, and at both ends.

    Numbers of a narrow range are counted in all places: a million of them in 2 ms, where sorting takes 80.
    """
    whole, (low, high) = tensor.flatten().long(), ends
    if high - low < _MOST_COUNTED:
        counts = torch.bincount(whole - low)
        found = counts.nonzero().flatten()
        return found + low, counts[found]
    if whole.numel() > _MOST_COUNTED:
        others = whole[(whole != low) & (whole != high)]
        nearest = torch.aminmax(others) if others.numel() else ()
        kept = torch.stack((whole.amin(), *nearest, whole.amax()))
        whole = torch.cat((whole[_some_places(whole)], kept))
    numbers, counts = torch.unique(whole, return_counts=True)
    return numbers, counts


def _gaps(numbers: torch.Tensor) -> torch.Tensor:
    """Return how far sorted whole numbers are apart: exact below 2**53, also where the numbers themselves are larger."""
    steps = numbers.diff()
    return torch.where(steps < 0, steps.double() + 2.0**64, steps.double())  # a step beyond 63 bits has wrapped


def _at_both_ends(gaps: torch.Tensor) -> list[float]:
    """Return the gaps between numbers: the two at either end, and the widest of the others."""
    if gaps.numel() <= 2 * _MOST_AT_AN_END:
        return gaps.tolist()
    first, inner, last = gaps.tensor_split((_MOST_AT_AN_END, gaps.numel() - _MOST_AT_AN_END))
    return torch.cat((first, inner.amax().view(1), last)).tolist()


def _apart(numbers: torch.Tensor, counts: torch.Tensor, ends: tuple[int, int]) -> list[int]:
    """Return how many numbers at either end are far from all others.

    Where the next ones are as far from what is left then, numbers only grow: powers, or a heavy tail. Such an end is one
    of them, unless it is below 0 or the largest of a type.
    """
    far = _far(numbers, counts)
    inner = slice(far[0], numbers.numel() - far[1])
    next_ones = _far(numbers[inner], counts[inner])
    return [0 if more and not _is_marked(end) else n for n, more, end in zip(far, next_ones, ends, strict=True)]


def _far(numbers: torch.Tensor, counts: torch.Tensor) -> list[int]:
    """Return how many numbers at either end are far from the others: two only where the last of them names no class."""
    gaps = _at_both_ends(_gaps(numbers))
    sides = ((int(numbers[0]), gaps, counts), (int(numbers[-1]), gaps[::-1], counts.flip(0)))
    return [
        next((n for n in range(1 + _names_no_class(end), 0, -1) if _are_apart(n, each, counted)), 0)
        for end, each, counted in sides
    ]


def _are_apart(n_first: int, gaps: Sequence[float], counts: torch.Tensor) -> bool:
    """Return whether the first numbers are far from all others, or from these but the last ones, which are as far from them."""
    for n_last in range(_MOST_AT_AN_END + 1):
        others = counts[n_first : counts.numel() - n_last]
        if not _tell_their_range(others, of_one=n_first + n_last == 1):
            return False
        widest = _FAR_APART * max(gaps[n_first : len(gaps) - n_last])
        if gaps[n_first - 1] > widest and (n_last == 0 or gaps[-n_last] > widest):
            return True
    return False


def _tell_their_range(counts: torch.Tensor, *, of_one: bool) -> bool:
    """Return whether there are enough numbers to tell what lies apart from them: several, or two that come often."""
    if counts.numel() >= (_FEWEST_OTHERS if of_one else _OF_FEW):
        return True
    return counts.numel() > 1 and int(counts.sum()) >= _OF_FEW * counts.numel()


def _often_below(numbers: torch.Tensor) -> int:
    """Return how many times as often as others the smallest number comes, to be a sentinel."""
    is_alone_below_0 = numbers.numel() > 1 and int(numbers[0]) < 0 <= int(numbers[1])
    return _OFTEN_ALONE_BELOW_0 if is_alone_below_0 else _FAR_MORE_OFTEN


def _is_frequent(gaps: Sequence[float], counts: torch.Tensor, times: int) -> bool:
    """Return whether the first number comes so many times as often as others, and no other follows it at once."""
    if counts.numel() <= _FEWEST_OTHERS or gaps[0] <= 1:
        return False
    return float(counts[0]) >= times * float(counts[1:].double().median())


def _some_places(tensor: torch.Tensor) -> torch.Tensor:
    """Return the same random places of a large tensor each time: a stride would stay within a column."""
    generator = torch.Generator(tensor.device).manual_seed(0)
    return torch.randint(tensor.numel(), (_MOST_COUNTED,), generator=generator, device=tensor.device)


def sentinels_of(tensor: torch.Tensor) -> torch.Tensor | None:
    """Return the places of the sentinels among whole numbers, None where there are none."""
    ends = range_without_sentinels(tensor)
    return None if ends is None or ends == range_of_whole(tensor) else ~is_within(tensor, ends)


def with_sentinels_of(tensor: torch.Tensor, changed: torch.Tensor) -> torch.Tensor:
    """Return changed whole numbers of a tensor whose sentinels are as they were."""
    sentinels = sentinels_of(tensor)
    return changed if sentinels is None else torch.where(sentinels, tensor, changed)


def without_sentinels(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return a tensor with others of its numbers in place of sentinels: one of which a number may be taken."""
    if (sentinels := sentinels_of(tensor)) is None:
        return tensor
    numbers = tensor[~sentinels]
    places = torch.randint(numbers.numel(), tensor.shape, generator=generator, device=generator.device)
    return torch.where(sentinels, numbers[places], tensor)


def is_within(tensor: torch.Tensor, ends: tuple[int, int]) -> torch.Tensor:
    """Return which numbers are neither below the first nor above the second end."""
    low, high = ends
    return (tensor >= low) & (tensor <= high)
