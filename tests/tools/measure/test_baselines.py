"""Baselines measured in real judge processes, with a reference small enough to be quick."""

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ridgeline.tools.errors import EngineError, TrustedProcessLost
from ridgeline.tools.judge.messages import PrepareMode
from ridgeline.tools.judge.process import JudgeProcess
from ridgeline.tools.judge.replies import ModeReady
from ridgeline.tools.machine.devices import detect_device
from ridgeline.tools.measure.baselines import (
    _is_due,
    _publish,
    _read,
    _time_mode,
    baseline_key,
    measure_baselines,
    measure_next,
    modes_of,
)
from ridgeline.tools.measure.statistics import StoppingRule
from ridgeline.tools.measure.timed_side import WarmUp
from ridgeline.tools.measure.timing_settings import TimingSettings
from ridgeline.tools.records.baselines import Baseline
from ridgeline.tools.records.problem import ArgSpec, DescribedTarget, Description, Signature
from ridgeline.tools.records.reference_mode import COMPILED_MODES, ReferenceMode
from ridgeline.tools.records.vocabulary import DeviceKind, Interface, PrecisionClass, Role

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++"),
    pytest.mark.usefixtures("warm_judge"),
]

REFERENCE = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x) * 2 + x

def get_inputs():
    return [torch.randn(64, 512)]

def get_init_inputs():
    return []
"""
QUICK = TimingSettings(rule=StoppingRule(smallest=6, largest=6), warm_up=WarmUp(calls=3, seconds=0.01), block_s=0.003)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    root = tmp_path_factory.mktemp("baselines")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RIDGELINE_CACHE_DIR", str(root))
        patch.setenv("RIDGELINE_HOME", str(root))
        patch.setattr("ridgeline.tools.measure.ceilings_probe.SECONDS_PER_TOTAL", 0.01)
        yield root


@pytest.fixture(scope="module")
def problem() -> DescribedTarget:
    return DescribedTarget(
        name="p",
        reference_source=REFERENCE,
        interface=Interface.C,
        tolerance=PrecisionClass.FP32,
        device=detect_device("cpu"),
        description=describe(),
    )


@pytest.fixture
def start(problem: DescribedTarget, folder: Path) -> Callable[[], JudgeProcess]:
    return lambda: JudgeProcess(problem, b"secret", folder)


def describe() -> Description:
    shape = (64, 512)
    args = tuple(
        ArgSpec(name=n, role=r, shape=shape, strides=(512, 1)) for n, r in (("x", Role.INPUT), ("out", Role.OUTPUT))
    )
    return Description(
        signature=Signature(args=args),
        reference_graph=None,
        compulsory_bytes=2 * 4 * 64 * 512,
        flops=3 * 64 * 512,
        reference_sha256="",
        torch_version="2",
    )


def refuse() -> JudgeProcess:
    raise TrustedProcessLost("the judge died during load (killed by signal 9)")


def test_eager_is_timed_once_and_then_read_from_disk(problem, folder, start) -> None:
    first = measure_baselines(problem, start_judge=start, cache_dir=folder, compile_modes=(), settings=QUICK)
    (eager,) = first.entries
    assert eager.name == "eager"
    assert eager.median_ms > 0
    assert eager.p10_ms <= eager.median_ms <= eager.p90_ms
    assert eager.precision_class is PrecisionClass.FP32
    assert first.floor.floor_ms > 0
    again = measure_baselines(problem, start_judge=refuse, cache_dir=folder, compile_modes=(), settings=QUICK)
    assert again == first
    [path] = (folder / "baselines").iterdir()
    os.utime(path, (time.time() - 1800,) * 2)
    kept = measure_baselines(problem, start_judge=refuse, cache_dir=folder, compile_modes=(), settings=QUICK)
    written = time.strftime("%Y-%m-%d %H:%M", time.localtime(path.stat().st_mtime))
    assert (first.stored(), kept.stored()) == ({}, {"eager": written})


def test_a_mode_timed_beside_other_programs_says_so_and_holds_for_an_hour(tmp_path) -> None:
    eager = Baseline(name=ReferenceMode.EAGER, precision_class=PrecisionClass.FP32, median_ms=2.0)
    compiled = replace(eager, name=ReferenceMode.COMPILE, median_ms=1.0)
    path = tmp_path / "compile.json"
    for was_busy in (False, True):
        _publish(path, replace(compiled, was_busy=was_busy), eager)
        kept = _read(path, eager)
        assert kept is not None and kept.was_busy is was_busy
        assert not _is_due(kept, path, eager)
        os.utime(path, (time.time() - 3700,) * 2)
        assert _is_due(kept, path, eager) is was_busy


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_what_threads_waited_for_cores_is_told_of_a_mode(problem, start, monkeypatch, share) -> None:
    monkeypatch.setattr("ridgeline.tools.measure.timed_side.are_held_up", lambda blocks: bool(share and blocks))
    judge = start()
    try:
        eager = _time_mode(judge, ReferenceMode.EAGER, QUICK, None)
        assert eager.was_busy is bool(share)
        assert _time_mode(judge, ReferenceMode.EAGER, QUICK, eager).was_busy is bool(share)
    finally:
        judge.close()


def test_compile_that_hangs_becomes_an_entry_with_an_error(problem, folder, start, monkeypatch) -> None:
    monkeypatch.setattr("ridgeline.tools.measure.baselines.COMPILE_LIMIT_S", 0.2)
    measured = measure_baselines(
        problem, start_judge=start, cache_dir=folder, compile_modes=(ReferenceMode.COMPILE,), settings=QUICK
    )
    eager, compiled = measured.entries
    assert eager.median_ms is not None
    assert compiled.name == "compile"
    assert compiled.median_ms is None
    assert "did not answer" in compiled.error and not compiled.was_killed
    assert measured.best() == eager


def test_modes_left_out_at_first_are_measured_one_by_one_on_the_scale_of_the_first_eager(
    problem, folder, start, tmp_path
) -> None:
    counted: list[None] = []

    def start_counted() -> JudgeProcess:
        counted.append(None)
        return start()

    modes = {"compile_modes": COMPILED_MODES}
    first = measure_baselines(problem, start_judge=start, cache_dir=folder, settings=QUICK, eager_only=True, **modes)
    assert [entry.name for entry in first.entries] == ["eager"]
    assert first.pending == ("compile", "compile_max_autotune")
    second = measure_next(problem, first, start_judge=refuse, cache_dir=tmp_path, settings=QUICK)
    assert second.entries[0] == first.entries[0] and second.floor == first.floor
    assert second.entries[1].error and second.pending == ("compile_max_autotune",)
    third = measure_next(problem, second, start_judge=refuse, cache_dir=tmp_path, settings=QUICK)
    assert third.pending == () and [entry.name for entry in third.entries] == ["eager", *first.pending]
    again = measure_next(problem, second, start_judge=start_counted, cache_dir=tmp_path, settings=QUICK)
    assert (again, counted) == (third, []), "a mode that a killed search measured is taken from the disk"


def test_certificate_measures_again_what_is_kept_but_not_what_failed(problem, folder, start) -> None:
    counted: list[None] = []

    def start_counted() -> JudgeProcess:
        counted.append(None)
        return start()

    options = {"cache_dir": folder, "settings": QUICK}
    measure_baselines(problem, start_judge=start, compile_modes=(), **options)
    modes = {"compile_modes": (ReferenceMode.MAX_AUTOTUNE,)}
    first = measure_baselines(problem, start_judge=refuse, **modes, **options)
    again = measure_baselines(problem, start_judge=start_counted, again=True, **modes, **options)
    assert first.entries[1].error
    assert len(counted) == 1  # eager; the mode that failed keeps its error
    assert again.entries[1] == first.entries[1]


def test_certificate_measures_a_kept_mode_again_also_where_it_comes_by_itself(problem, folder, start) -> None:
    eager = measure_baselines(problem, start_judge=start, cache_dir=folder, settings=QUICK, eager_only=True)
    mode = eager.pending[0]
    kept = Baseline(name=mode, precision_class=PrecisionClass.FP32, median_ms=1.0).to_json() | {"eager_ms": 2.0}
    (folder / "baselines" / f"{baseline_key(problem, mode)}.json").write_text(json.dumps(kept))
    options = {"start_judge": refuse, "cache_dir": folder, "settings": QUICK}
    assert measure_next(problem, eager, **options).entries[-1].median_ms is not None
    assert "the judge died" in measure_next(problem, eager, again=True, **options).entries[-1].error


def test_a_mode_that_failed_is_tried_again_after_an_hour_and_by_another_compiler(
    problem, folder, start, monkeypatch
) -> None:
    options = {"cache_dir": folder, "settings": QUICK, "compile_modes": (ReferenceMode.COMPILE,)}
    measure_baselines(problem, start_judge=start, **options | {"compile_modes": ()})
    tried: list[ReferenceMode] = []

    def failing(mode: ReferenceMode, *_: object, **__: object) -> Baseline:
        tried.append(mode)
        return Baseline(name=mode, precision_class=PrecisionClass.FP32, median_ms=None, error="no g++")

    monkeypatch.setattr("ridgeline.tools.measure.baselines._measure", failing)
    monkeypatch.setattr("ridgeline.tools.measure.baselines.installed_version", lambda _: "g++ 98")
    for _ in range(2):
        assert measure_baselines(problem, start_judge=refuse, **options).entries[1].error == "no g++"
    assert tried == ["compile"]
    monkeypatch.setattr("ridgeline.tools.measure.baselines.installed_version", lambda _: "g++ 99")
    measure_baselines(problem, start_judge=refuse, **options)
    assert tried == ["compile"] * 2
    for kept in (folder / "baselines").iterdir():
        if "no g++" in kept.read_text():
            os.utime(kept, (0, 0))
    measure_baselines(problem, start_judge=refuse, **options)
    assert tried == ["compile"] * 3


def test_judge_that_dies_fails_only_its_own_compile_mode(problem, folder, start) -> None:
    measure_baselines(problem, start_judge=start, cache_dir=folder, compile_modes=(), settings=QUICK)
    measured = measure_baselines(
        problem,
        start_judge=refuse,
        cache_dir=folder,
        compile_modes=(ReferenceMode.MAX_AUTOTUNE,),
        settings=QUICK,
    )
    assert measured.entries[1].error.startswith("the judge died during load")


def test_eager_that_cannot_run_is_an_error_of_the_engine(problem, tmp_path, folder) -> None:
    with pytest.raises(TrustedProcessLost):
        measure_baselines(problem, start_judge=refuse, cache_dir=tmp_path, settings=QUICK)


def graph_of(*operations: str) -> Description:
    nodes = [{"name": f"n{i}", "op": op, "dtype": "float32"} for i, op in enumerate(operations)]
    return replace(describe(), reference_graph={"nodes": nodes})


def test_tf32_is_a_baseline_on_gpus_where_products_are_computed(problem) -> None:
    assert modes_of(problem.device, (ReferenceMode.COMPILE,)) == ("eager", "compile")
    gpu = replace(problem.device, kind=DeviceKind.CUDA)
    with_tf32 = ("eager", "eager_tf32", "compile", "compile_tf32")
    assert modes_of(gpu, (ReferenceMode.COMPILE,)) == with_tf32
    assert modes_of(gpu, (ReferenceMode.COMPILE,), graph_of("aten.convolution.default")) == with_tf32
    assert modes_of(gpu, (ReferenceMode.COMPILE,), graph_of("aten._softmax.default")) == ("eager", "compile")


def test_every_backend_of_attention_is_a_baseline_on_gpus(problem) -> None:
    gpu = replace(problem.device, kind=DeviceKind.CUDA)
    modes = modes_of(gpu, (), graph_of("aten._scaled_dot_product_flash_attention.default"))
    assert modes == ("eager", "sdpa_flash", "sdpa_efficient", "sdpa_cudnn", "sdpa_math")


def test_key_follows_sizes_device_and_torch(problem) -> None:
    keys = {
        baseline_key(problem, ReferenceMode.EAGER),
        baseline_key(problem, ReferenceMode.COMPILE),
        baseline_key(replace(problem, reference_source=REFERENCE.replace("512", "256")), ReferenceMode.EAGER),
        baseline_key(problem.described(replace(describe(), torch_version="3")), ReferenceMode.EAGER),
        baseline_key(replace(problem, device=replace(problem.device, cores=64)), ReferenceMode.EAGER),
    }
    assert len(keys) == 5
    assert baseline_key(replace(problem, name="other"), ReferenceMode.EAGER) in keys


def test_baselines_are_measured_where_they_cannot_be_kept(problem, folder, start, tmp_path, caplog) -> None:
    (tmp_path / "file").write_text("no folder")
    found = measure_baselines(problem, start_judge=start, cache_dir=tmp_path / "file", compile_modes=(), settings=QUICK)
    assert found.entries[0].median_ms is not None
    assert "baseline eager is not kept" in caplog.text


def test_a_mode_whose_output_fits_no_class_has_failed() -> None:
    class Judge:
        def ask(self, _request: PrepareMode, **_: object) -> ModeReady:
            return ModeReady(rel_error=0.5, measured=None)

    eager = Baseline(name=ReferenceMode.EAGER, precision_class=PrecisionClass.FP32, median_ms=1.0)
    with pytest.raises(EngineError, match="fits no precision class"):
        _time_mode(Judge(), ReferenceMode.COMPILE, QUICK, eager)


@pytest.mark.parametrize(
    "damage",
    [
        {"eager_ms": 0},
        {"eager_ms": None},
        {"eager_ms": "x"},
        {"median_ms": -5.0},
        {"p10_ms": float("nan")},
        {"name": 3},
    ],
)
def test_a_kept_entry_that_no_measurement_wrote_counts_as_absent(tmp_path, damage) -> None:
    times = {"median_ms": 2.0, "p10_ms": 1.9, "p90_ms": 2.1}
    eager = Baseline(name=ReferenceMode.EAGER, precision_class=PrecisionClass.FP32, **times)
    mode = replace(eager, name=ReferenceMode.COMPILE)
    path = tmp_path / "mode.json"
    _publish(path, mode, eager)
    assert _read(path, eager) == mode
    path.write_text(json.dumps(mode.to_json() | {"eager_ms": 2.0} | damage))
    assert _read(path, eager) is None
    path.write_text("[" * 200_000)
    assert _read(path, eager) is None
