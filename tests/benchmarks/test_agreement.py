"""Which kernels the timers are compared on, and how their agreement is told."""

from __future__ import annotations

import ast
from importlib import import_module

from ridgeline.problems.syntax import parse_reference
from ridgeline.tools.records import Status, Timing


def test_twenty_kernels_each_with_the_reference_it_answers_to() -> None:
    kernels = import_module("agreement").kernels()
    assert len(kernels) == 20
    for name, path in kernels.items():
        assert path.suffix == ".cu"
        if path.parent.name == "agreement":
            assert isinstance(parse_reference(path.with_suffix(".py").read_text(), name), ast.Module)


def test_summary_counts_the_long_kernels_and_names_those_that_are_apart() -> None:
    agreement = import_module("agreement")
    ours = Timing(status=Status.OK, median_ms=1.0)
    entries = {
        "near": agreement.entry_of(ours, {"profiler_ms": 0.99, "do_bench_ms": 1.0}),
        "far": agreement.entry_of(ours, {"profiler_ms": 0.9}),
        "short": agreement.entry_of(Timing(status=Status.OK, median_ms=0.05), {"profiler_ms": 0.02}),
        "failed": {"failed": "no nvcc"},
    }
    assert agreement.summary(entries) == "1 of 2 kernels over 100 us within 3%. far 1.111"
    assert entries["near"]["ridgeline_over_do_bench"] == 1.0
