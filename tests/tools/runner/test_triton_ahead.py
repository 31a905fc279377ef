"""Triton's kernels: what they are kept for, and whose fault it is when they are not there.

The machine's until the GPU was open, then the module's.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ridgeline.tools.build.cache import BuildCache
from ridgeline.tools.errors import EngineError
from ridgeline.tools.records.problem import DescribedTarget
from ridgeline.tools.records.results import Build
from ridgeline.tools.records.search import Candidate
from ridgeline.tools.records.vocabulary import ReasonCode, Status
from ridgeline.tools.runner.failures import RunnerFailure
from ridgeline.tools.runner.triton_ahead import _failure, _run, kernels_ahead
from ridgeline.tools.runner.triton_wire import GPU_OPEN, PROGRESS
from ridgeline.tools.sandbox.process import ExitStatus, Limit
from ridgeline.tools.sandbox.python import package_paths
from ridgeline.tools.sandbox.sandbox import Confined, Sandbox

pytestmark = pytest.mark.sandboxed


@pytest.mark.parametrize(
    ("limit", "code"),
    [(Limit.NONE, ReasonCode.CRASHED), (Limit.WALL, ReasonCode.LOAD_TIMEOUT), (Limit.MEMORY, ReasonCode.OUT_OF_MEMORY)],
)
def test_what_ends_after_the_gpu_was_open_is_the_modules(limit: Limit, code: ReasonCode) -> None:
    said = "one\ntwo\nthree\nfour\ncandidate.py:3: ValueError: no\n"
    failure = _failure(ExitStatus(code=1, limit=limit), said, was_open=True)
    assert isinstance(failure, RunnerFailure)
    assert failure.finding.code is code
    assert failure.finding.reason.endswith("two | three | four | candidate.py:3: ValueError: no")


def test_what_ends_before_is_the_machines() -> None:
    failure = _failure(ExitStatus(code=1), "RuntimeError: No CUDA GPUs are available\n", was_open=False)
    assert isinstance(failure, EngineError)
    assert "No CUDA GPUs are available" in str(failure)
    killed = ExitStatus(code=None, message="killed: it used more memory")
    assert "used more memory" in str(_failure(killed, "", was_open=False))


@pytest.mark.parametrize(
    ("program", "was_open"),
    [
        (f"import os; os.write({PROGRESS}, {GPU_OPEN!r}); print('bye'); raise SystemExit(1)", True),
        (f"print({GPU_OPEN.decode()!r} + 'bye'); raise SystemExit(1)", False),  # as a candidate may print
        (f"import os; os.close({PROGRESS}); print('bye'); raise SystemExit(1)", False),
    ],
)
def test_only_the_descriptor_tells_that_the_gpu_was_open(program: str, was_open: bool, sandbox: Sandbox) -> None:
    command = (sys.executable, "-c", program)
    ended, said, told = _run(sandbox, Confined(command=command, readable=package_paths()))
    assert (ended.code, said.split()[-1], told) == (1, "bye", was_open)


def test_a_module_that_ends_before_anything_is_compiled_is_a_fault_of_the_module(
    monkeypatch: pytest.MonkeyPatch,
    module_on_gpu: DescribedTarget,
    make_candidate: Callable[..., Candidate],
    sandbox: Sandbox,
    tmp_path: Path,
) -> None:
    (tmp_path / "bundle").write_bytes(b"")
    monkeypatch.setattr("ridgeline.tools.runner.triton_ahead._confined", lambda *_: Confined(command=("true",)))
    monkeypatch.setattr("ridgeline.tools.runner.triton_ahead._run", lambda *_: (ExitStatus(code=0), "", True))
    build = Build(key="ab" * 32, status=Status.OK, library_path=str(tmp_path / "bundle"))
    candidate = make_candidate("import triton", language="py", interface="module")
    with pytest.raises(RunnerFailure, match="what it left is not taken: there is none") as caught:
        kernels_ahead(module_on_gpu, candidate, build, sandbox=sandbox, cache_dir=tmp_path)
    assert caught.value.finding.code is ReasonCode.LOAD_FAILED


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Give the keys that were compiled for: there is no GPU here, so the compiler is left out."""
    keys: list[str] = []

    def publish(made: Any, cache: BuildCache, sandbox: Sandbox) -> Build:
        keys.append(made.key)
        kernels = cache.root / "tmp" / "triton.zip"
        kernels.write_bytes(b"kernels")
        return cache.publish(Build(key=made.key, status=Status.OK), kernels)

    monkeypatch.setattr("ridgeline.tools.runner.triton_ahead._compiled", publish)
    return keys


def test_kernels_are_compiled_again_by_another_version_of_triton(
    compiled: list[str],
    monkeypatch: pytest.MonkeyPatch,
    module_on_gpu: DescribedTarget,
    make_candidate: Callable[..., Candidate],
    sandbox: Sandbox,
    tmp_path: Path,
) -> None:
    candidate = make_candidate("import triton", language="py", interface="module")
    build = Build(key="ab" * 32, status=Status.OK)
    for version in ("3.6.0", "3.6.0", "3.7.0"):
        monkeypatch.setattr("importlib.metadata.version", {"triton": version}.__getitem__)
        assert kernels_ahead(module_on_gpu, candidate, build, sandbox=sandbox, cache_dir=tmp_path) is not None
    assert len(compiled) == len(set(compiled)) == 2
