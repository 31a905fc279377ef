"""Whose fault it is when Triton's kernels are not there: the machine's until the GPU was open, then the module's."""

from __future__ import annotations

import pytest

from ridgeline.tools.errors import EngineError
from ridgeline.tools.kernels_ahead import _failure
from ridgeline.tools.module_kernels import OPENED
from ridgeline.tools.records import ReasonCode
from ridgeline.tools.runner_process import RunnerFailure
from ridgeline.tools.sandbox import ExitStatus


@pytest.mark.parametrize(
    ("limit", "code"),
    [("", ReasonCode.CRASHED), ("wall", ReasonCode.LOAD_TIMEOUT), ("memory", ReasonCode.OUT_OF_MEMORY)],
)
def test_what_ends_after_the_gpu_was_open_is_the_modules(limit: str, code: ReasonCode) -> None:
    said = f"{OPENED}\none\ntwo\nthree\nfour\ncandidate.py:3: ValueError: no\n"
    failure = _failure(ExitStatus(code=1, limit=limit), said)
    assert isinstance(failure, RunnerFailure)
    assert failure.reason_code is code
    assert failure.reason.endswith("two | three | four | candidate.py:3: ValueError: no")


def test_what_ends_before_is_the_machines() -> None:
    failure = _failure(ExitStatus(code=1), "RuntimeError: No CUDA GPUs are available\n")
    assert isinstance(failure, EngineError)
    assert "No CUDA GPUs are available" in str(failure)
    assert "used more memory" in str(_failure(ExitStatus(code=None, message="killed: it used more memory"), ""))
