"""Nothing outside is touched: no connection, no file, no other process, no part of the kernel."""

from __future__ import annotations

import fcntl
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.tools.sandbox.talking import was_hit

from ridgeline.tools.sandbox.argv import _COUNTERS_WITHOUT_DEVICES
from ridgeline.tools.sandbox.python import python_paths
from ridgeline.tools.sandbox.rules import dropped_uid
from ridgeline.tools.sandbox.sandbox import Confined, Sandbox, Tier, claim_workdir

from .conftest import SECRET

pytestmark = pytest.mark.timeout(60)
F_SEAL_FUTURE_WRITE = 0x10  # linux/fcntl.h; Python has no name for it
Confine = Callable[..., Confined]


# A GPU's driver needs a socket to listen on and more of /proc; any device node makes the sandbox allow for it.
with_and_without_devices = pytest.mark.parametrize("devices", [(), ("/dev/null",)], ids=["plain", "devices"])


@with_and_without_devices
@pytest.mark.parametrize("kind", ["tcp", "udp"])
def test_no_connection_to_this_machine(sandbox: Sandbox, confine: Confine, kind: str, devices: tuple[str, ...]) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM if kind == "tcp" else socket.SOCK_DGRAM) as listener:
        listener.bind(("127.0.0.1", 0))
        if kind == "tcp":
            listener.listen()
        sandbox.run(replace(confine("network", kind, listener.getsockname()[1]), devices=devices))
        assert not was_hit(listener)
        with socket.socket(socket.AF_INET, listener.type) as outside:  # the control: the listener does hear
            outside.connect(listener.getsockname())
            outside.send(b"hit")
            assert was_hit(listener)


@with_and_without_devices
@pytest.mark.parametrize("kind", ["path", "abstract"])
@pytest.mark.parametrize(
    "type_", [socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET], ids=["stream", "datagram", "packet"]
)
def test_no_unix_socket_is_reached(
    sandbox: Sandbox,
    confine: Confine,
    workdir: Path,
    kind: str,
    type_: socket.SocketKind,
    devices: tuple[str, ...],
) -> None:
    name = str(workdir / "s") if kind == "path" else f"ridgeline-{os.getpid()}-{type_}"
    with socket.socket(socket.AF_UNIX, type_) as listener:
        listener.bind(name if kind == "path" else f"\0{name}")
        if kind == "path":
            Path(name).chmod(0o777)
        if type_ != socket.SOCK_DGRAM:
            listener.listen()
        sandbox.run(replace(confine("network", kind, name), devices=devices))
        assert not was_hit(listener)
        with socket.socket(socket.AF_UNIX, type_) as outside:  # the control: the listener does hear
            outside.connect(listener.getsockname())
            if type_ == socket.SOCK_DGRAM:
                outside.send(b"hit")
            assert was_hit(listener)


def test_io_uring_is_refused(sandbox: Sandbox, confine: Confine) -> None:
    assert "io_uring_setup Operation not permitted" in sandbox.run(confine("network", "uring", "-"))[1]


def test_a_passed_socket_carries_both_ways(sandbox: Sandbox) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        command = ("/bin/sh", "-c", "read word <&3; echo got $word >&3")
        with sandbox.start(Confined(command=command, allow_processes=True), pass_fds={3: theirs.fileno()}) as process:
            theirs.close()
            ours.sendall(b"hello\n")
            assert ours.recv(64) == b"got hello\n"
            assert ours.recv(64) == b""  # nobody but the program held it
            assert process.wait(30).is_success


@with_and_without_devices
def test_nothing_is_written_outside_the_workdir(
    sandbox: Sandbox, confine: Confine, workdir: Path, open_path: Path, devices: tuple[str, ...]
) -> None:
    outside = claim_workdir(open_path / "outside")  # its own user's: only the sandbox protects it
    (outside / "mine").write_text(SECRET)
    claim_workdir(outside)
    mode = (outside / "mine").stat().st_mode
    sandbox.run(replace(confine("escape", outside, workdir), devices=devices))
    assert [path.name for path in outside.iterdir()] == ["mine"]
    assert (outside / "mine").read_text() == SECRET
    assert (outside / "mine").stat().st_mode == mode
    assert not (open_path / "planted").exists()
    # The control: the working folder itself can be written to.
    ended, printed = sandbox.run(confine("honest", workdir))
    assert ended.is_success and "threads 4" in printed, printed
    assert (workdir / "product").read_text() == "owned"


def test_nothing_is_left_for_the_next_program(sandbox: Sandbox) -> None:
    """Two lives of one candidate must not tell each other anything."""
    folders = ("/tmp", "/dev/shm", "/var/tmp", "/run", "/dev/mqueue", ".")
    leave = "; ".join(f"echo {SECRET} > {folder}/left && cat {folder}/left" for folder in folders)
    find = "; ".join(f"cat {folder}/left" for folder in folders)
    shell = Confined(command=("/bin/sh", "-c", leave), allow_processes=True)
    _, wrote = sandbox.run(shell)
    _, found = sandbox.run(replace(shell, command=("/bin/sh", "-c", find)))
    assert SECRET not in found
    assert not [folder for folder in folders if Path(folder, "left").exists()]
    if sandbox.tier is Tier.BUBBLEWRAP:  # the control: it could be written and read, by that one program
        assert SECRET in wrote


def test_what_the_whole_machine_does_is_not_shown(sandbox: Sandbox) -> None:
    """Who else works would tell a candidate when the judge changes contents."""
    counters = [f"/proc/{name}" for name in (*_COUNTERS_WITHOUT_DEVICES, "pressure/cpu")]
    counters += map(str, Path("/sys/devices/system/cpu").glob("cpu*/cpuidle/state*/usage"))
    counters += map(str, Path("/sys/devices/system/node").glob("node*/*stat"))
    layout = ["/proc/cpuinfo", "/sys/devices/system/cpu/online", "/sys/devices/system/cpu/cpu0/topology/core_id"]
    script = "; ".join(f"echo {name} $(cat {name} | wc -c)" for name in (*counters, *layout))
    _, printed = sandbox.run(Confined(command=("/bin/sh", "-c", script), allow_processes=True))
    shown = [line.split()[0] for line in printed.splitlines() if line.split()[-1].isdigit() and int(line.split()[-1])]
    assert shown == layout, printed


def test_which_cores_there_are_is_shown(sandbox: Sandbox) -> None:
    _, printed = sandbox.run(Confined(command=("/bin/ls", "/sys/devices/system/cpu")))
    assert "cpu0" in printed.split()


def test_no_other_process_is_touched(sandbox: Sandbox, confine: Confine) -> None:
    victim_program = (
        "import ctypes, sys; secret = ctypes.create_string_buffer(sys.stdin.readline().encode());"
        "print(ctypes.addressof(secret), flush=True); sys.stdin.readline(); print(secret.value.decode())"
    )
    with subprocess.Popen(
        [sys.executable, "-c", victim_program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as victim:
        assert victim.stdin and victim.stdout
        victim.stdin.write(SECRET + "\n")
        victim.stdin.flush()
        address = int(victim.stdout.readline())
        ended, printed = sandbox.run(confine("molest", victim.pid, address))
        assert ended.code == 0, ended  # its own supervisor survived too
        assert SECRET not in printed
        assert victim.poll() is None
        out, _ = victim.communicate("go\n", timeout=30)
        assert SECRET in out


@pytest.mark.skipif(dropped_uid() is None, reason="needs root, to start a victim as the confined user")
def test_a_process_of_the_same_user_is_not_touched(sandbox: Sandbox, confine: Confine) -> None:
    uid = dropped_uid()
    with subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE, user=uid, group=uid, extra_groups=[]) as victim:
        while state_of(victim.pid) != ("(cat)", "S"):  # a busy machine starts it late
            time.sleep(0.01)
        sandbox.run(confine("molest", victim.pid, 0))
        assert victim.poll() is None
        assert state_of(victim.pid) == ("(cat)", "S")  # neither stopped nor traced
        assert os.getpriority(os.PRIO_PROCESS, victim.pid) == os.getpriority(os.PRIO_PROCESS, 0)
        assert os.sched_getaffinity(victim.pid) == os.sched_getaffinity(0)
        assert os.sched_getscheduler(victim.pid) == os.SCHED_OTHER
        assert Path(f"/proc/{victim.pid}/limits").read_text() == Path("/proc/self/limits").read_text()
        victim.kill()


def state_of(pid: int) -> tuple[str, str]:
    """Return a process's name and state."""
    _, name, state, *_ = Path(f"/proc/{pid}/stat").read_text().split()
    return name, state


@pytest.mark.parametrize("processes", [False, True], ids=["runner", "builder"])
def test_the_guard_keeps_its_limits_cores_and_priority(sandbox: Sandbox, confine: Confine, processes: bool) -> None:
    """In tier A it belongs to the program's user, and is process 1 of the namespace."""
    calls = ("setpriority", "setpriority of the user", "sched_setaffinity", "sched_setscheduler", "prlimit")
    always = ("ioprio_set", "mbind", "set_mempolicy", "set_mempolicy_home_node")
    refused = (*calls, "move_pages", "migrate_pages", *always)
    _, printed = sandbox.run(confine("slow", "guard", processes=processes))
    assert printed.splitlines() == [f"{call} Operation not permitted" for call in refused]
    _, printed = sandbox.run(confine("slow", "itself", processes=processes))  # the control
    assert printed.count("Operation not permitted") == 1 + len(always), printed


def test_two_confined_programs_do_not_touch_each_other(sandbox: Sandbox, confine: Confine) -> None:
    with sandbox.start(confine("sleep")) as victim:
        sandbox.run(confine("molest", victim.host_pid, 0))
        assert victim.poll() is None


def test_calls_into_the_kernel_are_refused(sandbox: Sandbox, confine: Confine) -> None:
    _, printed = sandbox.run(confine("calls"))
    assert printed.count("\n") >= 16, printed
    assert "DONE" not in printed, printed


@with_and_without_devices
def test_a_pipe_of_words_is_neither_looked_at_nor_counted_nor_opened_again(
    sandbox: Sandbox, confine: Confine, devices: tuple[str, ...]
) -> None:
    """The pipe belongs to the program's user, as where Ridgeline is not run by root."""
    words = list(range(7, 12))
    drawn, written = os.pipe()
    if (uid := dropped_uid()) is not None:
        os.fchown(drawn, uid, uid)
    os.fchmod(drawn, 0)
    with os.fdopen(written, "wb") as writing:
        writing.write(b"".join(word.to_bytes(4, "little") for word in words))
    confined = replace(confine("peek"), devices=devices, word_pipe=4)
    with open(drawn, "rb"):
        _, printed = sandbox.run(confined, pass_fds={4: drawn})
    *refused, part = [line for line in printed.splitlines() if not line.startswith("word ")]
    others = [line for line in refused if not line.endswith(("Operation not permitted", "Permission denied"))]
    assert len(refused) >= 19 and others == []
    assert part == "part of a word Bad address"
    assert [line for line in printed.splitlines() if line.startswith("word ")] == [f"word {word}" for word in words]


def test_nobody_copies_between_pipes_and_builders_may_ask_how_much_lies_there(
    sandbox: Sandbox, confine: Confine
) -> None:
    _, printed = sandbox.run(confine("copy-pipes", processes=True))
    *refused, counted, count = printed.splitlines()
    assert refused == [f"{call} Operation not permitted" for call in ("tee", "splice", "vmsplice")]
    assert (counted, count) == ("FIONREAD DONE", "waiting 5")


def test_the_kernels_settings_cannot_be_written(sandbox: Sandbox) -> None:
    before = Path("/proc/sys/kernel/core_pattern").read_text()
    command = ("/bin/sh", "-c", "echo '|/tmp/evil' > /proc/sys/kernel/core_pattern; echo 0 > /proc/self/oom_score_adj")
    sandbox.run(Confined(command=command, allow_processes=True))
    assert Path("/proc/sys/kernel/core_pattern").read_text() == before


def test_given_memory_can_be_read_and_when_sealed_not_written(sandbox: Sandbox) -> None:
    fd = os.memfd_create("inputs", os.MFD_ALLOW_SEALING)
    with os.fdopen(fd, "wb") as region:
        region.write(b"numbers")
        region.flush()
        # A memfd can be opened again through /proc, for writing and for truncation: only seals keep it.
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, F_SEAL_FUTURE_WRITE | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
        reader = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY)
        try:
            command = ("/bin/sh", "-c", "cat <&4; echo changed >&4; echo changed > /proc/self/fd/4")
            with sandbox.start(
                Confined(command=command, allow_processes=True), pass_fds={4: reader}, stdout=subprocess.PIPE
            ) as process:
                assert process.stdout and process.stdout.read() == b"numbers"
                process.wait(30)
        finally:
            os.close(reader)
        assert os.pread(fd, 16, 0)[:7] == b"numbers"


def test_no_descriptor_but_the_given_ones_is_open(sandbox: Sandbox) -> None:
    """So that no result can be forged on one of ours."""
    program = "import os; print([fd for fd in range(4096) if os.path.lexists(f'/proc/self/fd/{fd}')])"
    ours, theirs = socket.socketpair()
    with ours, theirs:
        confined = Confined(command=(sys.executable, "-I", "-c", program), readable=python_paths())
        with sandbox.start(confined, pass_fds={3: theirs.fileno()}, stdout=subprocess.PIPE) as process:
            assert process.stdout and process.stdout.read() == b"[0, 1, 2, 3]\n"


def test_tier_a_shows_only_its_own_processes(sandbox: Sandbox) -> None:
    if sandbox.tier is not Tier.BUBBLEWRAP:
        pytest.skip("tier B shares the machine's process numbers")
    _, printed = sandbox.run(Confined(command=("/bin/sh", "-c", "echo /proc/[0-9]*"), allow_processes=True))
    assert printed.split() == ["/proc/1", "/proc/2"]
