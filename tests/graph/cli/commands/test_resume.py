"""What `ridgeline run --resume` takes and refuses."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.environments import child_environment
from tests.graph.cli.command_line import assert_one_line, ridgeline


def test_damaged_archive_gets_one_line(problem: Path) -> None:
    run = problem.parent / "damaged"
    run.mkdir()
    (run / "archive.sqlite").write_bytes(b"this is no database" * 500)
    done = ridgeline("run", str(problem), "--run-dir", str(run), "--resume", str(run), cwd=problem.parent)
    assert_one_line(done, "archive.sqlite")
    assert_one_line(ridgeline("show", str(run), cwd=problem.parent), "archive.sqlite")


def test_run_of_another_graph_version_gets_one_line(problem: Path) -> None:
    run = problem.parent / "old"
    run.mkdir()
    script = (
        "from ridgeline.checkpoints.archive import Archive\n"
        "from ridgeline.checkpoints.run_record import RunRecord\n"
        f"with Archive.open({str(run)!r}) as a: a.save_run(RunRecord(graph_version='ancient', problem={{'name': 'mine'}}))"
    )
    environment = child_environment()
    subprocess.run([sys.executable, "-c", script], check=True, env=environment)
    done = ridgeline("run", str(problem), "--resume", str(run), cwd=problem.parent)
    assert_one_line(done, "ancient")


def test_resume_without_an_unfinished_run_says_so(problem: Path) -> None:
    assert_one_line(ridgeline("run", str(problem), "--resume", cwd=problem.parent), "no unfinished run", "mine")


def test_resume_of_what_is_no_run_says_what_it_is_and_what_to_give(problem: Path) -> None:
    done = ridgeline("run", str(problem), "--resume", "/etc", cwd=problem.parent)
    assert_one_line(done, "/etc: a folder that holds no run", "give the folder of a run")


@pytest.mark.parametrize("words", [(), ("--resume",)])
def test_a_run_that_is_named_as_a_problem_is_told_how_it_goes_on(problem: Path, words: tuple[str, ...]) -> None:
    run = problem.parent / "runs" / "mine-1"
    run.mkdir(parents=True)
    (run / "archive.sqlite").touch()
    for named in ("runs/mine-1", "mine-1"):
        done = ridgeline("run", named, *words, cwd=problem.parent)
        assert_one_line(
            done, f"{named}: a search's run, no problem; to go on with it: ", f"--resume {problem.parent}/runs/mine-1"
        )


def test_a_problem_s_folder_is_meant_where_a_run_has_its_name(problem: Path) -> None:
    own = problem.parent / "mine"
    own.mkdir()
    for file in ("reference.py", "problem.yaml"):
        (problem.parent / file).rename(own / file)
    run = problem.parent / "runs" / "mine"
    run.mkdir(parents=True)
    (run / "archive.sqlite").touch()
    assert_one_line(ridgeline("run", "mine", "--resume", cwd=problem.parent), "no unfinished run of mine")


@pytest.mark.thorough
def test_resume_says_which_options_it_ignores_and_finds_the_problem_from_another_folder(
    problem: Path, tmp_path: Path
) -> None:
    run, elsewhere = problem.parent / "begun", tmp_path / "elsewhere"
    elsewhere.mkdir()
    begin = ("run", problem.name, "--bank", "none", "--plain", "--run-dir", str(run), "--max-wall-s", "0.001")
    begun = ridgeline(*begin, "--tune-trials", "0", cwd=problem.parent)
    assert begun.returncode == 0, begun.stderr
    more = ("--resume", str(run), "--ideas", "7", "--tune-trials", "0", "--rng-seed", "3", "--device", "cpu")
    resumed = ridgeline("run", "--bank", "none", "--plain", *more, cwd=elsewhere)
    assert resumed.returncode == 0, resumed.stderr
    assert "no model was named" in begun.stdout
    assert "no model was named" not in resumed.stdout
    assert (
        "ignored, a search keeps what it began with: --ideas 7 (it has 4), --rng-seed 3 (it has 0)\n" in resumed.stdout
    )
