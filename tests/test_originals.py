"""An original is shared by all who ask for copies of the same, and ends with the run."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.originals import RUN, hold_originals
from tests.warm_python import WarmPython

TELLS = (
    "import os, pathlib; print(pathlib.Path(f'/proc/{os.getppid()}/stat').read_text().rpartition(')')[2].split()[1])"
)
"""Says the id of the original: the parent of the copy's keeper."""


def _original_of(module: str) -> int:
    return int(WarmPython(module).run(["-c", TELLS], env={}, cwd=Path("/")).stdout)


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_all_who_ask_for_the_same_share_one_which_ends_with_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(RUN, os.environ[RUN])  # so that it is set back
    end = hold_originals()
    shared, other = _original_of("decimal"), _original_of("fractions")
    assert _original_of("decimal") == shared != other
    os.kill(shared, 9)
    while _runs(shared):
        time.sleep(0.01)
    another = _original_of("decimal")  # the one that died is replaced
    assert another != shared
    end()
    until = time.monotonic() + 10
    while (left := [pid for pid in (another, other) if _runs(pid)]) and time.monotonic() < until:
        time.sleep(0.01)
    assert left == []
