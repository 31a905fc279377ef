"""A real search whose disk runs full says so in one line, and goes on once there is room, with all that it had stored."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SIZES_MB = (1, 64)
"""Of the run's disk: full in the first round, and then with room for the whole search."""
ON_A_SMALL_DISK = """
mount -t tmpfs -o size={}m tmpfs disk || exit 99
"$0" -m ridgeline "$@" --run-dir disk/run >first.out 2>first.err
echo $? >first.code
mount -o remount,size={}m disk
"$0" -m ridgeline run --resume disk/run --plain >second.out 2>second.err
echo $? >second.code
cp disk/run/result.json disk/run/best.cpp .
"""


@pytest.mark.slow  # a whole search with its certificate; what a full disk does to an archive is in tests/checkpoints/storage
@pytest.mark.sandboxed
@pytest.mark.timeout(1800)
@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts a disk that the sandbox's users can live beside")
def test_a_search_on_a_full_disk_ends_in_one_line_and_is_resumed_with_all_that_was_stored(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    words = ["run", "quickstart", "--model", "offline", "--rounds", "1", "--ideas", "2", "--implementations", "1"]
    words += ["--bank", "none", "--tune-trials", "0", "--plain"]
    script = ON_A_SMALL_DISK.format(*SIZES_MB)
    command = ["unshare", "--mount", "sh", "-c", script, sys.executable, *words]
    environment = os.environ | {"PYTHONPATH": ":".join(sys.path), "RIDGELINE_HOME": str(tmp_path / "home")}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    if done.returncode == 99 or "unshare" in done.stderr:
        pytest.skip(f"no mount namespaces here: {done.stderr.strip()}")
    said = {path.name: path.read_text() for path in tmp_path.glob("*.*") if path.is_file()}
    assert said["first.code"].strip() == "69"
    [line] = said["first.err"].splitlines()
    # the database that was full first: the other one, which its end is stored in, does not hide it
    full = r"ridgeline: disk/run/(archive|search)\.sqlite: the disk is full; free some space and try again"
    assert re.fullmatch(full, line)
    assert "round 1/1" in said["first.out"]
    assert (said["second.code"].strip(), said["second.err"]) == ("0", "")
    assert "skipped, because it is stored: " in said["second.out"] and "1 evaluation" in said["second.out"]
    # whether its one kernel gains is measured: a busy machine may prove no gain
    assert json.loads(said["result.json"])["state"] in {"finished", "no_gain"} and said["best.cpp"]
