"""The parts of an evaluation."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module

import pytest

from ridgeline.tools.records.results import Timing, Verdict
from ridgeline.tools.records.vocabulary import Status

VERDICT = Verdict(status=Status.OK, verify_s=1.5, load_s=0.25)
TIMING = Timing(status=Status.OK, median_ms=1.0, benchmark_s=2.0, load_s=0.5)


def test_parts_of_an_evaluation_add_up_to_all_of_it() -> None:
    found = import_module("parts").parts_of(4.0, VERDICT, TIMING, 8.5).to_json()
    total_s = found.pop("total_s")
    assert sum(found.values()) == total_s == 8.5
    assert found == {
        "build_s": 4.0,
        "load_for_verdict_s": 0.25,
        "verify_s": 1.25,  # the load is part of what a verdict took, and not of what a timing took
        "load_for_timing_s": 0.5,
        "time_s": 2.0,
        "other_s": 0.5,
    }


def test_median_of_parts_is_taken_part_by_part() -> None:
    parts = import_module("parts")
    timings = [replace(TIMING, benchmark_s=seconds) for seconds in (1.0, 2.0, 9.0)]
    medians = parts.median_parts([parts.parts_of(0.5, VERDICT, timing, 20.0) for timing in timings])
    assert medians["time_s"] == 2.0
    assert medians["other_s"] == pytest.approx(20.0 - 0.5 - 1.5 - 0.5 - 2.0)
