"""The files that a run leaves in its folder."""

from __future__ import annotations

import json
from pathlib import Path

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.report.outputs import write_run_outputs


def test_outputs_are_written_whole_with_nothing_left_beside_them(filled: Archive) -> None:
    run_dir = filled.path.parent
    result = write_run_outputs(run_dir, filled)
    assert json.loads((run_dir / "result.json").read_text()) == result
    assert (run_dir / "best.cpp").read_text() == filled.candidate("r4i1v0a0t3").source
    assert json.loads((run_dir / "certificate.json").read_text())["passed"] is True
    expected = {"best.cpp", "certificate.json", "certificate.md", "report.html", "result.json"}
    assert {f.name for f in run_dir.iterdir()} - {
        "archive.sqlite",
        "archive.sqlite-shm",
        "archive.sqlite-wal",
    } == expected


def test_a_link_in_a_run_folder_is_replaced_and_what_it_leads_to_stays(filled: Archive, tmp_path: Path) -> None:
    run_dir, kept = filled.path.parent, tmp_path / "kept.txt"
    kept.write_text("the user's own")
    written = ("best.cpp", "certificate.json", "certificate.md", "report.html", "result.json")
    for name in written:
        (run_dir / name).symlink_to(kept)
    write_run_outputs(run_dir, filled)
    assert kept.read_text() == "the user's own"
    assert not any((run_dir / name).is_symlink() for name in written)
    assert json.loads((run_dir / "result.json").read_text())["schema_version"] == 1


def test_summary_lies_beside_the_certificate(filled: Archive) -> None:
    run = filled.path.parent
    write_run_outputs(run, filled)
    assert (run / "certificate.md").read_text().startswith("# quickstart: r4i1v0a0t3 is certified")
