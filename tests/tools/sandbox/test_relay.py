"""The guard that makes, names and connects a tier B command's sockets: what it needs, and what it keeps in."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.tools.sandbox.talking import REACH, SIGNAL, TALK, reached

from ridgeline.tools.sandbox import launcher
from ridgeline.tools.sandbox.rules import dropped_uid
from ridgeline.tools.sandbox.sandbox import Confined, Sandbox, Tier, claim_workdir, reason_against

pytestmark = pytest.mark.timeout(60)

PR_CAPBSET_DROP, CAP_SYS_PTRACE = 24, 19


def test_processes_of_a_command_read_their_own_folders_of_proc_and_no_others(
    talkative: Sandbox, python: Callable[..., Confined]
) -> None:
    if talkative.tier is not Tier.LANDLOCK:
        pytest.skip("tier A shows no other processes")
    program = """
import os, sys, threading
def can(path, mode="r"):
    try:
        open(path, mode).close()
        return True
    except OSError:
        return False
if os.fork() == 0:
    threads = os.listdir("/proc/self/task")
    own = [can("/proc/self/status"), can(f"/proc/{os.getpid()}/maps"), can(f"/proc/{os.getppid()}/status"),
           can(f"/proc/self/task/{threads[0]}/comm", "r+"), can("/proc/thread-self/comm", "r+")]
    other = [can(f"/proc/{sys.argv[1]}/{name}") for name in ("status", "cmdline", "environ")]
    other += [can("/proc/1/status"), can("/proc/self/oom_score_adj", "r+"), can("/proc/self/mem", "rb"),
              can("/proc/self/root/etc/shadow"), can(f"/proc/self/../{sys.argv[1]}/status"), can("/proc/self/cwd/../x")]
    print(own, other)
    sys.stdout.flush()
    os._exit(0)
os.wait()
"""
    confined = replace(python(program, os.getpid()), devices=("/dev/null",))
    ended, printed = talkative.run(confined)
    assert ended.is_success and printed == f"{[True] * 5} {[False] * 9}\n", printed


def test_a_command_ends_with_the_guard_that_answers_it(talkative: Sandbox, python: Callable[..., Confined]) -> None:
    if talkative.tier is not Tier.LANDLOCK:
        pytest.skip("tier A's guard answers nothing")
    program = "import socket, sys; print('ready', flush=True)\nwhile True: socket.socket(socket.AF_UNIX).close()"
    with talkative.start(python(program), stdout=subprocess.PIPE) as process:
        assert process.stdout and process.stdout.readline() == b"ready\n"
        stat = Path(f"/proc/{process.host_pid}/stat").read_text()
        os.kill(int(stat.rpartition(")")[2].split()[1]), signal.SIGKILL)
        assert process.wait(30).was_killed
        assert not Path(f"/proc/{process.host_pid}").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give up a capability, or become an ordinary user")
@pytest.mark.parametrize("who", ["root without CAP_SYS_PTRACE", "an ordinary user"])
def test_the_guard_needs_no_capability(
    talkative: Sandbox, open_path: Path, who: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = None
    work = claim_workdir(open_path / "work")
    if who == "an ordinary user":
        user = 4321
        os.chown(work, user, user)
        monkeypatch.setattr("ridgeline.tools.sandbox.argv.dropped_uid", lambda: None)
    libc = ctypes.CDLL(None)
    talk = (str(talkative.launcher), "talk")
    confined = Confined(
        command=talk, workdir=work, readable=(talkative.launcher,), allow_processes=True, own_network=True
    )
    done = subprocess.run(
        talkative.argv(confined),
        user=user,
        group=user,
        extra_groups=None if user is None else [],
        preexec_fn=lambda: libc.prctl(PR_CAPBSET_DROP, CAP_SYS_PTRACE, 0, 0, 0),
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert (done.returncode, done.stdout) == (0, "talked\n"), done.stderr


@pytest.fixture
def on_linux_5_14(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sandbox:
    """Tier B with nothing of Landlock but its first version: no rule for TCP, abstract names or signals."""
    if reason := reason_against(Tier.LANDLOCK):
        pytest.skip(f"tier B: {reason}")
    monkeypatch.setattr(launcher, "_FLAGS", (*launcher._FLAGS, "-DCONFINE_NEWEST_LANDLOCK=1"))
    return Sandbox(Tier.LANDLOCK, launcher=launcher.build_launcher(opened(tmp_path)))


def opened(folder: Path) -> Path:
    """Let the confined user reach what lies in a folder of pytest's."""
    for path in (folder, *folder.parents[:2]):
        path.chmod(0o755)
    return folder


@pytest.mark.thorough
@pytest.mark.any_tier
def test_the_guard_alone_keeps_an_old_kernel_s_sockets_and_signals_in(
    on_linux_5_14: Sandbox, python: Callable[..., Confined]
) -> None:
    assert on_linux_5_14.reason_against_own_network() == ""
    for name in ("path:socket", "abstract:name", "tcp:127.0.0.1"):
        ended, printed = on_linux_5_14.run(python(TALK, name))
        assert ended.is_success and printed == "talked\n", printed
    with socket.create_server(("127.0.0.1", 0)) as listener:
        assert not reached(on_linux_5_14, python(REACH, f"tcp:{listener.getsockname()[1]}"), listener)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("")
        listener.listen()
        assert not reached(on_linux_5_14, python(REACH, f"abstract:{listener.getsockname()[1:].decode()}"), listener)
    uid = dropped_uid()
    with subprocess.Popen(["/bin/sleep", "60"], user=uid, group=uid) as victim:
        ended, printed = on_linux_5_14.run(python(SIGNAL, victim.pid))
        assert ended.is_success and printed == "signalled\n", printed
        assert victim.poll() is None
        victim.kill()


class Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_char_p))


def supervise() -> None:
    """Let this process have a supervisor of system calls already: the kernel allows one."""
    libc = ctypes.CDLL(None, use_errno=True)
    allow = Program(1, (6).to_bytes(2, "little") + bytes(2) + 0x7FFF0000.to_bytes(4, "little"))
    libc.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
    listener = libc.syscall(317 if os.uname().machine == "x86_64" else 277, 1, 8, ctypes.byref(allow))
    os.set_inheritable(listener, True)  # an OSError where there is none


@pytest.mark.any_tier
def test_where_the_kernel_hands_no_calls_over_nothing_is_started(python: Callable[..., Confined]) -> None:
    if reason := reason_against(Tier.LANDLOCK):
        pytest.skip(f"tier B: {reason}")
    argv = Sandbox(Tier.LANDLOCK).argv(python(TALK, "tcp:127.0.0.1"))
    done = subprocess.run(
        argv, preexec_fn=supervise, close_fds=False, capture_output=True, text=True, check=False, timeout=30
    )
    assert (done.returncode, done.stdout) == (125, "")
    assert "sandbox: 125 cannot apply seccomp" in done.stderr


def test_without_sockets_of_its_own_the_reason_is_told(each_tier: Tier, tmp_path: Path) -> None:
    broken = tmp_path / "launcher"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    reason = Sandbox(each_tier, launcher=broken).reason_against_own_network()
    assert reason.startswith(f"needs sockets of its own, which sandbox tier {each_tier} cannot give it here (")
    assert "bubblewrap" in reason


def test_without_a_sandbox_no_tool_may_watch(talkative: Sandbox) -> None:
    assert Sandbox(Tier.NONE, launcher=talkative.launcher).reason_against_own_network() == "needs a sandbox"
