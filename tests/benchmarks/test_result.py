"""A result names the commit and the device that it was measured at."""

from __future__ import annotations

import json
import shutil
import subprocess
import tarfile
from importlib import import_module
from pathlib import Path

import pytest

from ridgeline.tools.records.problem import Device
from ridgeline.tools.records.vocabulary import DeviceKind

ROOT = Path(__file__).parents[2]
IDENTITY = ("-c", "user.name=nobody", "-c", "user.email=nobody@example.invalid", "-c", "commit.gpgsign=false")


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *IDENTITY, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def commit_all(folder: Path) -> str:
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "All")
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Return a repository with this one's two files that make an archive know its commit."""
    folder = tmp_path / "repository"
    for name in (".gitattributes", "benchmarks/commit.txt"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, folder / name)
    return folder


def test_commit_of_a_checkout_is_git_s_and_says_when_the_tree_differs(repository: Path) -> None:
    commit_of, commit = import_module("result").commit_of, commit_all(repository)
    assert commit_of(repository / "benchmarks") == commit
    (repository / "benchmarks" / "commit.txt").write_text("else\n")
    assert commit_of(repository / "benchmarks") == f"{commit}+changes"


def test_exported_tree_knows_its_commit_inside_another_repository_too(repository: Path, tmp_path: Path) -> None:
    commit = commit_all(repository)
    archive, outer = tmp_path / "archive.tar", tmp_path / "outer"
    git(repository, "archive", "--output", str(archive), "HEAD")
    with tarfile.open(archive) as members:
        members.extractall(outer / "exported", filter="data")
    assert commit_all(outer) != commit
    assert import_module("result").commit_of(outer / "exported" / "benchmarks") == commit


def test_copied_tree_without_a_repository_has_no_commit(repository: Path) -> None:
    assert import_module("result").commit_of(repository / "benchmarks") == ""


def test_a_result_s_command_tells_no_folder_of_a_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recording = "benchmarks/recordings"
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(
        "sys.argv", ["benchmarks/outside_crfm.py", str(tmp_path), "Softmax", recording, "--repeats", "3"]
    )
    told = import_module("result").provenance()["command"]
    assert told == f"python benchmarks/outside_crfm.py PATH Softmax {recording} --repeats 3"


def gpu(name: str, uuid: str) -> Device:
    return Device(
        kind=DeviceKind.CUDA,
        name=name,
        arch="sm_90a",
        uuid=uuid,
        cores=132,
        memory_bytes=1,
        cache_bytes=1,
        driver="580",
    )


def test_every_entry_names_its_own_device_and_none_is_lost_beside_another_model_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = import_module("result")
    monkeypatch.setattr(result, "RESULTS", tmp_path)
    for uuid in ("GPU-a", "GPU-b"):
        entry = {uuid: {"measured": result.provenance(), "ms": 1.0}}
        path = result.merge_result("times", entry, device=gpu("H200", uuid))
    file = json.loads(path.read_text())
    named = [entry["measured"].pop("device_name") for entry in file["figures"].values()]
    assert named == ["H200", "H200"]
    path.write_text(json.dumps(file))  # as files were before each entry named its model
    result.merge_result("times", {"GPU-c": {"ms": 2.0}}, device=gpu("L40S", "GPU-c"))
    on = {key: e["measured"] for key, e in json.loads(path.read_text())["figures"].items()}
    assert {key: (each["device"], each["device_name"]) for key, each in on.items()} == {
        "GPU-a": ("GPU-a", "H200"),
        "GPU-b": ("GPU-b", "H200"),
        "GPU-c": ("GPU-c", "L40S"),
    }
    assert on["GPU-c"].keys() >= {"date", "command", "commit", "judge_version"}


def test_an_entry_that_was_not_dated_keeps_its_file_s_date_and_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = import_module("result")
    monkeypatch.setattr(result, "RESULTS", tmp_path)
    path = result.write_result("times", {"old": {"ms": 1.0}}, device=gpu("H200", "GPU-a"))
    before = json.loads(path.read_text())
    result.merge_result("times", {"new": {"ms": 2.0}}, device=gpu("L40S", "GPU-b"))
    measured = json.loads(path.read_text())["figures"]["old"]["measured"]
    assert measured == {key: before[key] for key in ("date", "command", "commit", "judge_version")} | {
        "device_name": "H200"
    }
