"""The setup of a candidate that runs alone, and the command that watches it."""

import os
from pathlib import Path

import pytest

from ridgeline.tools.profile.under_tool import (
    WatchingTool,
    alone_setup,
    find_tool,
    reason_against,
    watched,
)
from ridgeline.tools.records.problem import ArgSpec, Signature
from ridgeline.tools.records.vocabulary import ArgKind, Role
from ridgeline.tools.runner.wire import VERSION
from ridgeline.tools.sandbox.rules import Confined, Tier
from ridgeline.tools.sandbox.sandbox import Sandbox

SIGNATURE = Signature(
    args=(
        ArgSpec(name="x", role=Role.INPUT, shape=(4, 3), strides=(3, 1)),
        ArgSpec(name="scale", role=Role.INPUT, kind=ArgKind.SCALAR, dtype="float64", value=1.5),
        ArgSpec(name="mask", role=Role.INPUT, kind=ArgKind.NONE),
        ArgSpec(name="w", role=Role.PARAMETER, dtype="float16", shape=(200,), strides=(1,)),
        ArgSpec(name="out", role=Role.OUTPUT, shape=(4, 3), strides=(3, 1)),
    )
)


def test_setup_is_the_wires_with_a_region_for_each_tensor() -> None:
    assert alone_setup(SIGNATURE, Path("/cache/kernel.so")).splitlines() == [
        f"setup {VERSION}",
        "library /cache/kernel.so",
        "sets 1",
        "region 5 256 ro",
        "region 6 512 ro",
        "region 7 256 rw",
        "pointer input 0 0 0 float32 2 4 3 3 1",
        "scalar float64 1.5",
        "pointer parameter 1 0 0 float16 1 200 1",
        "pointer output 2 0 0 float32 2 4 3 3 1",
        "workspace 4294967296",
        "end",
    ]


def test_watched_candidate_keeps_its_devices_and_gets_a_network_of_its_own(tmp_path: Path) -> None:
    runner = Confined(command=("/cache/host",), readable=(Path("/cache/host"),), devices=("/dev/nvidia0",))
    tool = WatchingTool(path=Path("/opt/nvidia/ncu"), readable=(Path("/opt/nvidia"),))
    library = Path("/cache/build/kernel.so")
    confined = watched(runner, tool, ("--csv",), signature=SIGNATURE, library=library, folder=tmp_path)
    assert confined.command == ("/opt/nvidia/ncu", "--csv", "/cache/host", "--alone", str(tmp_path / "setup.txt"))
    assert confined.devices == runner.devices
    assert {Path("/cache/host"), Path("/opt/nvidia"), library.parent} <= set(confined.readable)
    assert confined.own_network and confined.allow_processes
    assert confined.workdir == tmp_path
    assert "library /cache/build/kernel.so" in (tmp_path / "setup.txt").read_text()


def test_a_tool_watches_in_every_tier_that_gives_it_sockets_of_its_own(each_tier: Tier) -> None:
    runner = Confined(command=("/host",))
    assert reason_against(Sandbox(each_tier), runner) == ""
    assert "no way to run" in reason_against(Sandbox(each_tier), None)


def test_no_tool_watches_without_a_sandbox(tmp_path: Path) -> None:
    assert reason_against(Sandbox(Tier.NONE, launcher=tmp_path), Confined(command=("/host",))) == "needs a sandbox"


def test_tool_is_found_on_the_path_with_the_folder_it_really_lies_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = tmp_path / "nsight" / "ncu"
    real.parent.mkdir()
    real.write_text("#!/bin/sh\n")
    real.chmod(0o755)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "ncu").symlink_to(real)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    tool = find_tool("ncu")
    assert tool is not None
    assert tool.path == tmp_path / "bin" / "ncu"
    assert real.parent in tool.readable
    monkeypatch.setenv("PATH", os.devnull)
    assert find_tool("no-such-tool") is None
