"""A small problem of a user's own."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.graph.cli.command_line import REFERENCE


@pytest.fixture
def problem(tmp_path: Path) -> Path:
    """Return a small problem of the user's own."""
    (tmp_path / "reference.py").write_text(REFERENCE)
    path = tmp_path / "problem.yaml"
    path.write_text("name: mine\nreference: reference.py\ntargets: {cpu: {}}\n")
    return path
