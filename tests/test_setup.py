"""What `make demo` and `make test` say on a machine that lacks something."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PLACEHOLDER = "#!/bin/sh\nexit 127\n"
OLD_PYTHON = "#!/bin/sh\nexit 1\n"
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


def setup(machine: Path, what: str = "runtime") -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHON"} | {"PATH": str(machine)}
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
