"""Which kernels the timers are compared on, and how their agreement is told."""

from __future__ import annotations

import ast
from collections.abc import Callable
from types import ModuleType

from ridgeline.problems.syntax import parse_reference
from ridgeline.tools.records import Status, Timing

Script = Callable[[str], ModuleType]


def test_twenty_kernels_each_with_the_reference_it_answers_to(script: Script) -> None:
    kernels = script("agreement").kernels()
    assert len(kernels) == 20
    for name, path in kernels.items():
        assert path.suffix == ".cu"
        if "/" not in name:
            assert isinstance(parse_reference(path.with_suffix(".py").read_text(), name), ast.Module)


def test_summary_counts_the_long_kernels_and_names_those_that_are_apart(script: Script) -> None:
    agreement = script("agreement")
    ours = Timing(status=Status.OK, median_ms=1.0)
    entries = {
        "near": agreement.entry_of(ours, {"profiler_ms": 0.99, "do_bench_ms": 1.0}),
        "far": agreement.entry_of(ours, {"profiler_ms": 0.9}),
        "short": agreement.entry_of(Timing(status=Status.OK, median_ms=0.05), {"profiler_ms": 0.02}),
        "failed": {"failed": "no nvcc"},
    }
    assert agreement.summary(entries) == "1 of 2 kernels over 100 us within 3%. far 1.111"
    assert entries["near"]["ridgeline_over_do_bench"] == 1.0
