"""Folders that a confined program filled are removed, whatever it made of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.folders import nest_folders

from ridgeline.tools.machine.removal import remove_tree

DEPTH = 1500


def test_a_folder_deeper_than_the_stack_and_longer_than_a_path_goes(tmp_path: Path) -> None:
    nest_folders(tmp_path / "deep", DEPTH)
    remove_tree(tmp_path / "deep")
    assert list(tmp_path.iterdir()) == []


def test_no_link_is_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("")
    folder = tmp_path / "folder"
    (folder / "inner").mkdir(parents=True)
    (folder / "inner" / "link").symlink_to(outside)
    (folder / "dangling").symlink_to(tmp_path / "nowhere")
    remove_tree(folder)
    assert not folder.exists()
    assert (outside / "kept").exists()
    folder.symlink_to(outside)
    remove_tree(folder)
    assert (outside / "kept").exists()


def test_modes_do_not_protect(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "a" / "b" / "file").write_text("")
    for closed in (folder / "a" / "b", folder / "a", folder):
        closed.chmod(0)
    remove_tree(folder)
    assert not folder.exists()


@pytest.mark.parametrize("is_file", [False, True])
def test_what_is_no_folder_is_left(tmp_path: Path, *, is_file: bool) -> None:
    place = tmp_path / "place"
    if is_file:
        place.write_text("")
    remove_tree(place)
    assert place.exists() == is_file


def test_what_lies_beside_a_folder_that_stays_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "folder"
    for name in ("a", "kept", "z"):
        (folder / name / "inner").mkdir(parents=True)
    remove = os.rmdir

    def refuse(name: str, **where: int) -> None:
        if name == "kept":
            raise PermissionError(name)
        remove(name, **where)

    monkeypatch.setattr(os, "rmdir", refuse)
    remove_tree(folder)
    assert [path.name for path in folder.iterdir()] == ["kept"]
