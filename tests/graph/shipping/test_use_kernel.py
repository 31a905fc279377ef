"""`use_kernel.py` of a run folder, with a kernel of the test's own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.graph.shipping.use_kernel import write_use_kernel

from .finished_run import write_run


def test_a_run_folder_runs_its_winner_against_the_reference(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    command = [sys.executable, str(run / "use_kernel.py")]
    done = subprocess.run(command, cwd=tmp_path, env=clean, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr + done.stdout
    assert re.search(r"relative error to the reference in float64: \d\.\de-\d\d \(at most 1e-05\)", done.stdout)


def test_a_search_that_ends_without_a_winner_removes_its_own_files_alone(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    with Archive.open(run, create=False) as archive:
        archive.save_run(RunRecord(best_id=""))
        write_use_kernel(run, archive)
        assert not (run / "use_kernel.py").exists()
        assert not (run / "reference.py").exists()
        for name in ("use_kernel.py", "reference.py"):
            (run / name).write_text("the user's own")
        write_use_kernel(run, archive)
    assert (run / "use_kernel.py").exists()
    assert (run / "reference.py").exists()


@pytest.mark.parametrize("name", ["use_kernel.py", "reference.py"])
def test_a_file_of_the_users_own_is_left_as_it_is(tmp_path: Path, name: str) -> None:
    run = write_run(tmp_path / "run")
    for each in ("use_kernel.py", "reference.py"):
        (run / each).unlink()
    (run / name).write_text("the user's own")
    with Archive.open(run, create=False) as archive:
        write_use_kernel(run, archive)
    assert [path.name for path in run.glob("*.py") if path.name != "best.py"] == [name]
    assert (run / name).read_text() == "the user's own"
