from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ridgeline.tools.machine.kept_records import open_ordinary, read_kept
from ridgeline.tools.records.baselines import Floor

FLOOR = Floor(floor_ms=1.0, compute_floor_ms=0.5, bound="memory", bandwidth_gbps=9.0, gflops=7.0)


def test_a_kept_record_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "kept.json"
    path.write_text(json.dumps(FLOOR.to_json()))
    assert read_kept(path, Floor) == FLOOR


@pytest.mark.parametrize(
    "content", ["", "{", "[" * 200_000, "null", "3", "{}", json.dumps(FLOOR.to_json() | {"bound": None}), "9" * 5000]
)
def test_damage_counts_as_absence(tmp_path: Path, content: str) -> None:
    path = tmp_path / "kept.json"
    path.write_text(content)
    assert read_kept(path, Floor) is None


def test_nothing_but_a_regular_file_is_opened(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "loop").symlink_to("loop")
    os.mkfifo(tmp_path / "pipe")
    for name in ("folder", "link", "loop", "pipe", "absent"):
        with pytest.raises(OSError), open_ordinary(tmp_path / name):
            pass
        assert read_kept(tmp_path / name, Floor) is None
