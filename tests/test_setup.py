"""What `make demo` and `make test` install, and what they say on a machine that lacks something."""

import os
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PLACEHOLDER = "#!/bin/sh\nexit 127\n"
OLD_PYTHON = "#!/bin/sh\nexit 1\n"
PYTHON_THAT_RECORDS = """#!/bin/sh
echo "$@" >> "${0%/*}/calls"
case "$*" in
  "-m venv "*) mkdir -p "$3/bin"; cp "$0" "$3/bin/python";;
  *importlib.metadata*) echo 2.11.0;;
esac
"""
WITHOUT_CODE = "--no-compile "
NEW_PYTHON_WITHOUT_VENV = '#!/bin/sh\ncase "$2" in *ensurepip*) exit 1;; esac\nexit 0\n'


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A machine with what every Linux has and nothing of what Ridgeline asks for."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("bash", "sh", "dirname", "uname", "env", "rm"):
        (programs / name).symlink_to(shutil.which(name) or name)
    return programs


def add(machine: Path, name: str, script: str) -> None:
    (machine / name).write_text(script)
    (machine / name).chmod(0o755)


def setup(machine: Path, what: str = "runtime", **given: str) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if key not in {"PYTHON", "TORCH_INDEX"}}
    environment |= {"PATH": str(machine)} | given
    command = [str(machine / "bash"), str(ROOT / ".ci" / "setup"), str(machine.parent / "venv"), what]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_a_missing_compiler_is_one_line_that_says_how_to_get_it(machine: Path) -> None:
    done = setup(machine)
    assert done.returncode == 2
    assert done.stderr.startswith("setup: g++ is missing; install it (")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("script", [PLACEHOLDER, OLD_PYTHON])
def test_a_missing_python_is_one_line_that_says_how_to_get_it(machine: Path, script: str) -> None:
    add(machine, "g++", PLACEHOLDER)
    add(machine, "python3", script)
    done = setup(machine)
    assert done.returncode == 2
    assert done.stderr.startswith("setup: Python 3.11 or newer is missing; install it (")
    assert done.stderr.count("\n") == 1
    assert not (machine.parent / "venv").exists()


def test_a_missing_venv_module_is_one_line_that_says_how_to_get_it(machine: Path) -> None:
    add(machine, "g++", PLACEHOLDER)
    add(machine, "python3", PLACEHOLDER)
    add(machine, "python3.12", NEW_PYTHON_WITHOUT_VENV)
    done = setup(machine)
    assert done.returncode == 2
    assert done.stderr.startswith("setup: the venv module of python3.12 is missing; install it (")
    assert done.stderr.count("\n") == 1


def installs(machine: Path, **given: str) -> list[str]:
    """Return what a set-up asks pip for, on a machine where every program works and torch 2.11.0 is there."""
    for name in ("grep", "mkdir", "cp"):
        (machine / name).symlink_to(shutil.which(name) or name)
    add(machine, "g++", "#!/bin/sh\n")
    add(machine, "python3", PYTHON_THAT_RECORDS)
    done = setup(machine, **given)
    assert done.returncode == 0, done.stderr
    *calls, first, second = (machine.parent / "venv" / "bin" / "calls").read_text().splitlines()
    assert {words.rpartition(" -c ")[2].split()[1] for words in (first, second)} == {"torch,", "sympy,"}
    asked = [call.partition(" install ")[2] for call in calls if " install " in call]
    assert all(words.startswith(WITHOUT_CODE) for words in asked), "else pip compiles all of it, on one core"
    return [words.removeprefix(WITHOUT_CODE) for words in asked]


def test_a_fresh_checkout_takes_the_tested_versions(machine: Path) -> None:
    assert installs(machine) == ["-c constraints.txt -e ."]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "PyTorch among it: 3 GB to download unless pip has its wheel"),
        ({"TORCH_INDEX": "https://example.org/cpu"}, "takes a minute or two"),
    ],
)
def test_what_takes_minutes_is_said_before_it_begins(machine: Path, given: dict[str, str], told: str) -> None:
    installs(machine)
    done = setup(machine, **given)
    assert told in done.stdout


def test_the_tested_torch_comes_from_the_index_that_is_named(machine: Path) -> None:
    torch, rest = installs(machine, TORCH_INDEX="https://example.org/cpu")
    assert torch == f"--index-url https://example.org/cpu torch=={constraints()['torch']}"
    assert rest == "-c constraints.txt -e ."


def declared() -> dict[str, Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    texts = [*project["dependencies"], *(text for texts in project["optional-dependencies"].values() for text in texts)]
    return {canonicalize_name(each.name): each for each in map(Requirement, texts)}


def constraints() -> dict[str, str]:
    """Return the tested version of each distribution; every line names one exactly."""
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    tested = {canonicalize_name(name): version for name, version in (line.split("==") for line in lines)}
    assert len(tested) == len(lines)
    return tested


def test_torch_has_no_upper_bound() -> None:
    assert {each.operator for each in declared()["torch"].specifier} == {">="}


@pytest.mark.parametrize("name", declared())
def test_each_dependency_has_a_tested_version_within_its_bounds(name: str) -> None:
    assert declared()[name].specifier.contains(constraints()[name])
