"""The tables of docs/measurements.md are what the results say."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

JUDGED = {
    "status": "ok",
    "reason_code": "none",
    "reason": "",
    "labels": ["quarantined", "reduced_precision"],
    "rel_error": 2e-4,
    "precision_class": "tf32",
    "median_ms": 0.25,
    "speedup": 34.023,
    "baselines_ms": {"eager": 8.5},
    "known": {"ms": 0.327},
}
NOTHING = dict.fromkeys(("rel_error", "precision_class", "median_ms", "speedup"))


def with_figures(monkeypatch: pytest.MonkeyPatch, entries: dict[str, Any]) -> Any:
    tables = import_module("tables")
    monkeypatch.setattr(tables, "figures", lambda _: entries)
    return tables


def test_every_table_of_the_page_is_the_results_own() -> None:
    tables = import_module("tables")
    page = tables.PAGE.read_text(encoding="utf-8")
    assert tables.filled(page) == page, "write it again: python benchmarks/tables.py"
    assert all(page.count(f"<!-- table: {name} -->") == 1 for name in tables.TABLES)


def test_kernel_that_has_no_times_is_a_row_that_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = {
        "unbuilt": {"failed": "error: a | b\n  here"},
        "untimed": {"ridgeline_ms": 1.0, "failed": "no answer within 180 s"},
    }
    *_, unbuilt, untimed = with_figures(monkeypatch, entries).agreement().splitlines()
    assert unbuilt == "| unbuilt | - | - | failed: error: a \\| b here | - | - | - |"
    assert untimed == "| untimed | 1.000 | - | failed: no answer within 180 s | - | - | - |"


def test_published_kernel_that_is_turned_down_is_a_row_that_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = {"status": "wrong", "reason_code": "wrong_values", "reason": "values of out differ", "labels": []}
    refused |= {"baselines_ms": {"eager": 8.5, "eager_tf32": None}, "known": {}}
    entries = {"sound": JUDGED, "refused": NOTHING | refused, "unmeasured": NOTHING | refused | {"baselines_ms": {}}}
    *_, sound, turned_down, unmeasured = with_figures(monkeypatch, entries).crfm().splitlines()
    words = "`wrong`, `wrong_values`: values of out differ"
    labels = "quarantined, reduced_precision"
    assert sound == f"| sound | ok | 2.0e-04 | tf32 | 0.250 | 8.500 | 34.02x | {labels} | 0.327 |"
    assert turned_down == f"| refused | {words} | - | - | - | 8.500 / - | - | - | - |"
    assert unmeasured == f"| unmeasured | {words} | - | - | - | - | - | - | - |"


def test_published_kernel_that_passes_has_its_gain_in_the_place_of_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    *_, passed = with_figures(monkeypatch, {"sound": JUDGED}).outside().splitlines()
    assert passed == "| cuda-l1 | sound | ok | 34.02x eager of its class |"


def test_figures_of_several_devices_are_mixed_by_no_table_without_a_column_for_the_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = import_module("tables")
    monkeypatch.setattr(tables, "RESULTS", tmp_path)
    entries = {"a": {"measured": {"device_name": "NVIDIA H100"}}, "b": {"ms": 1.0}}
    (tmp_path / "times.json").write_text(json.dumps({"device": {"name": "NVIDIA H200"}, "figures": entries}))
    assert {name: model for name, (_, model) in tables.figures_of_devices("times").items()} == {
        "a": "NVIDIA H100",
        "b": "NVIDIA H200",
    }
    with pytest.raises(
        SystemExit, match=r"times.json mixes figures of several devices \(a NVIDIA H100, b NVIDIA H200\)"
    ):
        tables.figures("times")
