"""A run of the tests in named tiers fails where one does not work, and a test of a confined process has its mark."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
UNMARKED = """
from ridgeline.tools.sandbox.sandbox import Confined, Sandbox, Tier


def test_of_a_tier():
    Sandbox(Tier.LANDLOCK).run(Confined(command=("/bin/true",)))
"""


def run(*words: str, tiers: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words]
    outside = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_XDIST")}
    environment = outside | {"RIDGELINE_TEST_TIERS": tiers}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)


def test_a_tier_that_has_to_work_and_does_not_fails_the_run() -> None:
    """In a run of tier B no process finds bubblewrap, so that tier A cannot work there."""
    done = run("tests/test_tiers.py::test_of_nothing", tiers="BA")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "tier A cannot be tested: " in done.stdout + done.stderr


def test_a_confined_process_needs_a_mark(tmp_path: Path) -> None:
    (tmp_path / "test_unmarked.py").write_text(UNMARKED)
    plugin = ("-p", "tests.conftest", "--rootdir", str(ROOT), "-c", str(ROOT / "pyproject.toml"))
    done = run(*plugin, str(tmp_path / "test_unmarked.py"), tiers="")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "mark it `sandboxed`" in done.stdout
