"""The torch runner in its sandbox: one extension whose behaviour a scalar argument chooses, one process for each."""

from __future__ import annotations

import fcntl
import mmap
import os
import socket
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ridgeline.tools.machine.python_env import python_command, python_path
from ridgeline.tools.records.tickets import encode_tickets
from ridgeline.tools.runner.native_host import fault_watcher
from ridgeline.tools.sandbox.python import package_paths
from ridgeline.tools.sandbox.sandbox import Confined, Limits, Sandbox, SandboxedProcess

pytestmark = [pytest.mark.thorough, pytest.mark.long, pytest.mark.sandboxed]  # PyTorch's headers: half a minute

ROWS, COLS, SETS = 4, 8, 3
X_BYTES, W_BYTES = ROWS * COLS * 4, COLS * 4
PAGE = 4096


@pytest.fixture(scope="module")
def library(torch_extension: Path) -> Path:
    return torch_extension


class Memory:
    """Three regions as the judge makes them: inputs and parameters sealed, outputs writable."""

    def __init__(self) -> None:
        self.files = [self._make(PAGE * SETS), self._make(PAGE), self._make(PAGE * SETS)]
        self.maps = [mmap.mmap(descriptor, 0) for descriptor in self.files]
        for descriptor in self.files[:2]:
            fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, 0x10)  # F_SEAL_FUTURE_WRITE
        for i in range(SETS):
            self.maps[0][i * PAGE : i * PAGE + X_BYTES] = struct.pack(f"{ROWS * COLS}f", *[float(i + 1)] * ROWS * COLS)
        self.maps[1][:W_BYTES] = struct.pack(f"{COLS}f", *[2.0] * COLS)

    @staticmethod
    def _make(size_bytes: int) -> int:
        descriptor = os.memfd_create("t", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
        os.ftruncate(descriptor, size_bytes)
        return descriptor

    def output(self, set_index: int) -> tuple[float, ...]:
        start = set_index * PAGE
        return struct.unpack(f"{ROWS * COLS}f", self.maps[2][start : start + X_BYTES])

    def close(self) -> None:
        for mapped in self.maps:
            mapped.close()
        for descriptor in self.files:
            os.close(descriptor)


class Parent:
    """The parent's end of one runner."""

    def __init__(self, sandbox: Sandbox, library: Path, mode: int, *, told: str = "") -> None:
        self.memory = Memory()
        self.wire, theirs = socket.socketpair()
        self.wire.settimeout(60)
        drawn, self.tickets = os.pipe()
        inside = {3: theirs.fileno(), 4: drawn} | {5 + i: descriptor for i, descriptor in enumerate(self.memory.files)}
        watcher = fault_watcher(library.parents[3])
        self.process: SandboxedProcess = sandbox.start(
            confined(library, watcher), pass_fds=inside, stdout=subprocess.DEVNULL
        )
        theirs.close()
        os.close(drawn)
        sizes = [len(mapped) for mapped in self.memory.maps]
        self.say(
            f"setup 3\nlibrary {library}\ndevice cpu\nwatcher {watcher}\n{told}sets {SETS}\n"
            f"region 5 {sizes[0]} ro\nregion 6 {sizes[1]} ro\nregion 7 {sizes[2]} rw\n"
            f"pointer input 0 0 {PAGE} float32 2 {ROWS} {COLS} {COLS} 1\n"
            f"scalar int64 {float(mode)}\n"
            f"pointer parameter 1 0 0 float32 1 {COLS} 1\n"
            f"pointer output 2 0 {PAGE} float32 2 {ROWS} {COLS} {COLS} 1\n"
            "workspace 0\nend\n"
        )

    def say(self, text: str) -> None:
        self.wire.sendall(text.encode())

    def hear(self) -> str:
        line = b""
        while not line.endswith(b"\n"):
            data = self.wire.recv(1)
            assert data, f"the runner ended: {self.process.wait(10).message}"
            line += data
        return line.decode().strip()

    def ask(self, request: str) -> str:
        self.say(request + "\n")
        return self.hear()

    def left(self, notes: int, set_index: int) -> tuple[float, ...]:
        """Return the output that a set's last call left in the runner's own memory."""
        with open(f"/proc/{self.process.host_pid}/mem", "rb", buffering=0) as memory:
            (address,) = struct.unpack("Q", os.pread(memory.fileno(), 8, notes + 8 * set_index))
            return struct.unpack(f"{ROWS * COLS}f", os.pread(memory.fileno(), X_BYTES, address))

    def close(self) -> None:
        self.process.close()
        self.wire.close()
        os.close(self.tickets)
        self.memory.close()


def confined(library: Path, watcher: Path) -> Confined:
    return Confined(
        command=python_command("runner.worker"),
        readable=(*package_paths(), library.parent, watcher),
        env={"PYTHONPATH": python_path(), "OMP_NUM_THREADS": "2"},
        limits=Limits(wall_s=120, memory_bytes=4 << 30),
    )


@pytest.fixture
def honest(sandbox: Sandbox, library: Path) -> Iterator[Parent]:
    parent = Parent(sandbox, library, 0)
    yield parent
    parent.close()


def test_an_honest_extension_runs_loops_and_hands_over_its_kept_outputs(honest: Parent) -> None:
    assert honest.hear() == "imported"
    word, notes = honest.hear().split()
    assert (word, honest.hear()) == ("mapped", "ready 0 2")
    for i in range(SETS):
        assert honest.ask(f"run n{i} {i}").startswith(f"done n{i} ")
        assert set(honest.memory.output(i)) == {2.0 * (i + 1) + 1}
    honest.memory.maps[2][:] = bytes(len(honest.memory.maps[2]))
    os.write(honest.tickets, encode_tickets((1, 0)))
    word, nonce, elapsed_ns = honest.ask("loop abc").split()
    assert (word, nonce) == ("done", "abc")
    assert int(elapsed_ns) > 0
    assert set(honest.memory.output(1)) == {0.0}  # nothing is copied while the clock runs
    for i in (0, 1):
        assert set(honest.left(int(notes), i)) == {2.0 * (i + 1) + 1}
        assert honest.ask(f"collect c{i} {i}") == f"done c{i} 0"
        assert set(honest.memory.output(i)) == {2.0 * (i + 1) + 1}
    assert honest.ask("scalars s1 7.0") == "done s1 0"  # by which this library chooses x + 1
    assert honest.ask("run n9 1").startswith("done n9 ")
    assert set(honest.memory.output(1)) == {3.0}
    honest.say("quit\n")
    assert honest.process.wait(20).is_success


@pytest.mark.first_case
@pytest.mark.parametrize(
    ("mode", "code", "words"),
    [
        (1, "input_written", "11 write 0 0"),
        (2, "output_aliases_input", "view of an input"),
        (3, "stale_output", "an earlier call"),
        (4, "dtype_mismatch", "torch.float64"),
        (5, "crashed", "on purpose"),
        (6, "state_changed", "deterministic mode"),
        (7, "weights_ignored", "other weights"),
        (8, "shape_mismatch", "strides (1, 4): outputs are contiguous"),
        (9, "crashed", "11 write - 0x8"),
    ],
)
def test_what_only_the_process_sees_is_reported(
    sandbox: Sandbox, library: Path, mode: int, code: str, words: str
) -> None:
    parent = Parent(sandbox, library, mode)
    try:
        assert [parent.hear(), parent.hear().split()[0], parent.hear()] == ["imported", "mapped", "ready 0 2"]
        answer = parent.ask("run a 0")
        if answer.startswith("done"):
            answer = parent.ask("run b 1")
        assert answer.startswith(f"failed {code} ")
        assert words in answer
    finally:
        parent.close()


def test_a_result_that_no_weight_changes_is_right_where_the_reference_s_is_such(
    sandbox: Sandbox, library: Path
) -> None:
    parent = Parent(sandbox, library, 7, told="unseen_weights\n")
    try:
        assert [parent.hear(), parent.hear().split()[0], parent.hear()] == ["imported", "mapped", "ready 0 2"]
        assert parent.ask("run a 0").startswith("done a ")
    finally:
        parent.close()
