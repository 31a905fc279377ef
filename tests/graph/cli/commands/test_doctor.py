"""What `ridgeline doctor` finds and says."""

from __future__ import annotations

import json
import resource
import shutil
from pathlib import Path

import pytest
from tests.environments import ROOT
from tests.graph.cli.command_line import ridgeline, ridgeline_anew

from ridgeline.graph.cli.commands.doctor import _folders, _python_inside, _tools_inside
from ridgeline.tools.sandbox.sandbox import Tier


def test_doctor_finds_the_compiler_and_a_sandbox_tier() -> None:
    done = ridgeline("doctor", "--json")
    findings = {f["item"]: f for f in json.loads(done.stdout)["findings"]}
    assert findings["g++"]["ok"]
    assert findings["sandbox"]["detail"].startswith("tier ")
    assert findings["tools inside"]["ok"], findings["tools inside"]
    assert findings["Python inside"]["ok"], findings["Python inside"]


def test_doctor_tries_the_torch_that_a_runner_would_import(tmp_path: Path) -> None:
    folder = tmp_path / "user" / "torch"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("raise OSError('libtorch.so: cannot be opened')")
    done = ridgeline_anew("doctor", "--json", PYTHONPATH=f"{ROOT / 'src'}:{folder.parent}")
    inside = next(f for f in json.loads(done.stdout)["findings"] if f["item"] == "Python inside")
    assert not inside["ok"]
    assert inside["detail"] == "OSError: libtorch.so: cannot be opened"
    assert inside["remedy"].startswith(f"torch lies in {folder}: install it in this Python's own environment, ")


def test_doctor_explains_the_tier_and_how_to_reach_a_better_one(tmp_path: Path) -> None:
    (tmp_path / "g++").symlink_to(shutil.which("g++") or "")
    done = ridgeline("doctor", "--json", PATH=str(tmp_path))  # a machine without bubblewrap
    sandbox = next(f for f in json.loads(done.stdout)["findings"] if f["item"] == "sandbox")
    assert "for tier A: bubblewrap not installed: apt-get install bubblewrap" in sandbox["remedy"]
    assert (sandbox["detail"] + sandbox["remedy"]).count("bubblewrap not installed") == 1


def test_doctor_tries_the_folders_and_names_the_variable_of_one_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    folders = {"home": "RIDGELINE_HOME", "build cache": "RIDGELINE_CACHE_DIR", "locks": "RIDGELINE_LOCK_DIR"}
    given = {variable: str(tmp_path / variable) for variable in folders.values()}
    found = {f["item"]: f for f in json.loads(ridgeline("doctor", "--json", **given).stdout)["findings"]}
    assert all(found[item]["ok"] and given[variable] in found[item]["detail"] for item, variable in folders.items())
    given = dict.fromkeys(given, str(tmp_path / "file" / "folder"))
    done = ridgeline("doctor", "--json", **given)
    found = {f["item"]: f for f in json.loads(done.stdout)["findings"]}
    for item, variable in folders.items():
        assert not found[item]["ok"]
        assert given[variable] in found[item]["detail"] and f"set {variable} to " in found[item]["remedy"]
    assert done.returncode == 2


def test_doctor_names_a_limit_that_keeps_anything_from_running_in_a_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    low, of_others = (51200, 51200), resource.getrlimit
    monkeypatch.setattr(
        "ridgeline.tools.sandbox.sandbox.resource.getrlimit",
        lambda number: low if number == resource.RLIMIT_FSIZE else of_others(number),
    )
    says = "the limit of file size is 51200, below 268435456: raise it (`ulimit -H -f`)"
    for check, detail in ((_python_inside, says), (_tools_inside, f"a GPU's sanitizer and profiler: {says}")):
        assert (check(Tier.NONE).detail, check(Tier.NONE).remedy) == (detail, "")


def test_doctor_names_the_folder_of_runs_and_says_where_none_can_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    checks = {check.item: check for check in _folders()}
    assert checks["runs"].is_fine and checks["runs"].detail.startswith(f"{tmp_path / 'runs'}")
    (tmp_path / "runs").touch()
    runs = next(check for check in _folders() if check.item == "runs")
    assert not runs.is_fine and runs.detail == f"{tmp_path / 'runs'}: is no folder" and "--run-dir" in runs.remedy


def test_a_limit_of_file_size_is_the_remedy_where_something_is_written_and_not_of_the_folder_of_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for look in ("why_unwritable", "why_refused"):
        monkeypatch.setattr(f"ridgeline.graph.cli.commands.doctor.{look}", lambda _: "file too large")
    remedies = {check.item: check.remedy for check in _folders()}
    assert remedies["home"] == remedies["build cache"] == "raise the limit of file size (`ulimit -f`)"
    assert remedies["runs"] == "change to a folder of yours, or name one with --run-dir"


def test_doctor_never_prints_a_key() -> None:
    done = ridgeline("doctor", OPENAI_API_KEY="sk-this-is-secret")
    assert "sk-this-is-secret" not in done.stdout + done.stderr
    assert "set" in done.stdout
