"""KernelBench's files made small: which of a reference's numbers may be others."""

from __future__ import annotations

from importlib import import_module

from ridgeline.problems.syntax import substitute_sizes

SOURCE = """
batch_size, height = 64, 1 << 10
shape = (512, 512)
name = "conv"
height = 1024
rows = columns = 2048
"""


def test_a_number_that_is_assigned_twice_stays_as_it_is() -> None:
    attempts = list(import_module("kernelbench_files")._attempts(SOURCE))
    assert {name for sizes in attempts for name in sizes} == {"batch_size", "shape"}
    for sizes in attempts:
        substitute_sizes(SOURCE, sizes, "sizes")
