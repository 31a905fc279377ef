"""Every shipped CUDA seed through the real judge, on a machine that has a GPU."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ridgeline.problems.spec import shipped_problems

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc"),
    pytest.mark.skipif(not Path("/dev/nvidiactl").exists(), reason="needs an NVIDIA GPU"),
]
PROBLEMS = {name: path for name, path in shipped_problems().items() if list(path.parent.glob("seeds/*.cu"))}
CALL = "import sys; from ridgeline.graph.cli import main; sys.exit(main())"


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_judge_accepts_every_cuda_seed(name: str) -> None:
    seeds = sorted(PROBLEMS[name].parent.glob("seeds/*.cu"))
    command = [
        sys.executable,
        "-c",
        CALL,
        "evaluate",
        str(PROBLEMS[name]),
        *map(str, seeds),
        "--device",
        "cuda",
        "--json",
    ]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
    verdicts = [json.loads(line) for line in done.stdout.splitlines()]
    assert [verdict["status"] for verdict in verdicts] == ["ok"] * len(seeds), done.stdout
