"""The command line as a user meets it: its speed, its exit codes, and one line for every mistake."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.graph import cli
from ridgeline.tools.errors import EngineError

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[3]
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


def ridgeline(*words: str, cwd: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command line in its own process."""
    keys = ("OPENAI_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY", "OPENAI_BASE_URL")
    clean = {name: value for name, value in os.environ.items() if name not in keys}
    return subprocess.run(
        [sys.executable, "-c", "import sys; from ridgeline.graph.cli import main; sys.exit(main())", *words],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**clean, "PYTHONPATH": str(ROOT / "src"), **environment},
        timeout=120,
        check=False,
    )


@pytest.fixture
def problem(tmp_path: Path) -> Path:
    """Return a small problem of the user's own."""
    (tmp_path / "reference.py").write_text(REFERENCE)
    path = tmp_path / "problem.yaml"
    path.write_text("name: mine\nreference: reference.py\ntargets: {cpu: {}}\n")
    return path


def assert_one_line(done: subprocess.CompletedProcess[str], *words: str) -> None:
    """Assert exit code 2, one line on stderr, and that the line holds these words."""
    assert done.returncode == 2, done.stderr + done.stdout
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    for word in words:
        assert word in lines[0]


def test_help_names_every_command() -> None:
    done = ridgeline("--help")
    assert done.returncode == 0
    for command in (
        "run",
        "evaluate",
        "show",
        "problems",
        "clean",
        "doctor",
        "new",
        "export",
        "merge",
        "import",
        "suite",
    ):
        assert command in done.stdout


def test_command_line_imports_neither_torch_nor_langgraph_for_its_help() -> None:
    code = (
        "import sys\nfrom ridgeline.graph.cli import main\n"
        "for words in (['--help'], ['run', '--help']): main(words)\n"
        "heavy = {'torch', 'langgraph', 'langchain_core', 'pydantic', 'rich'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_an_internal_error_asks_for_a_report_and_exits_with_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def execute(args: object) -> int:
        raise EngineError("the judge died")

    monkeypatch.setitem(sys.modules, "ridgeline.graph.cli.commands.show", types.SimpleNamespace(execute=execute))
    assert cli.main(["show", "x"]) == 1
    assert capsys.readouterr().err == "ridgeline: internal error, please report: the judge died\n"


def test_help_says_what_each_exit_code_means(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", "--help"]) == 0
    said = capsys.readouterr().out
    assert "1  internal error, please report" in said
    assert "2  invalid input, the message says how to fix it" in said


LINE_OF = [sys.executable, "-c", "import sys; from ridgeline.graph.cli import main; sys.exit(main())"]


def into(stdout: int, *words: str, **given: Any) -> subprocess.CompletedProcess[str]:
    """Run the command line with its standard output at a descriptor."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    return subprocess.run(
        [*LINE_OF, *words], stdout=stdout, stderr=subprocess.PIPE, text=True, env=environment, **given
    )


@pytest.mark.parametrize("words", [["problems"], ["problems", "--json"], ["doctor"]])
def test_a_reader_that_goes_away_ends_a_command_as_sigpipe_would(words: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = into(writing, *words)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")


def test_a_broken_pipe_of_our_own_is_no_reader_that_went_away(monkeypatch: pytest.MonkeyPatch) -> None:
    def execute(args: object) -> int:
        raise BrokenPipeError

    monkeypatch.setitem(sys.modules, "ridgeline.graph.cli.commands.show", types.SimpleNamespace(execute=execute))
    with open(os.devnull, "w") as out:  # pytest's own has no descriptor
        monkeypatch.setattr(sys, "stdout", out)
        monkeypatch.setattr(sys, "stderr", out)
        with pytest.raises(BrokenPipeError):
            cli.main(["show", "x"])


@pytest.mark.parametrize("words", [["problems"], ["problems", "--json"]])
def test_output_that_finds_no_room_is_said_in_one_line(words: list[str]) -> None:
    with open("/dev/full", "w") as full:
        done = into(full.fileno(), *words)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "standard output" in done.stderr
    assert "No space left on device" in done.stderr


@pytest.mark.parametrize("words", [["problems"], ["export", "x", "--jsonl"], ["show", "x"]])
def test_closed_standard_output_is_said_in_one_line(words: list[str]) -> None:
    done = into(subprocess.DEVNULL, *words, preexec_fn=lambda: os.close(1))
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "standard output is closed" in done.stderr


def test_closed_standard_error_leaves_the_exit_code() -> None:
    assert into(subprocess.DEVNULL, "show", "nothing-here", preexec_fn=lambda: os.close(2)).returncode == 2


def test_problems_lists_what_ships_as_json() -> None:
    rows = json.loads(ridgeline("problems", "--json").stdout)
    assert {"quickstart": ["cpu", "cuda"]}.items() <= {row["name"]: row["keyless"] for row in rows}.items()


def test_new_problem_of_a_users_module_can_be_loaded(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(REFERENCE)
    done = ridgeline("new", "mine", "--from", str(tmp_path / "mine.py"), "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "mine" / "problem.yaml").is_file()
    assert_one_line(ridgeline("new", "mine", "--from", str(tmp_path / "mine.py"), "--out", str(tmp_path)), "mine")


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


def test_missing_problem_file_gets_one_line(tmp_path: Path) -> None:
    assert_one_line(ridgeline("run", "absent.yaml", cwd=tmp_path), "absent.yaml")
    assert_one_line(ridgeline("evaluate", "absent.yaml", "x.cpp", cwd=tmp_path), "absent.yaml")


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


def test_evaluate_with_its_words_swapped_says_their_order(problem: Path) -> None:
    done = ridgeline("evaluate", "kernel.py", problem.name, cwd=problem.parent)
    assert_one_line(done, "problem.yaml: the problem comes first, then the kernels")


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
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run([*command, *words], capture_output=True, text=True, env=environment, timeout=120, check=False)
    if "unshare" in done.stderr or "mount:" in done.stderr:
        pytest.skip(f"no mount namespaces here: {done.stderr.strip()}")
    assert_one_line(done, "the disk is full; free some space and try again")
    assert "resume" not in done.stderr


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
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    subprocess.run([sys.executable, "-c", script], check=True, env=environment)
    done = ridgeline("run", str(problem), "--resume", str(run), cwd=problem.parent)
    assert_one_line(done, "ancient")


def test_resume_without_an_unfinished_run_says_so(problem: Path) -> None:
    assert_one_line(ridgeline("run", str(problem), "--resume", cwd=problem.parent), "no unfinished run", "mine")


def test_resume_of_what_is_no_run_says_what_it_is_and_what_to_give(problem: Path) -> None:
    done = ridgeline("run", str(problem), "--resume", "/etc", cwd=problem.parent)
    assert_one_line(done, "/etc: a folder that holds no run", "give the folder of a run")


def test_show_of_an_unknown_run_gets_one_line(tmp_path: Path) -> None:
    assert_one_line(ridgeline("show", "nothing-here", cwd=tmp_path), "nothing-here")


def test_unwritable_run_folder_gets_one_line(problem: Path) -> None:
    # /proc refuses new folders to everyone, root included
    done = ridgeline("run", str(problem), "--run-dir", "/proc/ridgeline-run", cwd=problem.parent)
    assert_one_line(done, "/proc/ridgeline-run")


def test_doctor_finds_the_compiler_and_a_sandbox_tier() -> None:
    done = ridgeline("doctor", "--json")
    findings = {f["item"]: f for f in json.loads(done.stdout)["findings"]}
    assert findings["g++"]["ok"]
    assert findings["sandbox"]["detail"].startswith("tier ")
    assert findings["Python inside"]["ok"], findings["Python inside"]


def test_doctor_explains_the_tier_and_how_to_reach_a_better_one(tmp_path: Path) -> None:
    (tmp_path / "g++").symlink_to(shutil.which("g++") or "")
    done = ridgeline("doctor", "--json", PATH=str(tmp_path))  # a machine without bubblewrap
    sandbox = next(f for f in json.loads(done.stdout)["findings"] if f["item"] == "sandbox")
    assert "for tier A: bubblewrap not installed: apt-get install bubblewrap" in sandbox["remedy"]
    assert (sandbox["detail"] + sandbox["remedy"]).count("bubblewrap not installed") == 1


def test_doctor_never_prints_a_key() -> None:
    done = ridgeline("doctor", OPENAI_API_KEY="sk-this-is-secret")
    assert "sk-this-is-secret" not in done.stdout + done.stderr
    assert "set" in done.stdout


def test_merge_and_export_of_a_file_that_is_no_archive_get_one_line(tmp_path: Path) -> None:
    other = tmp_path / "other.sqlite"
    sqlite3.connect(other).close()
    assert_one_line(ridgeline("merge", str(tmp_path / "all.sqlite"), str(tmp_path / "absent"), cwd=tmp_path), "absent")
    assert_one_line(ridgeline("export", "absent", cwd=tmp_path), "absent")


def test_reference_that_raises_gets_one_line_and_leaves_no_run(problem: Path) -> None:
    raising = REFERENCE.replace("return torch.softmax(x, dim=-1)", "return x / (1 // 0)")
    (problem.parent / "reference.py").write_text(raising)
    done = ridgeline("run", str(problem), "--bank", "none", "--plain", cwd=problem.parent)
    assert_one_line(done, "ZeroDivisionError")
    assert not list((problem.parent / "runs").glob("*"))
    assert_one_line(ridgeline("run", str(problem), "--resume", cwd=problem.parent), "no unfinished run")


@pytest.mark.parametrize("command", ["evaluate", "show", "export"])
def test_interrupted_command_ends_without_a_traceback(command: str) -> None:
    code = (
        "import sys, types\nfrom ridgeline.graph import cli\n"
        "def execute(args): raise KeyboardInterrupt\n"
        f"sys.modules['ridgeline.graph.cli.commands.{command}'] = types.SimpleNamespace(execute=execute)\n"
        f"sys.exit(cli.main([{command!r}, 'x', *(['y.cpp'] if {command!r} == 'evaluate' else [])]))"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert (done.returncode, done.stderr) == (130, "")


def test_zero_rounds_get_exit_code_two(problem: Path) -> None:
    done = ridgeline("run", str(problem), "--rounds", "0", cwd=problem.parent)
    assert done.returncode == 2
    assert "must be a whole number from 1 to 1000000, got 0" in done.stderr


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


@contextmanager
def waiting(problem: Path, tmp_path: Path, command: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Give a command that waits for the device, which this process has, and the line that says so."""
    (tmp_path / "kernel.cpp").write_text("void run(const float* x, float* out, void*) {}\n")
    (tmp_path / "locks").mkdir()
    words = {"evaluate": ["kernel.cpp"], "run": ["--run-dir", "run"]}[command]
    line_of = "import sys; from ridgeline.graph.cli import main; sys.exit(main())"
    with (tmp_path / "locks" / "cpu.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with subprocess.Popen(
            [sys.executable, "-c", line_of, command, str(problem), *words],
            env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "RIDGELINE_LOCK_DIR": str(tmp_path / "locks")},
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
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
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, env=environment, check=False, timeout=120
    )
    assert (done.returncode, done.stderr) == (128 + number, "")
    assert "stopping after the steps in flight" in done.stdout
    assert "resume:" in done.stdout


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
    assert "PyTorch:" not in done.stdout
    assert not list((tmp_path / "runs").glob("*"))
