"""Planted faults of a kernel, and the map that each leaves."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import pytest
import torch

from ridgeline.tools.judge.worker.grading.outputs import error_map
from ridgeline.tools.judge.worker.grading.outputs.error_map import map_errors
from ridgeline.tools.judge.worker.grading.outputs.expected import expect
from ridgeline.tools.records.error_map import AxisPattern, ErrorMap, Pattern, Relation

LIMIT = 1e-4
ROWS, COLUMNS = 24, 40

Fault = Callable[[torch.Tensor], torch.Tensor]


def values() -> torch.Tensor:
    return torch.randn(ROWS, COLUMNS, dtype=torch.float64, generator=torch.Generator().manual_seed(5))


def mapped(fault: Fault) -> ErrorMap:
    """Return the map of an output in float32 with a fault."""
    want = values()
    found = map_errors(fault(want.clone()).float().contiguous().reshape(ROWS, COLUMNS), expect(want), LIMIT)
    assert found is not None
    return found


def spoiled(at: object) -> Fault:
    """Return a fault that adds noise at an index."""

    def spoil(out: torch.Tensor) -> torch.Tensor:
        out[at] += 1 + torch.rand_like(out[at])
        return out

    return spoil


@pytest.mark.parametrize(
    ("at", "patterns"),
    [
        ((3, 7), [(0, Pattern.ONE, 3, 3), (1, Pattern.ONE, 7, 7)]),
        ((slice(None), slice(37, 40)), [(1, Pattern.LAST, 37, 39)]),
        ((slice(0, 2), slice(None)), [(0, Pattern.FIRST, 0, 1)]),
        ((slice(None), slice(5, 9)), [(1, Pattern.RANGE, 5, 8)]),
        ((slice(None), [0, 39]), [(1, Pattern.BORDERS, 0, 39)]),
        ((slice(None), slice(1, None, 2)), [(1, Pattern.EVERY, 1, 39)]),
        ((slice(None), [2, 3, 11]), [(1, Pattern.SOME, 2, 11)]),
        ((slice(None), [2, 4, 7]), [(1, Pattern.SOME, 2, 7)]),
        ((slice(None), [0, 20, 39]), [(1, Pattern.SOME, 0, 39)]),
        ((slice(None), [10, 20]), [(1, Pattern.SOME, 10, 20)]),
    ],
)
def test_wrong_elements_are_placed_by_axis(at: object, patterns: list[tuple[int, Pattern, int, int]]) -> None:
    found = mapped(spoiled(at))
    assert [(a.axis, a.pattern, a.first, a.last) for a in found.axes] == patterns


def test_the_step_and_the_share_are_told() -> None:
    found = mapped(spoiled((slice(None), slice(2, None, 4))))
    assert found.axes == (AxisPattern(axis=1, size=COLUMNS, pattern=Pattern.EVERY, count=10, first=2, last=38, step=4),)
    assert (found.wrong, found.total) == (ROWS * 10, ROWS * COLUMNS)


def _zeroed(out: torch.Tensor) -> torch.Tensor:
    out[:, 30:] = 0
    return out


@pytest.mark.parametrize(
    ("fault", "relation", "value", "axis"),
    [
        (_zeroed, Relation.CONSTANT, 0.0, 0),
        (lambda out: 0.5 * out, Relation.RATIO, 0.5, 0),
        (lambda out: -out, Relation.RATIO, -1.0, 0),
        (lambda out: out + 0.25, Relation.OFFSET, 0.25, 0),
        (lambda out: out.T, Relation.TRANSPOSED, 0.0, 0),
        (lambda out: out.roll(1, dims=1), Relation.SHIFTED, 1.0, 1),
        (lambda out: out.roll(-1, dims=0), Relation.SHIFTED, -1.0, 0),
        (lambda out: out + torch.arange(COLUMNS), Relation.OFFSET_BY_AXIS, 0.0, 1),
        (lambda out: out * torch.arange(2, ROWS + 2)[:, None], Relation.RATIO_BY_AXIS, 0.0, 0),
    ],
)
def test_wrong_values_relate_to_the_expected_ones(fault: Fault, relation: Relation, value: float, axis: int) -> None:
    found = mapped(fault)
    assert (found.relation, found.axis) == (relation, axis)
    assert found.value == pytest.approx(value, abs=1e-6)


def test_noise_fits_no_relation() -> None:
    found = mapped(lambda out: out + torch.randn_like(out))
    assert (found.axes, found.relation) == ((), None)


def test_right_values_have_no_map() -> None:
    want = values()
    assert map_errors(want.float(), expect(want), LIMIT) is None


def test_integers_are_mapped_by_place_alone() -> None:
    want = torch.arange(60).reshape(6, 10)
    out = want.clone()
    out[4] += 1
    found = map_errors(out, expect(want), 0.0)
    assert found is not None
    assert [(a.axis, a.pattern) for a in found.axes] == [(0, Pattern.ONE)]
    assert found.relation is None


def test_integers_that_are_one_number_in_float64_are_mapped() -> None:
    want = (2**62 + torch.arange(60)).reshape(6, 10)
    out = want.clone()
    out[4] += 1
    found = map_errors(out, expect(want), 0.0)
    assert found is not None
    assert (found.wrong, [(a.axis, a.first) for a in found.axes]) == (10, [(0, 4)])


def test_a_byte_that_is_no_bool_is_a_wrong_element() -> None:
    want = torch.ones(6, 10, dtype=torch.bool)
    out = want.clone()
    out.view(torch.uint8)[:, 3] = 64
    found = map_errors(out, expect(want), 0.0)
    assert found is not None
    assert (found.wrong, [(a.axis, a.first) for a in found.axes]) == (6, [(1, 3)])


def test_the_map_of_a_long_axis_takes_no_object_an_index() -> None:
    want = torch.randn(100_000, dtype=torch.float64, generator=torch.Generator().manual_seed(5))
    out = want.float()
    out[::3] += 1
    out[5] += 1
    tracemalloc.start()
    found = map_errors(out, expect(want), LIMIT)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found is not None
    assert [(a.pattern, a.count) for a in found.axes] == [(Pattern.SOME, 33_335)]
    assert peak_bytes < 1 << 20


def test_values_that_are_not_finite_are_wrong_elements() -> None:
    want = values()
    out = want.float()
    out[:, 0] = torch.nan
    found = map_errors(out, expect(want), LIMIT)
    assert found is not None
    assert (found.wrong, found.relation) == (ROWS, None)


def test_a_single_number_is_mapped() -> None:
    found = map_errors(torch.tensor(2.0), expect(torch.tensor(1.0, dtype=torch.float64)), LIMIT)
    assert found == ErrorMap(wrong=1, total=1)


@pytest.mark.parametrize("slab", [1, 100, 10_000])
def test_slabs_leave_the_same_map(monkeypatch: pytest.MonkeyPatch, slab: int) -> None:
    monkeypatch.setattr(error_map, "_SLAB_ELEMENTS", slab)
    found = mapped(_zeroed)
    assert (found.wrong, found.relation) == (ROWS * 10, Relation.CONSTANT)
    assert [(a.axis, a.pattern, a.count) for a in found.axes] == [(1, Pattern.LAST, 10)]


def test_an_output_whose_first_axis_has_a_slab_too_large_is_not_mapped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(error_map, "_MOST_ELEMENTS", COLUMNS - 1)
    assert map_errors(torch.zeros(ROWS, COLUMNS), expect(values()), LIMIT) is None
