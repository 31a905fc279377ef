from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.marked_files import MarkedFiles

TIMED = "import pytest\n\n@pytest.mark.timing\n@pytest.mark.sandboxed\ndef test_it(): ...\n"
PLAIN = "def test_it(): ...\n"


@pytest.mark.parametrize(
    ("expression", "is_timed_read", "is_plain_read"),
    [
        ("", True, True),
        ("timing", True, False),
        ("timing or gpu", True, False),
        ("not timing and not gpu", True, True),  # another test of the file may have no mark
        ("sandboxed and (timing or gpu)", True, False),
        ("sandboxed and gpu", False, False),
        ("slow", True, True),  # given by a table of parameters
        ("timing or slow", True, True),
        ("timing and slow", True, False),
    ],
)
def test_a_file_is_read_where_a_test_of_it_may_be_taken(
    expression: str, is_timed_read: bool, is_plain_read: bool, tmp_path: Path
) -> None:
    timed, plain, other = tmp_path / "test_timed.py", tmp_path / "test_plain.py", tmp_path / "conftest.py"
    timed.write_text(TIMED)
    plain.write_text(PLAIN)
    other.write_text("")
    left_out = [MarkedFiles(expression).pytest_ignore_collect(path) for path in (timed, plain, other)]
    assert left_out == [None if is_timed_read else True, None if is_plain_read else True, None]


def test_a_mark_that_the_file_does_not_name_ends_the_run(tmp_path: Path) -> None:
    path = tmp_path / "test_plain.py"
    path.write_text(PLAIN)
    item = SimpleNamespace(path=path, nodeid="test_plain.py::test_it", get_closest_marker=lambda name: name == "timing")
    with pytest.raises(pytest.UsageError, match=r"test_it: write mark.timing in test_plain.py itself"):
        MarkedFiles("").pytest_collection_modifyitems([item])
    path.write_text(TIMED)
    MarkedFiles("").pytest_collection_modifyitems([item])
