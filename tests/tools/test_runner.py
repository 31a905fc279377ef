"""The torch runner in its sandbox: one extension whose behaviour a scalar argument chooses, one process for each."""

from __future__ import annotations

import asyncio
import fcntl
import mmap
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import ridgeline
from ridgeline.tools.compiler import Compiler
from ridgeline.tools.engine import CompileTask, ProblemOnDevice
from ridgeline.tools.records import (
    ArgKind,
    ArgSpec,
    Candidate,
    Description,
    Device,
    DeviceKind,
    Interface,
    Origin,
    Role,
    Signature,
    Status,
)
from ridgeline.tools.sandbox import Confined, Limits, Sandbox, SandboxedProcess, python_paths

ROWS, COLS, SETS = 4, 8, 3
X_BYTES, W_BYTES = ROWS * COLS * 4, COLS * 4
PAGE = 4096
SOURCE = """
#include <torch/extension.h>

torch::Tensor forward(torch::Tensor x, int64_t mode, torch::Tensor weight) {
  static torch::Tensor buffer = torch::empty_like(x);
  auto right = x * weight + 1;
  switch (mode) {
    case 1: x.add_(1); return right;
    case 2: return x;
    case 3: buffer.copy_(right); return buffer;
    case 4: return right.to(torch::kDouble);
    case 5: TORCH_CHECK(false, "on purpose");
    case 6: at::globalContext().setDeterministicAlgorithms(true, false); return right;
    case 7: return x + 1;
    case 8: return right.t().contiguous().t();
    case 9: *reinterpret_cast<volatile int*>(8) = 1;
  }
  return right;
}
"""


def arguments() -> Signature:
    x = ArgSpec(name="x", role=Role.INPUT, shape=(ROWS, COLS), strides=(COLS, 1))
    mode = ArgSpec(name="mode", role=Role.INPUT, kind=ArgKind.SCALAR, dtype="int64", value=0)
    weight = ArgSpec(name="weight", role=Role.PARAMETER, shape=(COLS,), strides=(1,), source="weight")
    return Signature(args=(x, mode, weight, replace(x, name="out", role=Role.OUTPUT)))


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory, sandbox: Sandbox) -> Path:
    """Build the extension once: 25 s of stock torch headers."""
    device = Device(kind=DeviceKind.CPU, name="t", arch="t", uuid="cpu", cores=2, memory_bytes=1 << 30, cache_bytes=1)
    description = Description(
        signature=arguments(), reference_graph=None, compulsory_bytes=0, flops=0, reference_sha256="", torch_version="2"
    )
    problem = ProblemOnDevice(
        name="t", reference_source="", interface="torch", tolerance="fp32", device=device, description=description
    )
    candidate = Candidate(
        id="seed-t",
        origin=Origin.SEED,
        round=0,
        idea_id=None,
        parent_id=None,
        source=SOURCE,
        language="cpp",
        interface=Interface.TORCH,
    )
    compiler = Compiler(sandbox, tmp_path_factory.mktemp("cache"), device)
    with asyncio.Runner() as runner:
        (build,) = runner.run(compiler.compile_batch([CompileTask(problem=problem, candidate=candidate)]))
    assert build.status is Status.OK, build.log
    assert build.library_path is not None
    return Path(build.library_path)


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

    def __init__(self, sandbox: Sandbox, library: Path, mode: int) -> None:
        self.memory = Memory()
        self.wire, theirs = socket.socketpair()
        self.wire.settimeout(60)
        inside = {3: theirs.fileno()} | {4 + i: descriptor for i, descriptor in enumerate(self.memory.files)}
        self.process: SandboxedProcess = sandbox.start(confined(library), pass_fds=inside, stdout=subprocess.DEVNULL)
        theirs.close()
        sizes = [len(mapped) for mapped in self.memory.maps]
        self.say(
            f"setup 1\nlibrary {library}\nsets {SETS}\n"
            f"region 4 {sizes[0]} ro\nregion 5 {sizes[1]} ro\nregion 6 {sizes[2]} rw\n"
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

    def close(self) -> None:
        self.process.close()
        self.wire.close()
        self.memory.close()


def confined(library: Path) -> Confined:
    package = Path(str(ridgeline.__file__)).parent
    paths = [str(package.parent), *(path for path in sys.path if path and Path(path).is_dir())]
    return Confined(
        command=(sys.executable, "-P", "-m", "ridgeline.tools.runner"),
        readable=(*python_paths(), package.parent, (package / "tools").resolve(), library.parent),
        env={"PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "2"},
        limits=Limits(wall_s=120, memory_bytes=4 << 30),
    )


@pytest.fixture
def honest(sandbox: Sandbox, library: Path) -> Iterator[Parent]:
    parent = Parent(sandbox, library, 0)
    yield parent
    parent.close()


def test_an_honest_extension_runs_loops_and_hands_over_its_kept_outputs(honest: Parent) -> None:
    assert [honest.hear(), honest.hear()] == ["mapped", "ready 0 2"]
    for i in range(SETS):
        assert honest.ask(f"run n{i} {i}").startswith(f"done n{i} ")
        assert set(honest.memory.output(i)) == {2.0 * (i + 1) + 1}
    honest.memory.maps[2][:] = bytes(len(honest.memory.maps[2]))
    word, nonce, elapsed_ns = honest.ask("loop abc 1 7").split()
    assert (word, nonce) == ("done", "abc")
    assert int(elapsed_ns) > 0
    assert set(honest.memory.output(1)) == {0.0}  # nothing is copied while the clock runs
    for i in (0, 1):
        assert honest.ask(f"collect c{i} {i}") == f"done c{i} 0"
        assert set(honest.memory.output(i)) == {2.0 * (i + 1) + 1}
    honest.say("quit\n")
    assert honest.process.wait(20).is_success


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
        (8, "shape_mismatch", "strides (1, 4)"),
        (9, "crashed", "11 write - 0x8"),
    ],
)
def test_what_only_the_process_sees_is_reported(
    sandbox: Sandbox, library: Path, mode: int, code: str, words: str
) -> None:
    parent = Parent(sandbox, library, mode)
    try:
        assert [parent.hear(), parent.hear()] == ["mapped", "ready 0 2"]
        answer = parent.ask("run a 0")
        if answer.startswith("done"):
            answer = parent.ask("run b 1")
        assert answer.startswith(f"failed {code} ")
        assert words in answer
    finally:
        parent.close()
