"""The compiler of a test, with a cache and the best sandbox."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.tools.build.tasks import MakeProblem

from ridgeline.tools.build.compiler import Compiler
from ridgeline.tools.sandbox.sandbox import Sandbox


@pytest.fixture
def compiler(tmp_path: Path, sandbox: Sandbox, make_problem: MakeProblem) -> Compiler:
    return Compiler(sandbox, tmp_path / "cache", make_problem().device)
