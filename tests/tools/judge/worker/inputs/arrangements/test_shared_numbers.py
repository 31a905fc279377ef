"""Whole numbers of one input come in another one: in the same row where there is one, and as the reference takes it."""

from __future__ import annotations

import pytest
import torch
from tests.tools.judge.worker.made import made, made_of

from ridgeline.tools.judge.worker.inputs.arrangements.shared_numbers import with_shared_numbers
from ridgeline.tools.records.trial_names import SHARED_NUMBERS

IDS = "torch.randint(2**40, (8, {}))"


def shared(first: tuple[int, ...], second: tuple[int, ...], seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    a, b = (torch.randint(2**40, shape, generator=generator) for shape in (first, second))
    a, b = with_shared_numbers((a, b), generator, sources={1: (0,)}, chosen=(1,))
    return a, b


def test_a_share_of_each_row_holds_numbers_of_the_others_same_row() -> None:
    a, b = shared((16, 96), (16, 256))
    shares = [float(torch.isin(b[row], a[row]).float().mean()) for row in range(16)]
    assert sorted(shares)[3] > 0.15 and sorted(shares)[-4] < 0.6 and max(shares) - min(shares) > 0.05
    assert not any(bool(torch.isin(b[row], a[row - 1]).any()) for row in range(16))


def test_some_rows_have_runs_of_the_other() -> None:
    a, b = shared((16, 512), (16, 512))
    follows = [
        int(((x[:-1, None] == y[None, :-1]) & (x[1:, None] == y[None, 1:])).sum()) for x, y in zip(a, b, strict=True)
    ]
    assert 2 <= sum(each > 16 for each in follows) <= 14


@pytest.mark.parametrize("width", [64, 65])
def test_some_rows_are_alike_for_any_length_at_their_own_places(width: int) -> None:
    a, b = shared((256, 64), (256, width))
    together = (a == b[:, :64]).long()
    lengths = together.cumprod(-1).sum(-1)  # of what both begin with
    assert 12 <= int((lengths > 8).sum()) <= 64 and int((lengths > 48).sum()) > 3
    assert int(((together.sum(-1) > 16) & (lengths == 0)).sum()) > 3, "others are alike further on"


def test_many_rows_of_one_input_repeat_a_run_of_their_own() -> None:
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(2**30, (64, 128), generator=generator)
    ids[:, 7] = -100
    (again,) = with_shared_numbers((ids,), generator, sources={0: (0,)}, chosen=(0,))
    windows = again.unfold(-1, 4, 1)
    is_equal = (windows[:, :, None] == windows[:, None]).all(-1).tril(-1)
    count = is_equal.flatten(1).sum(-1)
    assert 16 <= int((count > 0).sum()) <= 48 and int(count.max()) <= 29
    assert bool((again[:, 7] == -100).all()) and int((again == -100).sum()) == 64
    assert bool(torch.isin(again, ids).all())


def test_numbers_that_the_source_writes_come_where_they_are_within_range() -> None:
    found = made("x", "torch.randint(2**20, (8, 256))", "return ((x == 977123) | (x == -3)).double().cumsum(-1)")
    for secret in (b"one", b"another"):
        found.source.draw_from(secret)
        (ids,) = found.book.contents.of(SHARED_NUMBERS)[0]
        assert 0 < int((ids == 977123).sum()) < 128 and int(ids.min()) >= 0


def test_the_ends_of_the_range_that_an_input_is_drawn_from_come_and_marks_beyond_its_numbers() -> None:
    found = made("x", "torch.randint(128256, (96,))", "return (x == 128009).double().cumsum(-1)")
    for secret in (b"one", b"another"):
        found.source.draw_from(secret)
        (ids,) = found.book.contents.of(SHARED_NUMBERS)[0]
        assert {0, 128009, 128255} <= set(ids.tolist()) and int((ids == 128009).sum()) < 24


def test_a_single_input_of_whole_numbers_meets_its_own_once_more() -> None:
    found = made("x", "torch.randint(32000, (8, 256))", "return x.double().cumsum(-1)")
    (ids,), (nominal,) = found.book.contents.of(SHARED_NUMBERS)[0], found.source.nominal(SHARED_NUMBERS)
    changed = (ids != nominal).float().mean(-1)
    assert float(changed.max()) > 0.2 > float(changed.min()), "beside marks"


@pytest.mark.parametrize(
    ("first", "second"), [((96,), (256,)), ((4, 96), (256,)), ((32,), (32, 64)), ((32, 64), (32,))]
)
def test_inputs_of_other_forms_share_numbers_too(first: tuple[int, ...], second: tuple[int, ...]) -> None:
    a, b = shared(first, second)
    assert a.shape == first and b.shape == second and 0.1 < float(torch.isin(b, a).float().mean()) < 0.7


def test_numbers_stay_within_an_inputs_own_range() -> None:
    found = made("a, b", "torch.randint(99, (8, 64)), torch.randint(40, (8, 32))", "return a.sum(-1) - b.sum(-1)")
    b = found.book.contents.of(SHARED_NUMBERS)[0][1]
    assert SHARED_NUMBERS in found.domain.names and int(b.max()) < 40


def test_what_the_reference_refuses_is_named() -> None:
    body = "assert not bool((a[:, :, None] == b[:, None]).any())", "return a.double() - b.double()[:, :32]"
    found = made("a, b", f"{IDS.format(32)}, {IDS.format(64)}", *body)
    a, b = found.book.contents.of(SHARED_NUMBERS)[0]
    assert f"{SHARED_NUMBERS} b" in found.domain.skipped and not bool(torch.isin(a, b).any())


@pytest.mark.parametrize(
    ("inputs", "receiver"),
    [
        ("torch.randint(-(2**31), 2**31, (8, 64)).int(), torch.randint(2**40, (8, 96))", 1),
        ("torch.randint(2**40, (8, 96)), torch.randint(-(2**31), 2**31, (8, 64)).int()", 0),
        ("torch.randint(256, (8, 64), dtype=torch.uint8), torch.randint(2**40, (8, 96))", 1),
        ("torch.randint(2**40, (8, 96)), torch.randint(2**40, (8, 64)).sort(-1).values", 0),
        ("torch.randperm(2**15)[:64], torch.randint(2**15, (64,), dtype=torch.int16)", 1),
    ],
)
def test_numbers_of_another_type_in_order_or_distinct_come_in_the_one_that_may_hold_them(
    inputs: str, receiver: int
) -> None:
    found = made("a, b", inputs, "return a.double().sum(-1) - b.double().sum(-1)")
    drawn, nominal = found.book.contents.of(SHARED_NUMBERS)[0], found.source.nominal(SHARED_NUMBERS)
    assert SHARED_NUMBERS in found.domain.names
    assert not torch.equal(drawn[receiver], nominal[receiver])
    own, other = drawn[receiver], drawn[1 - receiver]
    assert (
        own.dtype == nominal[receiver].dtype and 0.01 < float(torch.isin(own.long(), other.long()).float().mean()) < 1
    )
    least, most = found.source.drawn_from()[receiver]
    shared = own[torch.isin(own.long(), other.long())]
    assert least <= shared.min() and shared.max() <= most


LISTED = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("keys", torch.randint(2**40, (64,)){order})
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))

    def forward(self, ids):
        return torch.isin(ids, self.keys).double().cumsum(-1) + ids % 7


def get_inputs():
    return [torch.randint(2**40, (8, 64))]


def get_init_inputs():
    return []
"""


@pytest.mark.parametrize("order", ["", ".sort().values", ".int()"])
def test_numbers_of_a_list_that_a_module_keeps_come_in_inputs_under_every_secret(order: str) -> None:
    found = made_of(LISTED.format(order=order))
    for secret in (b"one", b"another"):
        found.source.draw_from(secret)
        (ids,), parameters = found.book.contents.of(SHARED_NUMBERS)
        assert 0.02 < float(torch.isin(ids, parameters["keys"].long()).float().mean()) < 0.7


@pytest.mark.parametrize(
    "inputs",
    [
        "torch.randint(9, (8, 12)), torch.randint(-19, -10, (8, 12))",
        "torch.randperm(64), torch.randint(9, (64,)).sort().values",
        "torch.rand(8, 64) < 0.5, torch.rand(8, 64) < 0.5",
    ],
)
def test_short_rows_of_other_ranges_masks_and_two_of_which_neither_may_change_share_none(inputs: str) -> None:
    found = made("a, b", inputs, "return a.sum(-1), b.sum(-1)")
    sources = (
        found.source.arrangements[SHARED_NUMBERS].keywords["sources"] if SHARED_NUMBERS in found.domain.names else {}
    )
    assert not any(sources.values()), "marks alone may come"


def test_whole_rows_of_a_shorter_source_come_at_any_place_and_at_the_end_without_their_last_number() -> None:
    a, b = shared((64, 12), (64, 256))
    at = [(b.unfold(-1, n, 1)[:, :, None] == a[None, None, :, :n]).all(-1).any(-1) for n in (12, 11)]
    whole, all_but_one = (found.any(-1) for found in at)
    assert 8 <= int(whole.sum()) <= 32
    ends = at[1][:, -1] & ~at[0][:, -1]
    assert int((ends & all_but_one).sum()) >= 1, "what would complete a phrase"
    assert int(at[0][:, -1].sum()) >= 1 and int((at[0][:, :-1].any(-1)).sum()) >= 4


def test_no_phrase_takes_a_sentinels_place() -> None:
    generator = torch.Generator().manual_seed(0)
    a, b = torch.randint(2**30, (64, 12), generator=generator), torch.randint(2**30, (64, 256), generator=generator)
    b[:, ::5] = -100
    _, changed = with_shared_numbers((a, b), generator, sources={1: (0,)}, chosen=(1,))
    assert torch.equal(changed == -100, b == -100) and bool((changed != b).any())


def test_numbers_of_several_inputs_take_no_more_of_a_row_than_those_of_one() -> None:
    generator = torch.Generator().manual_seed(0)
    a, b, c, d = (torch.randint(2**40, (256, 64), generator=generator) for _ in range(4))
    *_, changed = with_shared_numbers((a, b, c, d), generator, sources={3: (0, 1, 2)}, chosen=(3,))
    shares = (changed != d).float().mean(-1)
    assert 0.25 < float(shares.mean()) < 0.45 and float((shares > 0.6).float().mean()) < 0.15


def test_of_two_of_one_range_the_longer_one_holds_the_others_numbers() -> None:
    for names in ("text, phrase", "phrase, text"):
        shapes = {"text": "(16, 256)", "phrase": "(16,)"}
        inputs = ", ".join(f"torch.randint(32000, {shapes[name]})" for name in names.split(", "))
        found = made(names, inputs, "return text.double().cumsum(-1) + phrase.sum()")
        drawn = dict(zip(names.split(", "), found.book.contents.of(SHARED_NUMBERS)[0], strict=True))
        is_whole = (drawn["text"].unfold(-1, 16, 1) == drawn["phrase"]).all(-1)
        assert 1 <= int(is_whole.any(-1).sum()) <= 12
