"""Files that are put in place whole: what a killed process leaves goes, what a live one writes stays."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ridgeline.checkpoints.runs.folders import lock_run
from ridgeline.checkpoints.storage.own_files import replace_file
from ridgeline.tools.machine import whole_files
from ridgeline.tools.machine.places import replace_json
from ridgeline.tools.machine.whole_files import LEFT_AFTER_S, draft_folder, remove_leftovers, whole_file

WRITER = """
import sys, time
from pathlib import Path
from ridgeline.tools.machine.whole_files import whole_file
with whole_file(Path(sys.argv[1])) as file:
    file.write("half")
    file.flush()
    print("writing", flush=True)
    time.sleep(600)
"""
DRAFTER = """
import sys, time
from pathlib import Path
from ridgeline.tools.machine.whole_files import draft_folder
with draft_folder(Path(sys.argv[1])) as draft:
    (draft / "file").write_text("half")
    print("writing", flush=True)
    time.sleep(600)
"""


@contextmanager
def writing(path: Path, program: str = WRITER) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """Give a process that is writing a file or a folder, and its name as long; the process is killed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    known = set(path.parent.iterdir())
    env = os.environ | {"PYTHONPATH": os.pathsep.join(each for each in sys.path if each)}
    with subprocess.Popen(
        [sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE, text=True, env=env
    ) as at_it:
        try:
            assert at_it.stdout is not None
            assert at_it.stdout.readline() == "writing\n"
            [part] = set(path.parent.iterdir()) - known
            yield at_it, part
        finally:
            at_it.send_signal(signal.SIGKILL)
            at_it.wait()


def aged(path: Path) -> None:
    """Make a file as old as one that is left must be."""
    then = time.time() - LEFT_AFTER_S - 1
    os.utime(path, (then, then), follow_symlinks=False)


@pytest.mark.parametrize("name", ["result.json", "mailbox/r1i0v0a0.request.md"])
def test_the_next_session_removes_what_a_killed_one_left_and_nothing_younger(tmp_path: Path, name: str) -> None:
    with writing(tmp_path / name) as (_, part):
        pass
    assert part.read_text() == "half"
    with lock_run(tmp_path):
        assert part.exists(), "as young as a file that is being written"
    aged(part)
    with lock_run(tmp_path):
        assert not part.exists()


def test_what_a_live_process_writes_stays_however_old_and_gets_its_place(tmp_path: Path) -> None:
    with writing(tmp_path / "result.json") as (at_it, part):
        aged(part)
        os.kill(at_it.pid, signal.SIGSTOP)
        with lock_run(tmp_path):
            assert part.exists()
        os.kill(at_it.pid, signal.SIGCONT)
    with lock_run(tmp_path):
        assert not part.exists()


@pytest.mark.parametrize("name", [".notes.md", ".best.cpp.abcdefgh", "best.cpp.abcdefgh.part", ".best.cpp.SHORT.part"])
def test_a_users_file_is_no_leftover(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine")
    aged(tmp_path / name)
    remove_leftovers(tmp_path)
    assert (tmp_path / name).read_text() == "mine"


def test_a_link_a_folder_and_another_users_file_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link, folder, file = (tmp_path / f".{name}.abcdefgh.part" for name in ("link", "folder", "file"))
    (tmp_path / "kept").write_text("kept")
    link.symlink_to("kept")
    folder.mkdir()
    file.write_text("theirs")
    for path in (link, folder, file, tmp_path / "kept"):
        aged(path)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    remove_leftovers(tmp_path)
    assert {link, folder, file, tmp_path / "kept"} == set(tmp_path.iterdir())
    monkeypatch.undo()
    remove_leftovers(tmp_path)
    assert {link, folder, tmp_path / "kept"} == set(tmp_path.iterdir())


def test_the_next_write_removes_what_is_left_in_a_cache_and_of_a_users_file(tmp_path: Path) -> None:
    for name in ("facts.json", "other.json"):
        (tmp_path / f".{name}.abcdefgh.part").write_text("half")
        aged(tmp_path / f".{name}.abcdefgh.part")
    replace_file(tmp_path / "facts.json", "{}", is_users=True)
    assert {path.name for path in tmp_path.iterdir()} == {"facts.json", ".other.json.abcdefgh.part"}
    replace_json(tmp_path / "facts.json", {"a": 1})
    assert [path.name for path in tmp_path.iterdir()] == ["facts.json"]
    assert (tmp_path / "facts.json").stat().st_mode & 0o777 == 0o600


def test_a_writer_whose_file_went_before_it_was_locked_begins_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[Path] = []

    def late(descriptor: int, operation: int) -> None:
        if not taken:
            taken.extend(tmp_path.iterdir())
            taken[0].unlink()
        locked(descriptor, operation)

    locked = fcntl.flock
    monkeypatch.setattr(whole_files.fcntl, "flock", late)
    with whole_file(tmp_path / "result.json") as file:
        file.write("whole")
    assert len(taken) == 1 and [path.read_text() for path in tmp_path.iterdir()] == ["whole"]


def test_the_next_draft_of_a_folder_removes_that_of_a_killed_process_and_nothing_younger(tmp_path: Path) -> None:
    with writing(tmp_path / "kernel", DRAFTER) as (_, part):
        pass
    assert (part / "file").read_text() == "half"
    with draft_folder(tmp_path / "kernel") as draft:
        assert part.exists(), "as young as a folder that is being written"
        draft.rename(tmp_path / "kernel")
    aged(part)
    with draft_folder(tmp_path / "other"):
        assert part.exists(), "of another name"
    with draft_folder(tmp_path / "kernel") as draft:
        assert set(tmp_path.iterdir()) == {tmp_path / "kernel", draft}
    assert [path.name for path in tmp_path.iterdir()] == ["kernel"]


def test_a_draft_that_a_live_process_writes_stays_however_old(tmp_path: Path) -> None:
    with writing(tmp_path / "kernel", DRAFTER) as (_, part):
        aged(part)
        with draft_folder(tmp_path / "kernel"):
            assert part.exists()
    aged(part)
    with draft_folder(tmp_path / "kernel"):
        assert not part.exists()


def test_a_file_or_a_link_where_a_draft_would_lie_stays(tmp_path: Path) -> None:
    kept, file, link = tmp_path / "kept", tmp_path / ".kernel.abcdefgh.part", tmp_path / ".kernel.bcdefghi.part"
    kept.mkdir()
    file.write_text("mine")
    link.symlink_to("kept")
    for path in (kept, file, link):
        aged(path)
    with draft_folder(tmp_path / "kernel"):
        pass
    assert set(tmp_path.iterdir()) == {kept, file, link}
