"""Ceilings measured by the real probe, kept and measured anew."""

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.tools.measure.gpus import gpu_of

from ridgeline.tools.errors import EngineError
from ridgeline.tools.judge.set_count import rotating_limit
from ridgeline.tools.machine.devices import detect_device
from ridgeline.tools.machine.places import home_dir
from ridgeline.tools.measure.ceilings import CEILINGS_VERSION, Ceilings, _read, ceilings

needs_gxx = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    root = tmp_path_factory.mktemp("ceilings")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RIDGELINE_CACHE_DIR", str(root / "cache"))
        patch.setenv("RIDGELINE_HOME", str(root / "home"))
        yield root


@pytest.fixture(scope="module")
def measured(folders: Path) -> Ceilings:
    return ceilings(detect_device("cpu"))


@pytest.mark.thorough
@needs_gxx
def test_probe_measures_every_way_at_sizes_up_to_the_rotating_total(measured: Ceilings) -> None:
    device = detect_device("cpu")
    sizes = [b.bytes for b in measured.bandwidth]
    assert sizes == sorted(sizes)
    assert sizes[-1] == pytest.approx(
        rotating_limit(kind=device.kind, cache_bytes=device.cache_bytes, memory_bytes=device.memory_bytes), rel=0.01
    )
    for row in measured.bandwidth:
        assert min(row.read, row.write, row.write_streaming, row.copy, row.copy_streaming) > 0
    assert measured.threads == device.cores


@needs_gxx
@pytest.mark.timing
def test_cores_do_more_operations_than_memory_loads_numbers(measured: Ceilings) -> None:
    assert measured.fma_gflops > measured.bandwidth[-1].fastest / 4


@needs_gxx
def test_ceilings_are_measured_once_and_kept_with_their_date(
    measured: Ceilings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> Ceilings:
        raise AssertionError("measured again")

    monkeypatch.setattr("ridgeline.tools.measure.ceilings.measure_ceilings", refuse)
    assert ceilings(detect_device("cpu")) == measured
    (kept,) = home_dir().glob("ceilings-*.json")
    assert json.loads(kept.read_text())["date"] == measured.date


@needs_gxx
def test_a_cpus_ceilings_are_measured_anew_after_an_hour_and_only_rise(
    measured: Ceilings, monkeypatch: pytest.MonkeyPatch
) -> None:
    (kept,) = home_dir().glob("ceilings-*.json")
    os.utime(kept, (0, 0))
    slower = replace(measured, bandwidth=tuple(replace(b, read=b.read / 2) for b in measured.bandwidth))
    faster = replace(slower, fma_gflops=2 * measured.fma_gflops)
    monkeypatch.setattr("ridgeline.tools.measure.ceilings.measure_ceilings", lambda _: faster)
    found = ceilings(detect_device("cpu"))
    assert found.bandwidth == measured.bandwidth
    assert found.fma_gflops == faster.fma_gflops
    kept.write_text(json.dumps(measured.to_json()))


@needs_gxx
def test_measuring_again_never_lowers_a_ceiling(measured: Ceilings) -> None:
    again = ceilings(detect_device("cpu"), again=True)
    for before, after in zip(measured.bandwidth, again.bandwidth, strict=True):
        assert after.fastest >= before.fastest
    assert again.fma_gflops >= measured.fma_gflops


@needs_gxx
def test_damaged_file_is_measured_anew(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ridgeline.tools.measure.ceilings_probe.SECONDS_PER_TOTAL", 0.01)
    monkeypatch.setenv("RIDGELINE_HOME", str(folders / "other"))
    device = replace(detect_device("cpu"), cache_bytes=1 << 20)
    first = ceilings(device)
    (path,) = home_dir().glob("*.json")
    path.write_text("{")
    assert [b.bytes for b in ceilings(device).bandwidth] == [b.bytes for b in first.bandwidth]
    assert json.loads(path.read_text())["threads"] == device.cores
    path.write_text(json.dumps(replace(first, bandwidth=first.bandwidth[1:]).to_json()))
    assert [b.bytes for b in ceilings(device, again=True).bandwidth] == [b.bytes for b in first.bandwidth]


@needs_gxx
def test_ceilings_are_kept_in_the_cache_where_the_home_cannot_be_written(
    measured: Ceilings, folders: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("ridgeline.tools.measure.ceilings_probe.SECONDS_PER_TOTAL", 0.01)
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("RIDGELINE_HOME", str(tmp_path / "file" / "home"))
    found = ceilings(detect_device("cpu"))
    assert "are not kept in" in caplog.text
    assert ceilings(detect_device("cpu")) == found  # not measured again for every candidate
    (kept,) = (folders / "cache").glob("ceilings-*.json")
    kept.unlink()


@needs_gxx
def test_a_probe_that_hangs_is_an_engine_error(measured: Ceilings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ridgeline.tools.measure.ceilings_probe.PROBE_TIMEOUT_S", 0.001)
    with pytest.raises(EngineError, match="could not be run"):
        ceilings(detect_device("cpu"), again=True)


def test_file_of_an_earlier_version_is_measured_anew_and_does_not_stop_anything(tmp_path: Path) -> None:
    row = {"bytes": 1024, "read": 1.0, "write": 1.0, "write_streaming": 1.0, "copy": 1.0, "copy_streaming": 1.0}
    kept = {
        "version": 1, "device": gpu_of().to_json(), "date": "2026-01-01", "threads": 2, "fma_gflops": 1.0,
        "bandwidth": [row],
    }  # fmt: skip
    path = tmp_path / "ceilings.json"
    path.write_text(json.dumps(kept))
    assert _read(path, gpu_of()) is None
    path.write_text(json.dumps({**kept, "version": CEILINGS_VERSION}))
    known = _read(path, gpu_of())
    assert known is not None and known.bandwidth[0].fastest == 1.0
    for damage in ({"fma_gflops": float("nan")}, {"fma_gflops": None}, {"bandwidth": [{**row, "copy": -1.0}]}):
        path.write_text(json.dumps({**kept, "version": CEILINGS_VERSION, **damage}))
        assert _read(path, gpu_of()) is None
    path.write_text("[" * 200_000)
    assert _read(path, gpu_of()) is None
