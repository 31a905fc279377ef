"""Sizes of elements and tensors without torch."""

import pytest

from ridgeline.tools.records.dtypes import element_bytes, spanned_elements


def test_element_sizes_are_those_of_torch() -> None:
    named = ("float32", "bfloat16", "bool", "int64", "float8_e4m3fn", "complex64")
    assert [element_bytes(name) for name in named] == [4, 2, 1, 8, 1, 8]


@pytest.mark.parametrize(
    ("shape", "strides", "elements"),
    [((4, 8), (8, 1), 32), ((4, 8), (16, 1), 56), ((4, 8), (0, 1), 8), ((), (), 1), ((4, 0), (1, 1), 0)],
)
def test_a_strided_tensor_spans_its_gaps(shape: tuple[int, ...], strides: tuple[int, ...], elements: int) -> None:
    assert spanned_elements(shape, strides) == elements
