"""The tables of docs/measurements.md are what the results say."""

from __future__ import annotations

from importlib import import_module


def test_every_table_of_the_page_is_the_results_own() -> None:
    tables = import_module("tables")
    page = tables.PAGE.read_text(encoding="utf-8")
    assert tables.filled(page) == page, "write it again: python benchmarks/tables.py"
    assert all(page.count(f"<!-- table: {name} -->") == 1 for name in tables.TABLES)
