"""docs/calibration.md is what the code and the results say, and every threshold has a row."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

from .conftest import BENCHMARKS

Script = Callable[[str], ModuleType]


def test_page_is_what_the_code_and_the_measurements_say(script: Script) -> None:
    thresholds = script("thresholds")
    remedy = "write it again: python benchmarks/calibrate.py --table"
    assert thresholds.PAGE.read_text() == thresholds.page(), remedy


def test_every_number_of_the_judge_s_modules_has_a_row(script: Script) -> None:
    assert script("thresholds").unlisted() == []


def test_every_row_names_a_number_that_exists_and_a_measurement_that_is_made(script: Script) -> None:
    calibrate = (BENCHMARKS / "calibrate.py").read_text()
    for threshold in script("thresholds").THRESHOLDS:
        assert threshold.value is not None
        assert threshold.why.endswith("."), threshold.name
        assert not threshold.measurement or f'"{threshold.measurement}": measure_' in calibrate
