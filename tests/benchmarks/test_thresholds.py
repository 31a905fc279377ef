"""docs/calibration.md is what the code and the results say, and every threshold has a row."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def test_page_is_what_the_code_and_the_measurements_say() -> None:
    thresholds = import_module("thresholds")
    remedy = "write it again: python benchmarks/calibrate.py --table"
    assert thresholds.PAGE.read_text() == thresholds.page(), remedy


def test_every_number_of_the_judge_s_modules_has_a_row() -> None:
    assert import_module("thresholds").unlisted() == []


def test_every_row_names_a_number_that_exists_and_a_measurement_that_is_made() -> None:
    calibrate = (BENCHMARKS / "calibrate.py").read_text()
    for threshold in import_module("thresholds").THRESHOLDS:
        assert threshold.value is not None
        assert threshold.why.endswith("."), threshold.name
        assert not threshold.measurement or f'"{threshold.measurement}": measure_' in calibrate
