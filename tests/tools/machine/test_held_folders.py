"""Working folders, and what is left of them by processes that were killed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from ridgeline.tools.machine.held_folders import hold_folder, sweep_held_folders

HOLDER = """
import sys, time
from pathlib import Path
from ridgeline.tools.machine.held_folders import hold_folder
(hold_folder(Path(sys.argv[1]), "batch").path / "c0").mkdir()
print("held", flush=True)
time.sleep(60)
"""


def test_a_folder_of_a_killed_process_is_swept_and_one_that_is_held_stays(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        sweep_held_folders(tmp_path)
        [left] = tmp_path.iterdir()
        assert (left / "c0").is_dir()
        holder.terminate()
    own = hold_folder(tmp_path, "batch")
    sweep_held_folders(tmp_path)
    assert list(tmp_path.iterdir()) == [own.path]
    own.remove()
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_held_folder_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "held-file").touch()
    (tmp_path / "held-link").symlink_to(tmp_path / "other")
    sweep_held_folders(tmp_path)
    sweep_held_folders(tmp_path / "none")
    assert {entry.name for entry in tmp_path.iterdir()} == {"other", "held-file", "held-link"}
