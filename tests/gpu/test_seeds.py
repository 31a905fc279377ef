"""Every shipped CUDA seed through the real judge, and once through the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from ridgeline.problems.spec import shipped_problems

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("nvcc")]

SEEDS = {name: sorted(path.parent.glob("seeds/*.cu")) for name, path in shipped_problems().items()}
CALL = "import sys; from ridgeline.graph.cli import main; sys.exit(main())"


@pytest.mark.parametrize("name", [name for name, seeds in SEEDS.items() if seeds])
def test_the_judge_accepts_and_times_every_cuda_seed(bench, name: str) -> None:
    problem = bench.problem_of_file(shipped_problems()[name])
    bench.assert_timed(problem, {seed.stem: seed.read_text() for seed in SEEDS[name]})


def test_the_command_line_judges_a_cuda_seed(bench) -> None:
    bench.rest()
    problem, seeds = shipped_problems()["layernorm"], SEEDS["layernorm"]
    command = [sys.executable, "-c", CALL, "evaluate", str(problem), *map(str, seeds), "--device", "cuda", "--json"]
    environment = os.environ | {"RIDGELINE_CACHE_DIR": str(bench.folder)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
    verdicts = [json.loads(line) for line in done.stdout.splitlines()]
    assert [verdict["status"] for verdict in verdicts] == ["ok"] * len(seeds), done.stdout
