"""What `ridgeline evaluate` refuses."""

from __future__ import annotations

from pathlib import Path

from tests.graph.cli.command_line import assert_one_line, ridgeline


def test_missing_problem_file_gets_one_line(tmp_path: Path) -> None:
    assert_one_line(ridgeline("run", "absent.yaml", cwd=tmp_path), "absent.yaml")
    assert_one_line(ridgeline("evaluate", "absent.yaml", "x.cpp", cwd=tmp_path), "absent.yaml")


def test_evaluate_with_its_words_swapped_says_their_order(problem: Path) -> None:
    done = ridgeline("evaluate", "kernel.py", problem.name, cwd=problem.parent)
    assert_one_line(done, "problem.yaml: the problem comes first, then the kernels")
