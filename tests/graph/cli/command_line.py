"""What the tests of the command line share: the command as its own process, and the form of a mistake."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.environments import ROOT, child_environment
from tests.graph.programs import SEARCHING

REFERENCE = """
import torch

ROWS = 64


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1)


def get_inputs():
    return [torch.randn(ROWS, 128)]


def get_init_inputs():
    return []
"""
WARM = "import sys; from tests.graph.warm_ridgeline import main; sys.exit(main())"
LINE_OF = [sys.executable, "-c", "import sys; from ridgeline.graph.cli import main; sys.exit(main())"]


def ridgeline(*words: str, cwd: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process of its own, which begins with its imports done, as its judges do."""
    return SEARCHING.run(["-c", WARM, *words], env=_without_keys(ROOT) | environment, cwd=cwd)


def ridgeline_anew(*words: str, cwd: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command line in a Python of its own: variables that the dynamic linker reads hold for it."""
    env = _without_keys() | environment
    return subprocess.run(
        [*LINE_OF, *words], capture_output=True, text=True, cwd=cwd, env=env, timeout=120, check=False
    )


def in_memory(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run the command line with the engine of memory: nothing is built, run or timed."""
    return SEARCHING.run(["-m", "tests.graph.memory_ridgeline", *words], env=_without_keys(ROOT), cwd=cwd)


def _without_keys(*beside: Path) -> dict[str, str]:
    keys = ("OPENAI_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY", "OPENAI_BASE_URL")
    return {name: value for name, value in child_environment(*beside).items() if name not in keys}


def assert_one_line(done: subprocess.CompletedProcess[str], *words: str) -> None:
    """Assert exit code 2, one line on stderr, and that the line holds these words."""
    assert done.returncode == 2, done.stderr + done.stdout
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    for word in words:
        assert word in lines[0]


def into(stdout: int, *words: str, **given: Any) -> subprocess.CompletedProcess[str]:
    """Run the command line with its standard output at a descriptor."""
    return subprocess.run(
        [*LINE_OF, *words], stdout=stdout, stderr=subprocess.PIPE, text=True, env=child_environment(), **given
    )
