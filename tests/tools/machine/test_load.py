"""What others take of the cores that kernels are timed on."""

from __future__ import annotations

from pathlib import Path

import pytest

from ridgeline.tools.machine import load as machine_load
from ridgeline.tools.machine.load import busy_words, cores_in_use
from ridgeline.tools.records.problem import Device
from ridgeline.tools.records.vocabulary import DeviceKind

CPU = Device(kind=DeviceKind.CPU, name="t", arch="t", uuid="cpu", cores=2, memory_bytes=1 << 30, cache_bytes=1)
BEFORE = (
    "cpu 0 0 0 0 0 0 0 0 0 0\ncpu0 100 0 0 100 0 0 0 0 0 0\ncpu1 50 0 0 150 0 0 0 0 0 0\ncpu2 0 0 0 1 0 0 0 0 0 0\n"
)
BUSY = (
    "cpu 0 0 0 0 0 0 0 0 0 0\ncpu0 150 0 40 110 0 0 0 0 0 0\ncpu1 50 0 0 240 10 0 0 0 0 0\ncpu2 900 0 0 1 0 0 0 0 0 0\n"
)
IDLE = (
    "cpu 0 0 0 0 0 0 0 0 0 0\ncpu0 101 0 0 199 0 0 0 0 0 0\ncpu1 50 0 0 250 0 0 0 0 0 0\ncpu2 900 0 0 1 0 0 0 0 0 0\n"
)


@pytest.fixture
def stat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "stat"
    path.write_text(BEFORE)
    monkeypatch.setattr(machine_load, "_STAT", path)
    monkeypatch.setattr(machine_load, "measurement_cores", lambda: (0, 1))
    return path


def test_only_the_measurement_cores_busy_ticks_count(stat: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_load.time, "sleep", lambda _: stat.write_text(BUSY))
    assert cores_in_use() == pytest.approx(0.9)


@pytest.mark.parametrize(("after", "says"), [(BUSY, "other programs use 0.9 of 2 cores"), (IDLE, "")])
def test_a_busy_cpu_is_one_line(stat: Path, monkeypatch: pytest.MonkeyPatch, after: str, says: str) -> None:
    monkeypatch.setattr(machine_load.time, "sleep", lambda _: stat.write_text(after))
    words = busy_words(CPU)
    assert words.startswith(says) and bool(words) is bool(says)


def test_this_machine_tells_how_much_it_is_used() -> None:
    assert 0.0 <= cores_in_use(0.05) <= len(machine_load.measurement_cores())
