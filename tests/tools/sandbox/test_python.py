"""What a confined Python may read."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.environments import child_environment

from ridgeline.tools.sandbox.python import package_paths

SPEC = find_spec("torch")
assert SPEC is not None
assert SPEC.origin is not None
BESIDE_TORCH = Path(SPEC.origin).absolute().parents[1]
SHOWN = "import sys; from ridgeline.tools.sandbox.python import package_paths; print(*package_paths(), 'torch' in sys.modules)"


def test_a_torch_that_lies_outside_of_the_prefix_is_readable_and_nothing_else_there(tmp_path: Path) -> None:
    for name in ("user/torch", "user/numpy", "elsewhere"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "__init__.py").write_text("raise ImportError('only looked for')")
    environment = child_environment(tmp_path / "elsewhere")
    environment["PYTHONPATH"] = os.pathsep.join([str(tmp_path / "user"), environment["PYTHONPATH"]])
    done = subprocess.run(
        [sys.executable, "-c", SHOWN], env=environment, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    *paths, is_imported = done.stdout.split()
    assert [path for path in paths if path.startswith(str(tmp_path))] == [str(tmp_path / "user")]
    assert is_imported == "False"


def test_no_folder_is_named_twice() -> None:
    assert len(set(package_paths())) == len(package_paths())


@pytest.mark.parametrize(("home", "is_read"), [(BESIDE_TORCH / "person", False), (Path("/nowhere"), True)])
def test_the_folder_that_torch_lies_in_is_read_unless_it_holds_a_home(
    home: Path, is_read: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(home))
    assert (BESIDE_TORCH in package_paths()) is is_read
