"""The numbers that inputs may hold: the reference's own first, and few of them."""

from __future__ import annotations

import torch

from ridgeline.tools.judge.worker.inputs.held import numbers_to_hold, with_held_of
from ridgeline.tools.judge.worker.inputs.values.transforms import silent
from ridgeline.tools.records.trial_names import HELD_EARLY, HELD_LATE

SOURCE = "STEPS, GAIN = 512, 3\nNAME, IS = 'x', True\nLOW = -0.75\nHALF = 0.5\nZERO = 0.0\nTINY = 1e-3\n"


def test_an_input_whose_range_lacks_a_number_holds_its_mean() -> None:
    assert held_of(torch.tensor([2.0, 4.0]))[:6] == [3.0] * 6


def held_of(tensor: torch.Tensor, source: str = SOURCE, scalars: tuple[float | int, ...] = ()) -> list[float]:
    return [rule(tensor) for rule in numbers_to_hold(source, scalars)]


def test_scalars_and_literals_come_first_those_with_a_point_before_whole_ones() -> None:
    found = held_of(torch.tensor([-5.0, 5.0]), scalars=(0.25, 7))
    assert found[0] == 0.25 and set(found[1:6]) == {-0.75, 0.75, 0.5, 1e-3, 3.0}
    assert found[6:9] == [1.0, -1.0, -0.5], "a number comes once"


def test_there_are_sixteen_at_most() -> None:
    source = "\n".join(f"a{i} = {i}.5" for i in range(1, 40))
    assert len(held_of(torch.rand(8), source)) == 16


def test_each_input_holds_its_own_mean_and_quantiles_of_few_bits() -> None:
    tensor = torch.arange(1001.0) / 1000
    numbers = held_of(tensor, "")[4:]
    assert numbers == sorted([0.5, 0.5, 0.25, 0.75, 0.0625, 0.9375], key=numbers.index)
    assert all(float(torch.tensor(n).bfloat16()) == n for n in held_of(torch.randn(10_000), ""))
    assert set(held_of(torch.full((4,), torch.inf), "")[4:]) == {0.0}


def test_numbers_that_are_held_stay_where_operands_move() -> None:
    for trial, at_end in ((HELD_LATE, False), (HELD_EARLY, True)):
        tensor = silent(torch.rand(8, 8) + 2, 1 / 4, at_end=at_end, number=0.3)
        [found] = with_held_of((tensor,), (tensor * 2,), trial)
        assert torch.equal(found, torch.where(tensor > 1, tensor * 2, tensor))
