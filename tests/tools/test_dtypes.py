"""Element sizes without torch."""

from ridgeline.tools.dtypes import element_bytes


def test_element_sizes_are_those_of_torch() -> None:
    named = ("float32", "bfloat16", "bool", "int64", "float8_e4m3fn", "complex64")
    assert [element_bytes(name) for name in named] == [4, 2, 1, 8, 1, 8]
