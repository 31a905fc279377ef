"""Where Ridgeline keeps things: the same folders in every process, whatever the current one is."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ridgeline.tools.errors import DeviceError
from ridgeline.tools.machine import places
from ridgeline.tools.machine.places import default_cache_dir, home_dir, is_older, lock_dir, replace_json
from ridgeline.tools.machine.python_env import clean_environment

FOLDERS = ("RIDGELINE_HOME", "RIDGELINE_CACHE_DIR", "RIDGELINE_LOCK_DIR")
LOOK_UP = (
    "import json; from ridgeline.tools.machine.places import *; "
    "print(json.dumps([str(home_dir()), str(default_cache_dir()), str(lock_dir())]))"
)


def as_evaluator() -> list[str]:
    """Return the folders as a process in `/` sees them that has an evaluator's environment."""
    environment = clean_environment(os.environ, cache_dir=default_cache_dir())
    looked = subprocess.run(
        [sys.executable, "-P", "-c", LOOK_UP], cwd="/", env=environment, capture_output=True, text=True, check=True
    )
    found: list[str] = json.loads(looked.stdout)
    return found


@pytest.mark.parametrize("name", ["here", "./here", "../here", "{}/here"])
def test_a_folder_means_the_same_in_an_evaluator(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "current").mkdir()
    monkeypatch.chdir(tmp_path / "current")
    for variable in FOLDERS:
        monkeypatch.setenv(variable, name.format(tmp_path) + variable)
    seen = [str(home_dir()), str(default_cache_dir()), str(lock_dir())]
    assert as_evaluator() == seen
    assert all(os.path.normpath(each).startswith(str(tmp_path)) for each in seen)


def test_default_folders_mean_the_same_in_an_evaluator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in FOLDERS[:2]:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", "relative")  # which the XDG specification tells a program to ignore
    monkeypatch.setenv("RIDGELINE_LOCK_DIR", "locks")
    assert as_evaluator() == [str(home_dir()), str(default_cache_dir()), str(tmp_path / "locks")]


@pytest.mark.parametrize(
    ("chosen", "data", "expected"),
    [
        ("/a", "/b", "/a"),
        (None, "/b", "/b/ridgeline"),
        (None, None, "/c/.local/share/ridgeline"),
        ("", "", "/c/.local/share/ridgeline"),
    ],
)
def test_home_follows_the_environment(
    monkeypatch: pytest.MonkeyPatch, chosen: str | None, data: str | None, expected: str
) -> None:
    for name, value in (("RIDGELINE_HOME", chosen), ("XDG_DATA_HOME", data), ("HOME", "/c")):
        monkeypatch.delenv(name, raising=False)
        if value is not None:
            monkeypatch.setenv(name, value)
    assert home_dir() == Path(expected)


def test_the_cache_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RIDGELINE_CACHE_DIR", str(tmp_path))
    assert default_cache_dir() == tmp_path
    monkeypatch.delenv("RIDGELINE_CACHE_DIR")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert default_cache_dir() == Path("/var/cache/ridgeline")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("XDG_CACHE_HOME", "/elsewhere")
    assert default_cache_dir() == Path("/elsewhere/ridgeline")


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "new" / "facts.json"
    assert is_older(path, 0)
    replace_json(path, {"a": 1})
    assert not is_older(path, 60)
    with pytest.raises(TypeError):
        replace_json(path, {"a": object()})
    assert json.loads(path.read_text()) == {"a": 1}
    assert list(path.parent.iterdir()) == [path]


def test_an_unusable_lock_folder_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RIDGELINE_LOCK_DIR", "/dev/null/locks")
    with pytest.raises(DeviceError, match="set RIDGELINE_LOCK_DIR"):
        lock_dir()


def folders_in(monkeypatch: pytest.MonkeyPatch, place: Path, *, patience_s: float = 0.05) -> tuple[Path, Path]:
    monkeypatch.delenv("RIDGELINE_LOCK_DIR", raising=False)
    monkeypatch.setattr(places, "_FOLDER_PATIENCE_S", patience_s)
    folders = place / "run" / "ridgeline", place / "tmp" / "ridgeline-locks"
    monkeypatch.setattr(places, "_LOCK_FOLDERS", folders)
    return folders


def test_the_folder_that_another_user_already_uses_is_everybody_s(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first, second = folders_in(monkeypatch, tmp_path)
    second.mkdir(parents=True)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "own"))
    assert lock_dir() == second
    assert not first.exists()


def test_a_folder_that_is_there_and_cannot_be_used_is_left_for_no_other(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first, second = folders_in(monkeypatch, tmp_path)
    first.parent.mkdir()
    first.symlink_to(tmp_path)
    with pytest.raises(
        DeviceError, match=f"lock folder {first} is a link, which .*: put a folder in its place, or set"
    ):
        lock_dir()
    assert not second.exists()


def test_a_lock_folder_that_is_a_file_is_told_as_what_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folders_in(monkeypatch, tmp_path)
    file = tmp_path / "locks"
    file.touch()
    monkeypatch.setenv("RIDGELINE_LOCK_DIR", str(file))
    with pytest.raises(DeviceError, match=f"^lock folder {file} is no folder: set RIDGELINE_LOCK_DIR to one that all"):
        lock_dir()


def test_a_lock_folder_that_cannot_be_made_is_told_as_such(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    folder = tmp_path / "file" / "locks"
    monkeypatch.setenv("RIDGELINE_LOCK_DIR", str(folder))
    said = rf"^lock folder {folder} cannot be made \(not a directory\): set RIDGELINE_LOCK_DIR to one"
    with pytest.raises(DeviceError, match=said):
        lock_dir()


def test_a_lock_folder_that_may_not_be_written_is_told_with_the_cause_and_its_mode(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first, _ = folders_in(monkeypatch, tmp_path)
    first.mkdir(parents=True)
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write anywhere
    monkeypatch.setattr(places, "why_unwritable", lambda _: "permission denied")
    with pytest.raises(DeviceError) as refused:
        lock_dir()
    told = f"lock folder {first} cannot be written (permission denied): `chmod 1777 {first}`, or set RIDGELINE_LOCK_DIR"
    assert str(refused.value).startswith(told)


def test_a_folder_that_is_being_made_is_waited_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    first, _ = folders_in(monkeypatch, tmp_path, patience_s=math.inf)  # however busy the machine: the answers decide
    first.mkdir(parents=True)
    answers = iter([False, False, True])
    monkeypatch.setattr(os, "access", lambda *_: next(answers))
    assert lock_dir() == first
    assert not list(answers)
