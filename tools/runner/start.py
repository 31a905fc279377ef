"""A runner's process before it is told of a candidate: started, and where it is Python, its imports done ahead.

A Python runner takes 2 to 6 s to import torch, and may do so while another candidate is looked at. So nothing about the
process depends on its candidate: the process has an empty folder of its own, into which a build is copied later.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from ridgeline.tools.errors import EngineError
from ridgeline.tools.judge.process import LoadedProblem
from ridgeline.tools.judge.replies import Place
from ridgeline.tools.machine.held_folders import HeldFolder, hold_folder
from ridgeline.tools.records.problem import ArgSpec, Signature
from ridgeline.tools.records.vocabulary import ArgKind
from ridgeline.tools.runner.wire import (
    FIRST_REGION,
    SOCKET,
    TICKETS,
    AnswerWord,
    PointerLine,
    PythonSetup,
    RegionLine,
    ScalarLine,
    Setup,
)
from ridgeline.tools.sandbox.sandbox import Confined, Sandbox, SandboxedProcess, claim_workdir

_IMPORTED = f"{AnswerWord.IMPORTED}\n".encode()
_LOAD_TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonPlan:
    """Needs of a Python runner beyond those of a native host."""

    starts_in: Path  # the folder in which the runner gets one of its own
    files: tuple[tuple[Path, str], ...]  # what is copied into that folder, and under which name
    setup: PythonSetup


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerPlan:
    """Plan for the start of one candidate's runner."""

    confined: Confined
    library: Path  # relative where the runner has a folder of its own
    workspace_bytes: int  # the most that a candidate may ask for
    call_timeout_s: float
    load_timeout_s: float = _LOAD_TIMEOUT_S
    uses_gpu: bool = False  # the candidate's work is done there: see RunnerProcess
    python: PythonPlan | None = None  # None: a native host

    @property
    def own_files(self) -> frozenset[str]:
        """Return the paths of the program and of the candidate's library, as given and without links."""
        files = (self.confined.command[0], str(self.library))
        return frozenset((*map(os.path.abspath, files), *map(os.path.realpath, files)))


class RunnerStart:
    """One started runner, which knows no candidate yet. Ends with `close()`."""

    def __init__(self, sandbox: Sandbox, plan: RunnerPlan, problem: LoadedProblem) -> None:
        """Start it.

        Raises:
            EngineError: the sandbox could not be set up.
        """
        self._plan = plan
        self._problem = problem
        self.is_imported = False  # and stopped since
        self.folder: Path | None = None
        self._held: HeldFolder | None = None
        self.stderr: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  closed with the process
        self.socket, theirs = socket.socketpair()
        drawn, self.tickets = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        os.set_blocking(drawn, True)
        os.fchmod(drawn, 0)  # a program of this user could open it once more, to read or to write as it likes
        try:
            with theirs, open(drawn, "rb", buffering=0):
                self.process = self._started(sandbox, {SOCKET: theirs.fileno(), TICKETS: drawn})
        except BaseException:
            self._release()
            raise

    def _started(self, sandbox: Sandbox, ends: Mapping[int, int]) -> SandboxedProcess:
        confined = replace(self._plan.confined, word_pipe=TICKETS)
        if self._plan.python is not None:
            starts_in = self._plan.python.starts_in
            starts_in.mkdir(parents=True, exist_ok=True)
            self._held = hold_folder(starts_in, "runner")
            self.folder = claim_workdir(self._held.path)
            confined = replace(confined, workdir=self.folder)
        descriptors = {**ends, **{FIRST_REGION + i: r.fd for i, r in enumerate(self._problem.regions)}}
        return sandbox.start(confined, pass_fds=descriptors, stdout=subprocess.DEVNULL, stderr=self.stderr)

    def fits(self, plan: RunnerPlan, problem: LoadedProblem) -> bool:
        """Return whether a runner of this plan would be started in the same way, and this one still lives."""
        is_alike = problem is self._problem and plan.confined == self._plan.confined
        return is_alike and self.process.poll() is None

    def setup(self, plan: RunnerPlan) -> Setup:
        """Return everything that this runner is told of its candidate."""
        problem = self._problem
        regions = (
            RegionLine(descriptor=FIRST_REGION + i, size_bytes=region.size_bytes, writable=region.writable)
            for i, region in enumerate(problem.regions)
        )
        places = {place.spec.name: place for place in problem.places}
        python = replace(plan.python.setup, shared_outputs=problem.shared_outputs) if plan.python else None
        return Setup(
            library=str(plan.library if self.folder is None else self.folder / plan.library),
            python=python,
            n_sets=problem.n_sets,
            regions=tuple(regions),
            arguments=argument_lines(problem.description.signature, places),
            workspace_bytes=plan.workspace_bytes,
        )

    def bring(self, plan: RunnerPlan) -> None:
        """Copy what was built into the runner's own folder.

        Raises:
            EngineError: the folder or the build is gone.
        """
        if self.folder is None or plan.python is None:
            return
        try:
            for source, name in plan.python.files:
                shutil.copyfile(source, self.folder / name)
                (self.folder / name).chmod(0o755)
        except OSError as error:
            raise EngineError(f"a build cannot be brought to its runner: {error}") from error

    def park(self) -> None:
        """Wait until the imports are done and stop the process: a stopped process takes no core from a measurement.

        Raises:
            EngineError: it ended, or did not get there in time.
        """
        if self.is_imported:
            return
        self.socket.settimeout(self._plan.load_timeout_s)
        said = b""
        with contextlib.suppress(TimeoutError, ConnectionResetError):
            while len(said) < len(_IMPORTED) and (data := self.socket.recv(len(_IMPORTED) - len(said))):
                said += data
        if said != _IMPORTED:
            raise EngineError(f"a runner could not be started ahead: it said {said!r}")
        self.process.stop()
        self.is_imported = True

    def close(self) -> None:
        """End the process with everything that it started, and remove its folder."""
        self.process.close()
        self._release()

    def _release(self) -> None:
        self.socket.close()
        os.close(self.tickets)
        self.stderr.close()
        if self._held is not None:
            self._held.remove()


def argument_lines(signature: Signature, places: Mapping[str, Place]) -> tuple[PointerLine | ScalarLine, ...]:
    """Return the set-up lines of a signature's arguments; an argument that is None has no line."""
    return tuple(_argument_line(arg, places) for arg in signature.args if arg.kind is not ArgKind.NONE)


def _argument_line(arg: ArgSpec, places: Mapping[str, Place]) -> PointerLine | ScalarLine:
    if arg.kind is ArgKind.SCALAR:
        if arg.value is None:
            raise EngineError(f"scalar argument {arg.name!r} has no value")
        return ScalarLine(dtype=arg.dtype, value=arg.value)
    place = places[arg.name]
    return PointerLine(
        role=place.spec.role,
        region=place.region,
        offset=place.offset,
        set_stride=place.set_stride,
        dtype=place.spec.dtype,
        shape=place.spec.shape,
        strides=place.spec.strides,
    )
