"""Whole numbers of a wide range come close to others, or alike but for a bit: within their range, distinct where they were."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from tests.tools.judge.worker.made import made

from ridgeline.tools.judge.worker.inputs.arrangements import close_numbers as module
from ridgeline.tools.judge.worker.inputs.arrangements.close_numbers import with_bits_changed, with_close_numbers
from ridgeline.tools.judge.worker.inputs.arrangements.shared_numbers import with_shared_numbers
from ridgeline.tools.records.trial_names import SHARED_NUMBERS

KEYS = "torch.randint(2**62, (16, 512))"
SORTED = "return torch.randn(512, generator=torch.Generator().manual_seed(0)).to(k.device)[k.argsort(1)]"
WITH_CLOSE = partial(with_shared_numbers, sources={1: (0,)}, chosen=(1,), close=(0, 1))


def drawn(*shape: int, low: int = 0, high: int = 2**62, seed: int = 0) -> torch.Tensor:
    return torch.randint(low, high, shape, generator=torch.Generator().manual_seed(seed))


def bits_apart(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """Return in how many bits numbers differ, of every pair."""
    differ = first.flatten()[:, None] ^ second.flatten()
    return sum(((differ >> n) & 1 for n in range(64)), torch.zeros_like(differ))


@pytest.mark.parametrize("shape", [(16, 512), (512, 4), (512,)])
def test_close_numbers_follow_each_other_in_the_order_that_they_had(shape: tuple[int, ...]) -> None:
    before = drawn(*shape)
    found = [with_close_numbers(before, torch.Generator().manual_seed(seed)) for seed in range(8)]
    axis = 1 if shape == (16, 512) else 0
    for after in found:
        assert int(after.min()) >= int(before.min()) and int(after.max()) <= int(before.max())
        assert torch.unique(after).numel() > 0.999 * before.numel()
    gaps = torch.stack([after.sort(dim=axis).values.diff(dim=axis) for after in found])
    assert 0.4 < float((gaps <= 8).float().mean()) < 0.95
    whole = [a for a in found if int(a.max() - a.min()) <= 3 * 512] if len(shape) == 1 else []
    for after in whole:
        assert torch.equal(after.argsort(0), before.argsort(0))


def test_close_numbers_of_lines_that_begin_at_the_highest_number_stay_within_the_range() -> None:
    before = drawn(16, 512)
    highest = int(before.max())
    before[:, 0] = highest - torch.arange(16)
    after = with_close_numbers(before, torch.Generator().manual_seed(0))
    assert int((highest - after < 2000).sum()) > 1000
    assert int(after.max()) <= highest


def test_sentinels_stay_where_other_numbers_come_close() -> None:
    before = drawn(16, 512, low=2**40)
    before[:, ::7] = -1
    after = with_close_numbers(before, torch.Generator().manual_seed(0))
    assert float((after != before).float().mean()) > 0.2
    assert torch.equal(after == -1, before == -1)
    others = before[before != -1]
    assert int(after[after != -1].min()) >= int(others.min()), "also in lines that begin with a sentinel"


def test_equal_numbers_stay_equal_where_they_come_close() -> None:
    before = drawn(16, 64).repeat(1, 2)
    after = with_close_numbers(before, torch.Generator().manual_seed(0))
    is_close = (after[:, :64] != before[:, :64]) & (after[:, 64:] != before[:, 64:])
    assert bool(is_close.any()) and torch.equal(after[:, :64][is_close], after[:, 64:][is_close])


@pytest.mark.parametrize(
    ("low", "high"), [(0, 2**62), (-(2**31), 2**31), (-(2**63), 2**63 - 1), (10**9, 10**9 + 2**17), (-(2**40), -1)]
)
def test_every_bit_of_a_range_comes_changed_alone(low: int, high: int) -> None:
    before = drawn(64, 512, low=low, high=high)
    ends = int(before.min()), int(before.max())
    after = with_bits_changed(before, ends, torch.Generator().manual_seed(0))
    assert int(after.min()) >= int(before.min()) and int(after.max()) <= int(before.max())
    is_changed = after != before
    assert 0.1 < float(is_changed.float().mean()) < 0.4
    bits, has_other_sign = set(), False
    sign = -1 << max((~ends[0]).bit_length(), ends[1].bit_length())
    for row in range(64):
        changed = after[row][is_changed[row]]
        differ = changed[:, None] ^ before[row]
        has_other_sign |= bool((differ == sign).any())
        bits |= {int(d) for d in differ[(differ & (differ - 1)) == 0].tolist() if d > 0}
    assert len(bits) >= min(62, (high - low).bit_length() - 1 - (low < 0 <= high))
    assert has_other_sign is (low < 0 <= high)


def test_numbers_but_for_a_bit_are_near_to_one_another_and_far() -> None:
    before, found = drawn(1024), []
    for seed in range(8):
        after = with_bits_changed(before, (0, 2**62), torch.Generator().manual_seed(seed))
        places = (after != before).nonzero().flatten()
        differ = after[places, None] ^ before
        at, of = ((differ != 0) & (differ & (differ - 1) == 0)).nonzero().unbind(1)
        found.append((of - places[at]) % len(before))
    distances = torch.cat(found)
    for low, high in ((1, 10), (10, 100), (100, 1024)):
        share = float(((distances >= low) & (distances < high)).float().mean())
        assert share > 0.1, f"from {low} to {high}"


def test_numbers_of_two_inputs_differ_in_one_bit_at_one_place_and_at_others() -> None:
    a, b = WITH_CLOSE((drawn(4, 64), drawn(4, 64, seed=1)), torch.Generator().manual_seed(0))
    apart = torch.stack([bits_apart(x, y) for x, y in zip(a, b, strict=True)])
    assert int((apart == 1).sum()) > 8 and int((apart == 0).sum()) > 8
    a, b = WITH_CLOSE((drawn(2048), drawn(2048, seed=1)), torch.Generator().manual_seed(0))
    for count in (0, 1):
        assert int((bits_apart(a, b).diagonal() == count).sum()) > 8


def test_keys_alone_come_close_in_a_trial() -> None:
    found = made("k", KEYS, SORTED)
    (keys,), _ = found.book.contents.of(SHARED_NUMBERS)
    assert SHARED_NUMBERS in found.domain.names
    for low in (keys >> 20, keys & 2**32 - 1):
        assert torch.unique(low).numel() < torch.unique(keys).numel() and 2 * torch.unique(keys).numel() > keys.numel()


@pytest.mark.parametrize("high", [2**18, 2**40])
def test_numbers_that_are_distinct_in_a_line_stay_so(high: int) -> None:
    before = torch.stack([drawn(4 * 3000, high=high, seed=seed).unique()[:3000] for seed in range(4)])
    for seed in range(4):
        generator = torch.Generator().manual_seed(seed)
        (after,) = with_shared_numbers((before,), generator, sources={}, chosen=(), close=(0,))
        gaps = after.sort(dim=1).values.diff(dim=1)
        assert int(gaps.min()) == 1 and float((after != before).float().mean()) > 0.1


def test_lines_that_had_equal_numbers_are_looked_at_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[int] = []
    come_twice = module._come_twice
    monkeypatch.setattr(module, "_come_twice", lambda lines: (counts.append(lines.numel()), come_twice(lines))[1])
    given = torch.arange(32).remainder(4).view(4, 8)
    assert torch.equal(module.distinct_again(given + 1, given, is_whole=False), given + 1) and counts == [32]


def test_numbers_to_write_to_stay_distinct() -> None:
    body = "out = torch.zeros(3000, dtype=torch.int64)", "out[k.argsort()] = k", "return out"
    found = made("k", "torch.randint(2**40, (3000,)).unique()[torch.randperm(3000)]", *body)
    for draw in range(4):
        (keys,) = found.source.arranged(f"draw {draw}", SHARED_NUMBERS)
        assert int(keys.sort().values.diff().min()) == 1


def test_equal_numbers_alone_come_where_close_ones_are_refused() -> None:
    body = "assert int((a.sort(1).values.diff(dim=1) == 1).sum()) < 4", "return a.double() - b.double()[:, :32]"
    found = made("b, a", "torch.randint(2**40, (8, 64)), torch.randint(2**40, (8, 32))", *body)
    b, a = found.book.contents.of(SHARED_NUMBERS)[0]
    assert SHARED_NUMBERS in found.domain.names and f"{SHARED_NUMBERS} a" in found.domain.skipped
    assert bool(torch.isin(a, b).any()) and int((a.sort(1).values.diff(dim=1) == 1).sum()) < 4


@pytest.mark.parametrize(
    "inputs",
    [
        "torch.randint(2**15, (16, 512))",
        "torch.randint(2**62, (16, 512)).sort(1).values",
        "torch.arange(2**62, 2**62 + 512)",
        "torch.randperm(2**17)",
        "torch.randint(2**17, (1, 2**16))",
    ],
)
def test_narrow_ranges_rows_in_order_and_places_hold_no_other_numbers(inputs: str) -> None:
    found = made("k", inputs, "return k.sort(-1).values")
    if SHARED_NUMBERS in found.domain.names:  # for runs of its own once more, and some of the source
        (drawn,), (nominal,) = found.book.contents.of(SHARED_NUMBERS)[0], found.source.nominal(SHARED_NUMBERS)
        assert float(torch.isin(drawn, nominal).float().mean()) > 0.8
