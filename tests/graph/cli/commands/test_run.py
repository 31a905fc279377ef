"""What `ridgeline run` refuses before it announces or writes anything, and what it says while it waits."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.environments import child_environment
from tests.graph.cli.command_line import LINE_OF, REFERENCE, assert_one_line, ridgeline
from tests.graph.programs import ended, started
from tests.warm_python import WarmProgram

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.bank import Bank
from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.graph import cli

pytestmark = pytest.mark.long


@pytest.mark.parametrize(
    ("bank", "says"),
    [
        (".", "is a folder, not a Ridgeline seed bank; name a file"),
        ("notes.txt", "notes.txt: not a Ridgeline seed bank"),
        ("/proc/no/bank.sqlite", "/proc/no/bank.sqlite: "),
    ],
)
def test_a_bank_that_cannot_be_opened_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], bank: str, says: str
) -> None:
    (tmp_path / "notes.txt").write_text("kernels")
    words = ["run", "softmax", "--run-dir", str(tmp_path / "run"), "--bank", str(tmp_path / bank)]
    assert cli.main(words) == 2
    out, said = capsys.readouterr()
    assert (out, said.count("\n")) == ("", 1)
    assert says in said
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("name: mine\nreference: [", ("problem.yaml",)),
        ("name: mine\nreference: reference.py\nsearhc: {}\n", ("searhc", "search")),
        ("name: mine\nreference: reference.py\nsearch: {rounds: many}\n", ("search.rounds",)),
        ("name: mine\nreference: absent.py\n", ("absent.py",)),
        ("name: mine\nreference: reference.py\ntolerance: loose\n", ("tolerance",)),
        ("name: mine\nreference: reference.py\ntargets: {cpu: {sizes: {COLS: 3}}}\n", ("COLS",)),
    ],
)
def test_mistaken_problem_file_gets_one_line(content: str, words: tuple[str, ...], problem: Path) -> None:
    problem.write_text(content)
    assert_one_line(ridgeline("run", str(problem), cwd=problem.parent), *words)
    assert not (problem.parent / "runs").exists()


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("openai:o3", ("OPENAI_API_KEY",)),
        ("google_genai:gemini-2.5-pro", ("GOOGLE_API_KEY",)),
        ("nonsense", ("nonsense", "provider:name")),
        ("unheard_of:model", ("unheard_of",)),
    ],
)
def test_unusable_model_gets_one_line_and_leaves_nothing(model: str, words: tuple[str, ...], problem: Path) -> None:
    assert_one_line(ridgeline("run", str(problem), "--model", model, cwd=problem.parent), *words)
    assert not (problem.parent / "runs").exists()


@pytest.mark.parametrize("device", ["cuda:99", "tpu", "cpu:1"])
def test_unknown_device_gets_one_line_and_leaves_nothing(device: str, problem: Path) -> None:
    problem.write_text("name: mine\nreference: reference.py\n")
    done = ridgeline("run", str(problem), "--device", device, cwd=problem.parent)
    assert_one_line(done, "device")
    assert done.stdout == ""
    assert not (problem.parent / "runs").exists()


def test_missing_compiler_gets_one_line(problem: Path, tmp_path: Path) -> None:
    done = ridgeline("run", str(problem), "--bank", "none", cwd=tmp_path, PATH=str(tmp_path), CXX="no-such-compiler")
    assert_one_line(done, "g++")
    assert done.stdout == ""
    assert not (tmp_path / "runs").exists()


def test_a_folder_with_other_things_in_it_is_no_run_folder(problem: Path) -> None:
    before = sorted(problem.parent.iterdir())
    done = ridgeline("run", str(problem), "--run-dir", str(problem.parent), cwd=problem.parent)
    assert_one_line(done, "a folder with other things in it (problem.yaml, …), no run's; name a new --run-dir")
    assert sorted(problem.parent.iterdir()) == before


def test_run_folder_held_by_another_process_gets_one_line_and_its_log_none(problem: Path) -> None:
    run = problem.parent / "held"
    with Archive.open(run / "archive.sqlite") as archive:
        archive.save_run(RunRecord(problem={"name": "mine"}, problem_path=str(problem), settings={}, state="running"))
    (run / "run.log").write_text("the holder's\n")
    with (run / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for words in (["--run-dir", str(run)], ["--resume", str(run)]):
            done = ridgeline("run", str(problem), *words, cwd=problem.parent)
            assert_one_line(done, "held: in use by process")
            assert done.stdout == ""
    assert (run / "run.log").read_text() == "the holder's\n"


def test_a_run_folder_that_is_a_file_or_holds_a_search_is_refused_before_a_word(problem: Path) -> None:
    with Archive.open(problem.parent / "run" / "archive.sqlite") as archive:
        archive.save_run(RunRecord(problem={"name": "mine"}, settings={}))
    for name, says in (("problem.yaml", "is a file, and no run's"), ("run", "holds a search already; pass --resume")):
        done = ridgeline("run", str(problem), "--run-dir", str(problem.parent / name), cwd=problem.parent)
        assert_one_line(done, says)
        assert done.stdout == ""


def test_a_disk_too_full_for_a_run_folder_keeps_none_and_speaks_of_no_resume(problem: Path) -> None:
    place = problem.parent / "mount"
    place.mkdir()
    inner = f'mount -t tmpfs -o size=64k tmpfs {place} && "$0" "$@"; code=$?; ls -A {place} >&2; exit $code'
    command = ["unshare", "--map-root-user", "--mount", "sh", "-c", inner, *LINE_OF]
    words = ["run", str(problem), "--bank", "none", "--plain", "--run-dir", str(place / "run")]
    environment = child_environment()
    done = subprocess.run([*command, *words], capture_output=True, text=True, env=environment, timeout=120, check=False)
    if "unshare" in done.stderr or "mount:" in done.stderr:
        pytest.skip(f"no mount namespaces here: {done.stderr.strip()}")
    assert_one_line(done, "the disk is full; free some space and try again")
    assert "resume" not in done.stderr


def test_unwritable_run_folder_gets_one_line(problem: Path) -> None:
    # /proc refuses new folders to everyone, root included
    done = ridgeline("run", str(problem), "--run-dir", "/proc/ridgeline-run", cwd=problem.parent)
    assert_one_line(done, "/proc/ridgeline-run")


def test_reference_that_raises_gets_one_line_and_leaves_no_run(problem: Path) -> None:
    raising = REFERENCE.replace("return torch.softmax(x, dim=-1)", "return x / (1 // 0)")
    (problem.parent / "reference.py").write_text(raising)
    done = ridgeline("run", str(problem), "--bank", "none", "--plain", cwd=problem.parent)
    assert_one_line(done, "ZeroDivisionError")
    assert not list((problem.parent / "runs").glob("*"))
    assert_one_line(ridgeline("run", str(problem), "--resume", cwd=problem.parent), "no unfinished run")


@pytest.mark.parametrize("variable", ["RIDGELINE_CACHE_DIR", "RIDGELINE_LOCK_DIR"])
def test_a_folder_of_ridgelines_own_that_cannot_be_written_is_refused_before_anything_begins(
    problem: Path, variable: str
) -> None:
    (problem.parent / "file").touch()
    folder = str(problem.parent / "file" / "folder")
    done = ridgeline("run", str(problem), "--plain", cwd=problem.parent, **{variable: folder})
    assert_one_line(done, folder, f"set {variable} to ")
    assert not done.stdout and not (problem.parent / "runs").exists()


def test_a_home_that_cannot_be_written_is_told_with_its_variable_before_the_search_begins(problem: Path) -> None:
    (problem.parent / "file").touch()
    (problem.parent / "reference.py").write_text(REFERENCE.replace("torch.softmax(x, dim=-1)", "x / (1 // 0)"))
    home = str(problem.parent / "file" / "home")
    told = f"warning: {home} cannot be written (not a directory): this search keeps no kernels for later ones"
    for words, is_told in ((), True), (("--bank", "none"), False):
        done = ridgeline("run", str(problem), "--plain", *words, cwd=problem.parent, RIDGELINE_HOME=home)
        assert (told in done.stdout and "set RIDGELINE_HOME to a folder of yours" in done.stdout) == is_told, done
        assert_one_line(done, "ZeroDivisionError")


def test_an_own_bank_that_is_damaged_is_told_before_the_search_begins(problem: Path) -> None:
    (problem.parent / "reference.py").write_text(REFERENCE.replace("torch.softmax(x, dim=-1)", "x / (1 // 0)"))
    bank = problem.parent / "home" / "bank.sqlite"
    Bank.open(bank).close()
    whole = bank.read_bytes()
    for content, is_told in ((whole, False), (whole[: len(whole) // 2], True)):
        bank.write_bytes(content)
        done = ridgeline("run", str(problem), "--plain", cwd=problem.parent, RIDGELINE_HOME=str(bank.parent))
        told = f"warning: {bank}: the database is damaged ("
        assert (told in done.stdout and "this search keeps no kernels for later ones" in done.stdout) == is_told, done


def test_zero_rounds_get_exit_code_two(problem: Path) -> None:
    done = ridgeline("run", str(problem), "--rounds", "0", cwd=problem.parent)
    assert done.returncode == 2
    assert "must be a whole number from 1 to 1000000, got 0" in done.stderr


@contextmanager
def waiting(problem: Path, tmp_path: Path, command: str) -> Iterator[tuple[WarmProgram, str]]:
    """Give a command that waits for the device, which this process has, and the line that says so."""
    (tmp_path / "kernel.cpp").write_text("void run(const float* x, float* out, void*) {}\n")
    (tmp_path / "locks").mkdir()
    words = {"evaluate": ["kernel.cpp"], "run": ["--run-dir", "run"]}[command]
    with (tmp_path / "locks" / "cpu.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with started(
            LINE_OF[-1], command, problem, *words, cwd=tmp_path,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, RIDGELINE_LOCK_DIR=str(tmp_path / "locks"),
        ) as process:  # fmt: skip
            assert process.stdout is not None
            yield process, next(line for line in process.stdout if "waiting for" in line)
            process.kill()


@pytest.mark.parametrize("command", ["evaluate", "run"])
def test_a_wait_for_another_process_is_told_and_names_it(problem: Path, tmp_path: Path, command: str) -> None:
    with waiting(problem, tmp_path, command) as (_, told):
        assert f"waiting for cpu: pid {os.getpid()} (" in told


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_search_that_only_waits_stops_at_the_first_signal(problem: Path, tmp_path: Path, number: int) -> None:
    with waiting(problem, tmp_path, "run") as (process, _):
        process.send_signal(number)
        said = process.communicate(timeout=60)[0]
    assert process.returncode == 128 + number, said
    assert f"{signal.Signals(number).name}: stopping after the steps in flight (again: now)" in said
    assert "resume:" in said


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_before_the_loop_runs_stops_the_search_like_a_later_one(
    problem: Path, tmp_path: Path, number: int
) -> None:
    code = (
        "import asyncio, os, sys\nfrom ridgeline.graph.cli import main\nmake = asyncio.events.new_event_loop\n"
        f"def interrupted(): os.kill(os.getpid(), {int(number)}); return make()\n"
        "asyncio.events.new_event_loop = interrupted\nsys.exit(main())"
    )
    words = ["run", str(problem), "--bank", "none", "--plain", "--run-dir", str(tmp_path / "run")]
    returncode, output, errors = ended(code, *words)
    assert (returncode, errors) == (128 + number, "")
    assert "stopping after the steps in flight" in output
    assert "resume:" in output


def test_run_without_a_problem_says_what_to_type(tmp_path: Path) -> None:
    assert_one_line(ridgeline("run", cwd=tmp_path), "ridgeline run quickstart", "ridgeline problems", "ridgeline new")
    assert_one_line(ridgeline("run", "--resume", cwd=tmp_path), "ridgeline run problem.yaml --resume")


@pytest.mark.parametrize(
    ("device", "words"),
    [
        ("kernel.cpp", ("is a file", "kernel.cpp stands without --device")),
        ("gpu", ("use cpu, cuda or cuda:N", "ridgeline doctor")),
    ],
)
@pytest.mark.parametrize("command", ["run", "evaluate"])
def test_unknown_device_is_answered_with_what_to_type(
    problem: Path, tmp_path: Path, command: str, device: str, words: tuple[str, ...]
) -> None:
    (tmp_path / "kernel.cpp").write_text("")
    files = ["kernel.cpp"] if command == "evaluate" else []
    done = ridgeline(command, str(problem), *files, "--device", device, cwd=tmp_path)
    assert_one_line(done, repr(device), *words)
    assert not (tmp_path / "runs").exists()


def test_offline_says_what_it_does_not_cover_before_pytorch_is_timed(problem: Path, tmp_path: Path) -> None:
    (tmp_path / "reference.py").write_text(REFERENCE.replace("torch.softmax(x, dim=-1)", "torch.cumsum(x, dim=-1)"))
    done = ridgeline("run", str(problem), cwd=tmp_path)
    assert_one_line(done, "not covered", "--model openai:o3", "seeds:")
    assert "no model was named: the offline model composes kernels where it covers the problem" in done.stdout
    assert "PyTorch:" not in done.stdout
    assert not list((tmp_path / "runs").glob("*"))
