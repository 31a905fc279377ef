"""What is known of a GPU's state, and what is not without NVML."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from ridgeline.tools.machine.devices import detect_device
from ridgeline.tools.machine.gpu_state import (
    UNCOUNTED,
    GpuMonitor,
    GpuProcess,
    GpuState,
    descendants,
    installed_driver,
    reasons_in_words,
)

HAS_GPU = Path("/dev/nvidiactl").exists()


@pytest.mark.skipif(HAS_GPU, reason="this machine has a GPU")
def test_without_nvml_everything_is_unknown_and_nothing_fails() -> None:
    with GpuMonitor("GPU-1") as monitor:
        assert monitor.sample() == GpuState()
        assert monitor.busy_with() == ""
        assert monitor.driver_version() == ""
    assert installed_driver() == ""


@pytest.mark.parametrize(
    ("mask", "words"),
    [
        (0x0, ()),
        (0x1, ()),  # idle
        (0x4, ("software power cap",)),
        (0x48, ("hardware slowdown", "hardware thermal slowdown")),
        (0x20000, ("reason 0x20000",)),
    ],
)
def test_reasons_to_slow_down_are_words(mask: int, words: tuple[str, ...]) -> None:
    assert reasons_in_words(mask) == words


def test_state_gives_a_timing_the_figures_that_are_known() -> None:
    state = GpuState(sm_mhz=1980.0, power_w=512.5, slowed_by=("software power cap",))
    assert state.clocks() == {"sm_mhz": 1980.0, "power_w": 512.5, "slowed by software power cap": 1.0}
    assert GpuState.from_json(state.to_json()) == state


def test_children_of_children_are_descendants_and_strangers_are_not() -> None:
    command = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'print(1, flush=True); input()'])"
    with subprocess.Popen(
        [sys.executable, "-c", command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "1\n"
        found = descendants({os.getpid()})
        assert {os.getpid(), child.pid} <= found
        assert len(descendants({child.pid})) == 2
        assert os.getppid() not in found
        child.communicate("\n")


class Crowded(GpuMonitor):
    """A GPU with processes that this machine's NVML need not show."""

    def processes(self) -> tuple[GpuProcess, ...]:
        stranger = GpuProcess(pid=1, name="train", memory_bytes=3 << 30)
        return (GpuProcess(pid=os.getpid(), name="python"), stranger)


def test_gpu_busy_with_another_process_is_said_in_one_line_with_the_remedy() -> None:
    monitor = Crowded("GPU-1")
    assert [p.pid for p in monitor.other_processes()] == [1]
    line = monitor.busy_with()
    assert line.startswith("GPU GPU-1 is busy with another process: pid 1 (train), 3072 MiB;")
    assert "\n" not in line
    assert monitor.busy_with(own_pids=(1,)) == ""


def test_more_processes_than_the_list_holds_are_not_nobody() -> None:
    monitor = GpuMonitor("GPU-1")
    monitor._nvml = SimpleNamespace(
        nvmlDeviceGetComputeRunningProcesses_v3=lambda handle, count, found: 7,  # NVML_ERROR_INSUFFICIENT_SIZE
        nvmlShutdown=lambda: 0,
    )
    assert monitor.processes() == (UNCOUNTED,)
    assert monitor.busy_with().startswith("GPU GPU-1 is busy with another process: an unknown number of processes;")
    monitor.close()


@pytest.mark.gpu
@pytest.mark.skipif(not HAS_GPU, reason="needs an NVIDIA GPU")
def test_gpu_has_clocks_power_and_temperature() -> None:
    with GpuMonitor(detect_device("cuda").uuid) as monitor:
        state = monitor.sample()
        print(state)
        assert state.sm_mhz and state.memory_mhz and state.power_w and state.temperature_c
        assert monitor.driver_version() == installed_driver() != ""
