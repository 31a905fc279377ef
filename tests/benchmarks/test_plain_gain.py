"""The plain loops beside the judge: over as many sets."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path

import pytest

from ridgeline.tools.judge.process import JudgeProcess
from ridgeline.tools.machine.devices import detect_device


@pytest.mark.thorough
@pytest.mark.usefixtures("warm_judge")
@pytest.mark.parametrize("megabytes", [0.1, 16.0])
def test_the_loops_rotate_over_as_many_sets_as_the_judge(tmp_path: Path, megabytes: float) -> None:
    problem = import_module("form").form_problem(f"affine:{megabytes}", detect_device("cpu"))
    judge = JudgeProcess(problem, os.urandom(16), tmp_path)
    try:
        loaded = judge.problem
        assert import_module("plain_gain").sets_of(problem.described(loaded.description)) == loaded.n_sets
    finally:
        judge.close()
