"""What `ridgeline export` and `merge` refuse."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from tests.graph.cli.command_line import assert_one_line, ridgeline


def test_merge_and_export_of_a_file_that_is_no_archive_get_one_line(tmp_path: Path) -> None:
    other = tmp_path / "other.sqlite"
    sqlite3.connect(other).close()
    assert_one_line(ridgeline("merge", str(tmp_path / "all.sqlite"), str(tmp_path / "absent"), cwd=tmp_path), "absent")
    assert_one_line(ridgeline("export", "absent", cwd=tmp_path), "absent")
