from __future__ import annotations

from types import SimpleNamespace

from tests.first_cases import FirstCases


def _item(nodeid: str, *marks: str) -> SimpleNamespace:
    item = SimpleNamespace(nodeid=nodeid, marks=list(marks), get_closest_marker=lambda name: name in item.marks)
    item.add_marker = item.marks.append
    return item


def test_every_case_but_the_first_is_left_to_thorough_runs() -> None:
    items = [
        _item("a.py::test_it[1]", "first_case"),
        _item("a.py::test_it[2]", "first_case"),
        _item("a.py::test_other[2]"),
    ]
    items += [_item("b.py::test_it[1]", "first_case"), _item("b.py::test_it[2]", "first_case", "timing")]
    FirstCases().pytest_collection_modifyitems(items)
    assert ["thorough" in item.marks for item in items] == [False, True, False, False, True]
