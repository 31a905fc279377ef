"""What the command lines of both tiers give a program, side by side."""

import itertools
import os
from pathlib import Path

import pytest

from ridgeline.tools.sandbox.argv import _COUNTERS, confined_argv
from ridgeline.tools.sandbox.rules import Confined, Tier

NODES = ("/dev/nvidia3", "/dev/nvidiactl", "/dev/nvidia-uvm")


def options(argv: list[str], name: str) -> list[str]:
    return [value for option, value in itertools.pairwise(argv) if option == name]


@pytest.mark.parametrize("tier", [Tier.BUBBLEWRAP, Tier.LANDLOCK])
def test_a_gpus_runner_has_its_nodes_and_its_drivers_folder_in_both_tiers(tier: Tier, tmp_path: Path) -> None:
    confined = Confined(command=("/bin/true",), readable=(tmp_path,), devices=NODES)
    argv = confined_argv(tier, Path("/usr/bin/env"), confined)
    assert [d for d in options(argv, "--device") if "nvidia" in d] == list(NODES)
    assert "--uses-devices" in argv and "--cap-data" not in argv
    assert str(tmp_path) in options(argv, "--ro-bind" if tier is Tier.BUBBLEWRAP else "--read")


def test_tier_b_shows_the_drivers_part_of_proc_to_a_gpus_runner_alone() -> None:
    def reads(*devices: str) -> set[str]:
        confined = Confined(command=("/bin/true",), devices=devices)
        return set(options(confined_argv(Tier.LANDLOCK, Path("/usr/bin/env"), confined), "--read"))

    machine = {"/sys/devices/system/cpu", "/sys/devices/system/node"}
    assert reads(*NODES) - reads() == {"/proc/devices", "/proc/driver/nvidia", "/proc/stat"} | machine


def test_tier_a_covers_what_the_machine_does_and_leaves_a_gpus_driver_what_it_asks() -> None:
    def covered(*devices: str) -> set[str]:
        confined = Confined(command=("/bin/true",), devices=devices)
        argv = confined_argv(Tier.BUBBLEWRAP, Path("/usr/bin/env"), confined)
        return {path for before, path in itertools.pairwise(argv) if before in (os.devnull, "--tmpfs")}

    assert covered() - covered(*NODES) == {"/proc/stat", "/proc/uptime"}
    assert {f"/proc/{name}" for name in _COUNTERS if Path("/proc", name).exists()} <= covered(*NODES)
