"""What is known of a GPU's state, and what is not without NVML."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pynvml
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
    usual_clocks,
)
from ridgeline.tools.machine.python_env import python_path

HAS_GPU = Path("/dev/nvidiactl").exists()


@pytest.mark.skipif(HAS_GPU, reason="this machine has a GPU")
def test_without_nvml_everything_is_unknown_and_nothing_fails() -> None:
    with GpuMonitor("GPU-1") as monitor:
        assert monitor.sample() == GpuState()
        assert monitor.busy_with() == ""
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
    assert state.figures() == {"sm_mhz": 1980.0, "power_w": 512.5}
    assert GpuState.from_json(state.to_json()) == state


def test_a_timing_keeps_the_median_of_figures_and_the_share_of_reasons_to_slow_down() -> None:
    capped = GpuState(sm_mhz=1700.0, slowed_by=("software power cap",))
    states = [GpuState(sm_mhz=1980.0), GpuState(sm_mhz=1980.0), GpuState(sm_mhz=1900.0), capped, GpuState()]
    assert usual_clocks(states) == {"sm_mhz": 1940.0, "slowed by software power cap": 0.2}
    assert usual_clocks([GpuState(), GpuState()]) == {}


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


@pytest.fixture
def fake_nvml(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Return what runs a program with an NVML of one GPU that does not exist."""
    source = Path(__file__).parents[2] / "graph" / "session" / "fake_driver.cpp"
    subprocess.run(["g++", "-shared", "-fPIC", str(source), "-o", str(tmp_path / "libnvidia-ml.so.1")], check=True)

    def run(program: str, **answers: str) -> subprocess.CompletedProcess[str]:
        environment = os.environ | {"LD_LIBRARY_PATH": str(tmp_path), "PYTHONPATH": python_path()} | answers
        program = "from ridgeline.tools.machine.gpu_state import *\nmonitor = GpuMonitor('GPU-1')\n" + program
        return subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)

    return run


def test_a_driver_tells_its_version_and_who_uses_the_gpu(
    fake_nvml: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    done = fake_nvml("print(installed_driver(), *monitor.processes())")
    assert done.stdout.split() == ["535.104.05"], done.stderr
    done = fake_nvml("print(monitor.busy_with())", RIDGELINE_FAKE_PROCESSES="2")
    assert done.stdout == (
        "GPU GPU-1 is busy with another process: pid 4100000000, 3072 MiB, pid 4100000001, 3072 MiB; end it, or choose "
        "another GPU with cuda:N\n"
    ), done.stderr


def test_a_figure_that_the_driver_does_not_have_is_unknown(
    fake_nvml: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    done = fake_nvml("print(monitor.sample() == GpuState())")
    assert done.stdout == "True\n", done.stderr


def test_more_processes_than_the_list_holds_are_not_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_room(handle: object) -> None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_INSUFFICIENT_SIZE)

    monkeypatch.setattr(pynvml, "nvmlDeviceGetComputeRunningProcesses_v3", no_room)
    monitor = GpuMonitor("GPU-1")
    monkeypatch.setattr(monitor, "_is_open", True)
    assert monitor.processes() == (UNCOUNTED,)
    assert monitor.busy_with().startswith("GPU GPU-1 is busy with another process: an unknown number of processes;")
    monkeypatch.undo()
    monitor.close()


@pytest.mark.gpu
@pytest.mark.skipif(not HAS_GPU, reason="needs an NVIDIA GPU")
def test_gpu_has_clocks_power_and_temperature() -> None:
    with GpuMonitor(detect_device("cuda").uuid) as monitor:
        state = monitor.sample()
        print(state)
        assert state.sm_mhz and state.memory_mhz and state.power_w and state.temperature_c
        assert installed_driver()


def test_a_process_whose_name_is_no_text_has_a_parent_too() -> None:
    renames = "open('/proc/self/comm', 'wb').write(b'\\xff'); print(flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", renames], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None and child.stdout is not None
        child.stdout.readline()
        found = descendants([os.getpid()])
        child.stdin.write(b"\n")
        child.stdin.close()
    assert child.pid in found
