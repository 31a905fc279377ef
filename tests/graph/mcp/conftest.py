"""A client's environment: the searches that a test begins find the tests beside the package, and no user's bank."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.graph.mcp.scenario import environment

from ridgeline.checkpoints.runs.folders import LOCK_NAME, is_locked


@pytest.fixture(autouse=True)
def searches_of_this_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the test's own searches find its modules, and end those that it leaves behind."""
    for name, value in environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("RIDGELINE_HOME", str(tmp_path / "home"))
    yield
    for lock in (tmp_path / "runs").glob(f"*/{LOCK_NAME}"):
        if is_locked(lock.parent):
            os.kill(int(lock.read_text()), signal.SIGKILL)
