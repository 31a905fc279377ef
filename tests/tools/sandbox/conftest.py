"""Commands with sockets of their own, in each tier that works here."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ridgeline.tools.sandbox.python import python_paths
from ridgeline.tools.sandbox.sandbox import Confined, Limits, Sandbox, Tier, claim_workdir


@pytest.fixture(scope="module")
def talkative(each_tier: Tier) -> Sandbox:
    made = Sandbox(each_tier)
    assert made.reason_against_own_network() == ""
    return made


@pytest.fixture
def workdir(tmp_path: Path) -> Path:
    return claim_workdir(tmp_path / "work")


@pytest.fixture
def python(workdir: Path) -> Callable[..., Confined]:
    """`python(program, ...)`: the program with sockets of its own."""

    def confined(program: str, *arguments: object) -> Confined:
        return Confined(
            command=(sys.executable, "-c", program, *map(str, arguments)),
            workdir=workdir,
            readable=python_paths(),
            limits=Limits(wall_s=30.0),
            allow_processes=True,
            own_network=True,
        )

    return confined
