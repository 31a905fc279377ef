"""The hostile program, built once by a confined compiler, and every tier that works here."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ridgeline.tools.sandbox.sandbox import Confined, Limits, Sandbox, Tier, claim_workdir, reason_against

SECRET = "swordfish-6c1f"


@pytest.fixture(scope="session")
def sandbox(each_tier: Tier) -> Sandbox:
    return Sandbox(each_tier)


@pytest.fixture(scope="session")
def attack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The hostile program; its compiler is confined as well, in the best tier there is."""
    folder = claim_workdir(tmp_path_factory.mktemp("attack"))
    tier = Tier.BUBBLEWRAP if not reason_against(Tier.BUBBLEWRAP) else Tier.LANDLOCK
    source = Path(__file__).with_name("attack.cpp")
    command = ("g++", "-std=c++17", "-O1", "-fopenmp", "-pthread", str(source), "-o", str(folder / "attack"))
    ended, printed = Sandbox(tier).run(
        Confined(command=command, workdir=folder, readable=(source.parent,), allow_processes=True)
    )
    assert ended.is_success, printed
    (folder / "attack").chmod(0o755)
    return folder / "attack"


@pytest.fixture
def workdir(tmp_path: Path) -> Path:
    return claim_workdir(tmp_path / "work")


@pytest.fixture
def confine(attack: Path, workdir: Path) -> Callable[..., Confined]:
    """`confine(subcommand, ...)`: the hostile program with its working folder and small limits."""

    def build(*arguments: object, processes: bool = False, **limits: float) -> Confined:
        bounds: dict[str, float] = {"wall_s": 40.0, "cpu_s": 8, "memory_bytes": 512 << 20, "processes": 64, **limits}
        return Confined(
            command=(str(attack), *(str(argument) for argument in arguments)),
            workdir=workdir,
            readable=(attack,),
            limits=Limits(**bounds),  # type: ignore[arg-type]
            allow_processes=processes,
        )

    return build


@pytest.fixture
def live(attack: Path) -> Iterator[Callable[[], list[int]]]:
    """`live()`: the pids on this machine that run the hostile program, whoever their parent is."""

    def pids() -> list[int]:
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                command = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if command[0] == os.fsencode(attack):
                found.append(int(entry.name))
        return found

    yield pids
    assert gone(pids), "the test left processes behind"


def gone(pids: Callable[[], list[int]], within_s: float = 20.0) -> bool:
    """Say whether no process is left, waiting a little: the kernel ends a tree in its own time."""
    deadline = time.monotonic() + within_s
    while pids():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
