"""Which kernels the timers are compared on, and how their agreement is told."""

from __future__ import annotations

import ast
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from tests.descriptions import description_of

from ridgeline.problems.syntax import parse_reference
from ridgeline.tools.machine.devices import detect_device
from ridgeline.tools.records.problem import DescribedTarget
from ridgeline.tools.records.results import Build, Timing
from ridgeline.tools.records.vocabulary import Interface, PrecisionClass, Status

ANSWERS = """
import json, sys
print("a library's greeting", "ready", sep="\\n", flush=True)
request = json.loads(sys.stdin.readline())
print("chatter", json.dumps({"profiler_ms": 1.5, "library": request["library"]}), sep="\\n")
"""
DIES = "raise SystemExit('no triton here')"
DIES_WHEN_ASKED = "print('ready', flush=True); input(); raise SystemExit('the kernel is wrong here')"
BUILD = Build(key="none", status=Status.OK, library_path="kernel.so")

Others = Callable[[str], Any]


@pytest.fixture
def others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Others:
    """Return a function that gives the other timers with a stand-in's source: the real ones need a GPU."""
    agreement = import_module("agreement")
    monkeypatch.setattr(agreement, "TIMERS", tmp_path / "timers.py")

    def started(source: str) -> Any:
        agreement.TIMERS.write_text(source)
        return agreement.OtherTimers(detect_device("cpu"))

    return started


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
        "slowed": agreement.entry_of(ours, {"profiler_ms": 1.1, "events_ms": 1.0}),
        "short": agreement.entry_of(Timing(status=Status.OK, median_ms=0.05), {"profiler_ms": 0.02}),
        "failed": {"failed": "no nvcc"},
    }
    assert agreement.summary(entries) == (
        "1 of 3 kernels over 100 us within 3%. far 1.111; slowed 0.909 (1.000 over events); failed has no figure"
    )
    assert entries["near"]["ridgeline_over_do_bench"] == 1.0


def test_other_timers_answer_after_the_line_that_says_they_are_ready(others: Others) -> None:
    with others(ANSWERS) as timers:
        assert timers.wait_until_ready() == ""
        assert timers.times(described(), BUILD) == {"profiler_ms": 1.5, "library": "kernel.so"}


def test_other_timers_that_end_before_they_are_ready_say_why(others: Others) -> None:
    with others(DIES) as timers:
        assert timers.wait_until_ready() == "the other timers did not get ready: no triton here"


def test_other_timers_that_never_get_ready_are_ended(others: Others, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module("agreement"), "TIMERS_LIMIT_S", 0.2)
    with others("import time; time.sleep(60)") as timers:
        assert timers.wait_until_ready() == "the other timers did not get ready: exit status -9"


def test_other_timers_that_end_on_a_kernel_say_why(others: Others) -> None:
    with others(DIES_WHEN_ASKED) as timers:
        assert timers.wait_until_ready() == ""
        assert timers.times(described(), BUILD) == {"failed": "the kernel is wrong here"}


def test_real_timers_say_that_they_are_ready_in_the_words_that_are_waited_for() -> None:
    agreement = import_module("agreement")
    main = next(n for n in ast.parse(agreement.TIMERS.read_text()).body if getattr(n, "name", "") == "main")
    assert isinstance(main, ast.FunctionDef)
    assert ast.unparse(main.body[1]) == f"print({agreement.READY!r}, flush=True)"


def described() -> DescribedTarget:
    return DescribedTarget(
        name="p",
        reference_source="",
        interface=Interface.C,
        tolerance=PrecisionClass.FP32,
        device=detect_device("cpu"),
        description=description_of(),
    )
