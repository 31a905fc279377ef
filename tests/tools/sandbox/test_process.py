"""Waiting for a confined program's end: at once when it ends, no longer than asked, and where the kernel has no descriptors."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from typing import NoReturn

import pytest
from tests.live_processes import open_files

from ridgeline.tools.sandbox.process import wait_for

ENDLESS = [sys.executable, "-c", "import time; time.sleep(60)"]
SHORT = [sys.executable, "-c", "import sys, time; time.sleep(0.05); sys.exit(3)"]


def no_descriptor(_pid: int) -> NoReturn:
    raise OSError("no such call")


@pytest.fixture(params=["descriptor", "no descriptor"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "no descriptor":
        monkeypatch.setattr(os, "pidfd_open", no_descriptor)


@pytest.mark.usefixtures("way")
def test_the_status_is_there_when_it_has_ended() -> None:
    with subprocess.Popen(SHORT) as process:
        wait_for(process, 30.0)
        assert process.returncode == 3
        wait_for(process, 30.0)  # once more, of one that is gone


@pytest.mark.usefixtures("way")
def test_one_that_still_runs_is_told_and_left_alone() -> None:
    with subprocess.Popen(ENDLESS) as process:
        with pytest.raises(subprocess.TimeoutExpired):
            wait_for(process, 0.05)
        assert process.poll() is None
        process.kill()


def test_without_a_limit_it_waits_for_the_end() -> None:
    with subprocess.Popen(SHORT) as process:
        wait_for(process, None)
        assert process.returncode == 3


def test_no_descriptor_stays_open() -> None:
    before = open_files()
    for _ in range(3):
        with subprocess.Popen(SHORT) as process:
            wait_for(process, 30.0)
    assert open_files() <= before


@pytest.mark.parametrize(("limit_s", "is_over"), [(-1.0, True), (0.0, True), (math.inf, False), (1e9, False)])
def test_limits_without_sense_are_none_and_no_more(limit_s: float, *, is_over: bool) -> None:
    with subprocess.Popen(ENDLESS if is_over else SHORT) as process:
        if is_over:
            with pytest.raises(subprocess.TimeoutExpired):
                wait_for(process, limit_s)
            process.kill()
        else:
            wait_for(process, limit_s)
            assert process.returncode == 3
