"""The forms that two draws of an input show, and the ways that are left once some are refused."""

from __future__ import annotations

import torch

from ridgeline.tools.judge.worker.inputs.input_form import InputForm
from ridgeline.tools.judge.worker.inputs.input_ways import InputWays


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def floats(seed: int) -> torch.Tensor:
    return torch.randn(8, generator=generator(seed))


def permutation(seed: int) -> torch.Tensor:
    return torch.randperm(16, generator=generator(seed))


def test_numbers_that_are_drawn_need_no_way() -> None:
    form = InputForm.of(floats(1), floats(2))
    assert not form.needs_ways and not form.is_whole and form.order == 0


def test_a_permutation_is_one_whether_it_is_drawn_or_not() -> None:
    drawn, alike = InputForm.of(permutation(1), permutation(2)), InputForm.of(permutation(1), permutation(1))
    assert drawn.is_permuted and not drawn.is_alike and not drawn.is_map
    assert alike.is_permuted and alike.is_alike and alike.is_map


def test_offsets_are_whole_numbers_in_order_and_a_mask_has_none() -> None:
    offsets = torch.arange(0, 64, 4)
    assert InputForm.of(offsets, offsets).is_ordered_whole
    mask = torch.arange(16) > 7
    form = InputForm.of(mask, mask)
    assert form.is_mask and form.order == 0 and form.needs_ways


def test_an_input_that_is_always_alike_is_kept_once_every_way_is_refused() -> None:
    table = floats(1)
    ways = InputWays((floats(1), table), (floats(2), table))
    assert ways.varied == (1,) and ways.kept == () and ways.changes(1) and not ways.changes(0)
    while ways.varied:
        ways.give_up_way(1)
    assert ways.kept == (1,) and ways.refused == {1} and not ways.may_change(1) and ways.may_change(0)


def test_no_other_input_changes_while_one_is_tried() -> None:
    ways = InputWays((floats(1), floats(3), floats(4)), (floats(2), floats(3), floats(4)))
    with ways.varying_only(1):
        assert ways.changes(1) and not ways.changes(2) and not ways.may_change(0)
    assert ways.changes(2) and ways.may_change(0)
