"""A run folder from a stranger: nothing is written through the links in it."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path

import pytest

from ridgeline.checkpoints.runs.folders import lock_run
from ridgeline.checkpoints.storage.own_files import OPENED, refuse_links, replace_file
from ridgeline.graph.session.run_log import log_to
from ridgeline.tools.errors import RunError, StorageError


@pytest.mark.parametrize("name", OPENED)
def test_a_file_that_leads_out_of_the_run_folder_ends_the_run_before_it_is_touched(tmp_path: Path, name: str) -> None:
    run, kept = tmp_path / "run", tmp_path / "kept.txt"
    run.mkdir()
    kept.write_text("the user's own")
    (run / name).symlink_to("../kept.txt")
    said = rf"{name}: is a link to ../kept.txt, and a run writes its own files only"
    with pytest.raises(RunError, match=said), lock_run(run):
        pass
    assert kept.read_text() == "the user's own"


def test_links_within_the_folder_and_files_of_the_users_are_left_alone(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "older.sqlite").write_text("")
    (run / "archive.sqlite").symlink_to("older.sqlite")
    (run / "notes.md").symlink_to(tmp_path / "notes.md")
    refuse_links(run)
    (tmp_path / "named").symlink_to(run)
    refuse_links(tmp_path / "named")


def test_a_log_is_never_written_through_a_link(tmp_path: Path) -> None:
    kept = tmp_path / "kept.txt"
    kept.write_text("the user's own")
    (tmp_path / "run.log").symlink_to(kept)
    with log_to(tmp_path / "run.log"):
        logging.getLogger("ridgeline.graph").info("round 1")
    assert kept.read_text() == "the user's own"


def test_a_full_disk_leaves_the_earlier_file_and_no_other(tmp_path: Path) -> None:
    code = """
import sys
from pathlib import Path
from ridgeline.checkpoints.storage.own_files import replace_file
from ridgeline.tools.errors import StorageError
folder = Path(sys.argv[1])
replace_file(folder / "result.json", "old")
try:
    replace_file(folder / "result.json", "new" * 400_000)
except StorageError as error:
    print(error)
print((folder / "result.json").read_text(), [f.name for f in folder.iterdir()])
"""
    inner = f'mount -t tmpfs -o size=400k tmpfs {tmp_path} && exec "$0" -c "$1" "$2"'
    command = ["unshare", "--map-root-user", "--mount", "sh", "-c", inner, sys.executable, code, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if "unshare" in done.stderr or "mount" in done.stderr:
        pytest.skip(f"no mount namespaces here: {done.stderr.strip()}")
    message, left = done.stdout.splitlines()
    assert "no space left on device" in message
    assert left == "old ['result.json']"


def test_a_folder_that_cannot_be_written_is_one_line() -> None:
    with pytest.raises(StorageError, match="/proc/result.json"):
        replace_file(Path("/proc/result.json"), "{}")
