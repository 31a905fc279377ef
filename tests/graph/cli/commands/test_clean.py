"""What `ridgeline clean` says of what it did."""

from __future__ import annotations

from pathlib import Path

import pytest

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.graph import cli


def test_clean_says_what_was_removed_and_what_could_not_be(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "stuck", "two"):
        with Archive.open(tmp_path / name / "archive.sqlite") as archive:
            archive.save_run(RunRecord(problem={"name": "p"}, state="finished"))
    (tmp_path / "stuck" / "run.log").symlink_to("/etc/hostname")  # a run folder in which nothing is locked
    monkeypatch.setenv("RIDGELINE_CACHE_DIR", str(tmp_path / "cache"))
    assert cli.main(["clean", "--runs", str(tmp_path), "--keep", "0"]) == 2
    out, said = capsys.readouterr()
    words = {Path(line[13:].split("  ")[0]).name: line[:13].strip() for line in out.splitlines()[:3]}
    assert words == {"one": "removed", "two": "removed", "stuck": "not removed"}
    assert said.startswith("ridgeline: 1 run of 3 could not be removed: ")
    assert "is a link to /etc/hostname" in said
    assert said.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache", "stuck"]


def test_a_file_is_no_folder_of_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert cli.main(["clean", "--runs", str(tmp_path / "file")]) == 2
    assert "file: is a file, not a folder of runs" in capsys.readouterr().err
