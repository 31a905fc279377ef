"""The sandbox as the rest of Ridgeline uses it; the attacks on it are under tests/attacks."""

from __future__ import annotations

import os
import select
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.tools.sandbox.commands import shell

from ridgeline.tools.errors import EngineError
from ridgeline.tools.sandbox.process import ExitStatus, Limit, parse_status
from ridgeline.tools.sandbox.python import python_paths
from ridgeline.tools.sandbox.rules import CONFINED_UID, dropped_uid
from ridgeline.tools.sandbox.sandbox import Confined, Limits, Sandbox, SandboxedProcess, Tier, claim_workdir

pytestmark = pytest.mark.long


@pytest.fixture
def sandbox(each_tier: Tier) -> Sandbox:
    return Sandbox(each_tier)


def test_a_program_ends_with_its_own_status_and_output(sandbox: Sandbox) -> None:
    ended, printed = sandbox.run(shell("echo out; echo err >&2; exit 7"))
    assert (ended.code, ended.is_success, printed) == (7, False, "out\nerr\n")


def test_a_crash_names_its_signal(sandbox: Sandbox) -> None:
    ended, _ = sandbox.run(shell("kill -SEGV $$"))
    assert ended.signal == signal.SIGSEGV
    assert "segmentation fault" in ended.message


def test_the_environment_is_the_given_one(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted")
    _, printed = sandbox.run(Confined(command=("/usr/bin/env",), env={"OMP_NUM_THREADS": "3"}))
    names = {line.partition("=")[0] for line in printed.splitlines()}
    assert names == {"PATH", "LANG", "USER", "LOGNAME", "HOME", "TMPDIR", "OMP_NUM_THREADS"}


def test_host_pid_is_the_program_itself(sandbox: Sandbox) -> None:
    with sandbox.start(Confined(command=("/bin/sleep", "30"))) as process:
        program = Path(f"/proc/{process.host_pid}")
        deadline = time.monotonic() + 30
        # it is reported just before the exec, and has no command line in the middle of one
        while program.joinpath("cmdline").read_bytes() != b"/bin/sleep\x0030\x00":
            assert time.monotonic() < deadline
            time.sleep(0.001)
        assert len(os.listdir(program / "task")) == 1


def test_a_stopped_program_stands_still_until_it_continues(sandbox: Sandbox) -> None:
    with sandbox.start(shell("while :; do echo tick; sleep 0.01; done"), stdout=subprocess.PIPE) as process:
        assert process.stdout and process.stdout.readline() == b"tick\n"
        process.stop()
        deadline = time.monotonic() + 30
        while Path(f"/proc/{process.host_pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
            assert time.monotonic() < deadline
            time.sleep(0.001)
        assert process.poll() is None
        process.cont()
        assert process.stdout.readline() == b"tick\n"


def test_a_stopped_program_can_be_killed(sandbox: Sandbox) -> None:
    with sandbox.start(Confined(command=("/bin/sleep", "1000"))) as process:
        process.stop()
        assert process.kill().limit == "stopped"


def test_a_sandbox_that_something_else_ends_is_told_from_one_that_is_told_to_end(sandbox: Sandbox) -> None:
    with sandbox.start(Confined(command=("/bin/sleep", "1000"))) as process:
        stat = Path(f"/proc/{process.host_pid}/stat").read_text()
        guard = os.pidfd_open(int(stat.rpartition(")")[2].split()[1]))  # the inner one of two, which reports last
        os.kill(process.supervisor_pid, signal.SIGKILL)
        assert select.select([guard], [], [], 30.0)[0]
        os.close(guard)
        ended = process.wait(30)
    assert (ended.was_killed, ended.limit, ended.message) == (True, Limit.NONE, "its supervisor was killed")


def test_a_program_outlives_the_thread_that_started_it(sandbox: Sandbox) -> None:
    # PR_SET_PDEATHSIG follows the parent's thread, not its process: an executor's idle thread would take its programs along.
    started: list[SandboxedProcess] = []
    thread = threading.Thread(target=lambda: started.append(sandbox.start(Confined(command=("/bin/sleep", "30")))))
    thread.start()
    thread.join()
    with started[0] as process, pytest.raises(TimeoutError):
        process.wait(0.3)


def test_waiting_too_long_is_a_timeout(sandbox: Sandbox) -> None:
    with sandbox.start(Confined(command=("/bin/sleep", "30"))) as process, pytest.raises(TimeoutError):
        process.wait(0.1)


def test_a_missing_program_is_an_error_of_ours(sandbox: Sandbox) -> None:
    with pytest.raises(EngineError, match="not found"):
        sandbox.run(Confined(command=("no-such-program",)))
    with pytest.raises(EngineError, match="/nowhere/program"):
        sandbox.run(Confined(command=("/nowhere/program",)))


def test_a_path_that_cannot_be_looked_at_leaves_no_descriptor_open(sandbox: Sandbox) -> None:
    before = os.listdir("/proc/self/fd")
    with pytest.raises(OSError, match="too long"):
        sandbox.start(Confined(command=("true",), readable=(Path("/tmp", "x" * 300),)))
    assert os.listdir("/proc/self/fd") == before


def test_a_message_longer_than_the_launchers_line_is_cut(sandbox: Sandbox) -> None:
    program = "/" + "long-name/" * 200
    with pytest.raises(EngineError) as caught:
        sandbox.start(Confined(command=(program,)))
    assert "\0" not in str(caught.value)
    assert program[:400] in str(caught.value)


def test_descriptors_keep_their_numbers_or_get_others(sandbox: Sandbox) -> None:
    first, second = os.memfd_create("first"), os.memfd_create("second")
    try:
        os.pwrite(first, b"1", 0)
        os.pwrite(second, b"2", 0)
        script = f"exec cat /proc/self/fd/{first} /proc/self/fd/{second}"
        with sandbox.start(shell(script), pass_fds=(first, second), stdout=subprocess.PIPE) as process:
            assert process.stdout and process.stdout.read() == b"12"
        # Crosswise: each takes the other's number.
        script = f"exec cat /proc/self/fd/{first} /proc/self/fd/{second}"
        swapped = {first: second, second: first}
        with sandbox.start(shell(script), pass_fds=swapped, stdout=subprocess.PIPE) as process:
            assert process.stdout and process.stdout.read() == b"21"
    finally:
        os.close(first)
        os.close(second)


def test_cores_are_pinned(sandbox: Sandbox) -> None:
    core = min(os.sched_getaffinity(0))
    _, printed = sandbox.run(shell("grep Cpus_allowed_list /proc/$$/status || nproc", cpus=(core,)))
    assert printed.split()[-1] in (str(core), "1")


def test_peak_memory_is_reported(sandbox: Sandbox) -> None:
    program = "x = bytearray(64 << 20)"
    ended, printed = sandbox.run(Confined(command=(sys.executable, "-c", program), readable=python_paths()))
    assert ended.is_success, printed
    assert 64 << 20 < ended.peak_memory_bytes < 512 << 20


def test_python_under_a_closed_home_runs(sandbox: Sandbox, tmp_path: Path) -> None:
    home = tmp_path / "closed"
    (home / "inner").mkdir(parents=True)
    (home / "inner" / "given").write_text("given")
    (home / "kept").write_text("kept")
    home.chmod(0o700)
    command = (sys.executable, "-c", f"print(open({str(home / 'inner' / 'given')!r}).read())")
    ended, printed = sandbox.run(Confined(command=command, readable=(*python_paths(), home / "inner")))
    assert ended.is_success and printed == "given\n", printed
    _, printed = sandbox.run(shell(f"cat {home}/kept", readable=(home / "inner",)))
    assert "kept" not in printed.replace(f"{home}/kept", "")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_root_is_dropped(sandbox: Sandbox) -> None:
    assert dropped_uid() == CONFINED_UID
    assert sandbox.run(shell("id -u; id -G"))[1].split()[0] == str(CONFINED_UID)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start an ordinary user's process")
def test_an_ordinary_user_is_confined_as_well(
    sandbox: Sandbox, open_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (open_path / "secret").write_text("not given")
    work = open_path / "work"
    work.mkdir()
    os.chown(work, 4321, 4321)
    monkeypatch.setattr("ridgeline.tools.sandbox.argv.dropped_uid", lambda: None)
    argv = sandbox.argv(shell(f"id -u; echo x > {work}/made; cat {open_path}/* 2>/dev/null", workdir=work))
    ended = subprocess.run(
        argv, user=4321, group=4321, extra_groups=[], capture_output=True, text=True, check=False, timeout=20
    )
    assert ended.stdout == "4321\n", ended.stderr
    assert (work / "made").read_text() == "x\n"


def test_a_command_line_returns_the_commands_status(sandbox: Sandbox) -> None:
    done = subprocess.run(sandbox.argv(shell("echo out; exit 3")), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (3, "out\n", "")


@pytest.mark.parametrize(
    ("script", "ending"),
    [
        ("exit 0", ExitStatus(code=0, message="exit status 0")),
        ("echo 'sandbox: killed: wall limit' >&2; exit 124", ExitStatus(code=124, message="exit status 124")),
        ("echo 'sandbox: cannot apply Landlock' >&2; exit 125", ExitStatus(code=125, message="exit status 125")),
        ("echo exit 0 - 0 0 >&3", ExitStatus(code=2, message="exit status 2")),
        ("kill -9 $$", ExitStatus(code=None, signal=9, message="killed by SIGKILL")),
        ("sleep 30", ExitStatus(code=None, limit=Limit.WALL, message="killed: it ran past its time limit")),
    ],
)
def test_a_command_line_reports_how_it_ended_where_the_command_cannot_write(
    sandbox: Sandbox, tmp_path: Path, script: str, ending: ExitStatus
) -> None:
    ended = reported(sandbox, shell(script, limits=Limits(wall_s=5.0)), tmp_path)
    assert replace(ended, peak_memory_bytes=0, cpu_s=0.0) == ending


def test_a_command_line_reports_a_command_that_cannot_be_executed(sandbox: Sandbox, tmp_path: Path) -> None:
    ended = reported(sandbox, Confined(command=("/no/such/program",)), tmp_path)
    assert not ended.was_started
    assert "/no/such/program" in ended.message


def reported(sandbox: Sandbox, confined: Confined, folder: Path) -> ExitStatus:
    """Return what a confined command line reports to descriptor 3."""
    line = f"{shlex.join(sandbox.argv(confined, report_fd=3))} 3> {folder}/status"
    done = subprocess.run(["sh", "-c", line], stderr=subprocess.DEVNULL, check=False)
    return parse_status((folder / "status").read_text().splitlines(), done.returncode)


def test_claimed_folders_belong_to_the_confined_user(sandbox: Sandbox, tmp_path: Path) -> None:
    work = tmp_path / "a" / "work"
    (work / "deep").mkdir(parents=True)
    (work / "deep" / "file").write_text("old")
    claim_workdir(work)
    ended, printed = sandbox.run(shell("echo new > deep/file; echo made > made", workdir=work))
    assert ended.is_success, printed
    assert (work / "deep" / "file").read_text() == "new\n"


def test_a_sanitizer_runs_without_the_address_space_cap(sandbox: Sandbox, tmp_path: Path) -> None:
    work = claim_workdir(tmp_path / "work")
    (work / "a.cpp").write_text("int main(int n, char**) { int a[2] = {}; return a[n - 1]; }\n")
    build = ("g++", "-fsanitize=address,undefined", "a.cpp", "-o", "a")
    ended, printed = sandbox.run(Confined(command=build, workdir=work, allow_processes=True))
    assert ended.is_success, printed
    (work / "a").chmod(0o755)
    run = Confined(
        command=(str(work / "a"),),
        readable=(work,),
        limits=Limits(cap_address_space=False),
        env={"ASAN_OPTIONS": "detect_leaks=0"},  # the leak checker needs ptrace
    )
    ended, printed = sandbox.run(run)
    assert ended.is_success, printed


@pytest.mark.timing
def test_a_start_costs_no_more_than_a_few_starts_of_python(sandbox: Sandbox) -> None:
    """5 to 15 ms, where Python alone takes 10 to 20; the best of five of each, taken in turns."""
    confined, plain = [], []
    for _ in range(5):
        confined.append(_seconds(lambda: sandbox.run(Confined(command=("/bin/true",)))))
        plain.append(_seconds(lambda: subprocess.run([sys.executable, "-I", "-c", ""], check=True)))
    assert min(confined) < 5 * min(plain)


def _seconds(work: Callable[[], object]) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began


@pytest.mark.any_tier
def test_tier_c_still_limits_and_ends_the_tree(tmp_path: Path) -> None:
    ended, printed = Sandbox(Tier.NONE).run(shell("echo inside", limits=Limits(wall_s=5)))
    assert ended.is_success and printed == "inside\n"


@pytest.mark.thorough
def test_torch_computes_on_all_threads(sandbox: Sandbox) -> None:
    program = (
        "import torch; torch.set_num_threads(2); print(torch.ones(512, 512).mm(torch.ones(512, 512)).sum().item())"
    )
    ended, printed = sandbox.run(Confined(command=(sys.executable, "-c", program), readable=python_paths()))
    assert ended.is_success and printed == "134217728.0\n", printed
