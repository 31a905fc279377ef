"""Parts of a result beside its tensors."""

from __future__ import annotations

import enum

import numpy as np
import pytest

from ridgeline.problems.result_parts import is_constant, refused_part

OWN = "which is none of Python's own numbers; write"
REST = "beside tensors a result holds whole numbers, booleans and None alone; return it as a tensor, or leave it out"


@pytest.mark.parametrize("part", [3, True, None, enum.IntEnum("Kind", "ONE").ONE])
def test_whole_numbers_booleans_and_none_may_stand_beside_tensors(part: object) -> None:
    assert is_constant(part)


@pytest.mark.parametrize(
    ("part", "said"),
    [
        (np.int64(3), f"a numpy.int64 as result[1], {OWN} int(…)"),
        (np.longlong(3), f"a numpy.{np.longlong.__name__} as result[1], {OWN} int(…)"),
        (np.uint8(3), f"a numpy.uint8 as result[1], {OWN} int(…)"),
        (np.bool_(1), f"a numpy.{np.bool_.__name__} as result[1], {OWN} bool(…)"),
        (0.1, f"0.1 as result[1]: {REST}"),
        (np.float32(3), f"a float32 as result[1]: {REST}"),
        ({1}, f"a set as result[1]: {REST}"),
    ],
)
def test_any_other_part_is_refused_with_its_place_and_what_to_write(part: object, said: str) -> None:
    assert not is_constant(part) and refused_part(part, "[1]") == said
