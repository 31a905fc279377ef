from __future__ import annotations

import re
from pathlib import Path

import pytest

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.checkpoints.runs.folders import lock_run
from ridgeline.checkpoints.runs.vacant import check_vacant
from ridgeline.tools.errors import RunError, StorageError
from ridgeline.tools.wording import worded_for_command_line


def test_a_folder_in_which_no_new_search_can_begin_is_refused(tmp_path: Path) -> None:
    check_vacant(tmp_path / "absent")
    check_vacant(tmp_path)
    file = tmp_path / "file"
    file.write_text("")
    for place in (file, file / "below" / "it"):
        with pytest.raises(RunError, match="file: is a file, and no run's; name a new run_dir"):
            check_vacant(place)
    with pytest.raises(RunError, match=r"other things in it \(file"):
        check_vacant(tmp_path)
    with Archive.open(tmp_path / "run" / "archive.sqlite") as archive:
        check_vacant(tmp_path / "run")
        archive.save_run(RunRecord(settings={"rounds": 1}))
    with pytest.raises(RunError, match="holds a search already; pass resume=True"):
        check_vacant(tmp_path / "run")
    with lock_run(tmp_path / "held"), pytest.raises(RunError, match="another search of this process"):
        check_vacant(tmp_path / "held")


def test_a_folder_that_may_not_be_written_is_refused_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.access", lambda place, _mode: Path(place).absolute() != tmp_path)  # root may write anywhere
    run = tmp_path / "new" / "run"
    with worded_for_command_line(is_so=True):
        said = f"{run}: cannot be made, because {tmp_path} cannot be written; choose another --run-dir"
        with pytest.raises(StorageError, match=f"^{re.escape(said)}$"):
            check_vacant(run)
        with pytest.raises(StorageError, match=f"^{tmp_path}: cannot be written; choose another --run-dir$"):
            check_vacant(tmp_path)
        monkeypatch.chdir(tmp_path)
        said = f"runs/one: cannot be made, because {tmp_path} cannot be written; choose another --run-dir"
        with pytest.raises(StorageError, match=f"^{re.escape(said)}$"):
            check_vacant(Path("runs/one"))
    assert not list(tmp_path.iterdir())
