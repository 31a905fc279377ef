"""A parked search that is resumed on a machine without its device: it thinks and builds there, and measures elsewhere."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.candidates import candidate_of
from tests.graph.cli.command_line import ridgeline
from tests.graph.mailbox_agent import drop_answers
from tests.graph.memory_engine import MemoryEngine
from tests.graph.scripted_model import ScriptedModel
from tests.graph.session.test_session import options
from tests.tools.conftest import exp_problem

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.calls.journal import Journal
from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.graph.models.mailbox.model import LaterModel
from ridgeline.graph.session.machine import open_away_engine, target_of_parking
from ridgeline.graph.session.problem import find_problem
from ridgeline.graph.session.session import run_search
from ridgeline.tools.engine import CompileTask, VerifyTask
from ridgeline.tools.errors import DeviceAway, DeviceError, RunError
from ridgeline.tools.records.problem import Device
from ridgeline.tools.records.vocabulary import DeviceKind, Origin, Status

MAILBOX = LaterModel(name="mailbox")
H200 = Device(
    kind=DeviceKind.CUDA,
    name="NVIDIA H200",
    arch="sm_90a",
    uuid="GPU-elsewhere",
    cores=132,
    memory_bytes=2**37,
    cache_bytes=60 << 20,
    driver="580.159.04, CUDA 13.0",
)


def move(run: Path, arch: str, kind: DeviceKind = DeviceKind.CPU) -> str:
    """Let a run have begun on a processor of this architecture; return the one that it was."""
    with Archive.open(run, create=False) as archive:
        device = archive.run().device
        assert device is not None
        archive.save_run(RunRecord(device=dataclasses.replace(device, name="Elsewhere 9000", arch=arch, kind=kind)))
    return device.arch


async def begun(tmp_path: Path) -> tuple[Any, str]:
    """Return the request that resumes a parked search which began elsewhere, and this machine's architecture."""
    search = {"rounds": 1, "ideas": 2, "implementations": 1}
    first = await run_search(options(tmp_path, park=True, search=search), engine=MemoryEngine(), models=[MAILBOX])
    assert (first.state, first.waiting) == ("waiting", 1)
    return options(tmp_path, park=True, resume=True, search=search), move(tmp_path / "run", "elsewhere-9")


async def test_answers_are_taken_up_without_the_device_and_kernels_wait_for_it(tmp_path: Path) -> None:
    (again, here), told = await begun(tmp_path), []
    drop_answers(tmp_path / "run")
    ideas = await run_search(again, models=[MAILBOX], on_event=told.append)
    assert (ideas.state, ideas.waiting, ideas.unjudged) == ("waiting", 2, 0)
    warned = [event["message"] for event in told if event["event"] == "warning"]
    assert "Elsewhere 9000 is not on this machine: what needs it waits; resume this run where it is" in warned

    drop_answers(tmp_path / "run", at_most=1)
    one = await run_search(again, models=[MAILBOX])
    assert (one.state, one.waiting, one.unjudged) == ("waiting", 1, 1)
    drop_answers(tmp_path / "run")
    kernels = await run_search(again, models=[MAILBOX])
    assert (kernels.state, kernels.waiting, kernels.unjudged) == ("waiting", 0, 2)

    move(tmp_path / "run", here)
    engine = MemoryEngine()
    assert (await run_search(again, engine=engine, models=[MAILBOX])).state == "finished"
    with Archive.open_read_only(tmp_path / "run") as archive:
        written = archive.candidates(origin=Origin.MODEL)
        assert len(written) == 2 and all(archive.evaluation(each.id) for each in written)
        assert Journal(archive).totals().repeated == 0


async def test_the_command_line_says_that_kernels_wait_for_the_device(tmp_path: Path) -> None:
    again, _ = await begun(tmp_path)
    drop_answers(tmp_path / "run")
    await run_search(again, models=[MAILBOX])
    drop_answers(tmp_path / "run")
    resumed = ridgeline("run", "--resume", str(tmp_path / "run"), "--park", "--plain", "--bank", "none", cwd=tmp_path)
    assert resumed.returncode == 75, resumed.stderr
    assert "2 kernels waiting for Elsewhere 9000; go on: " in resumed.stdout
    shown = ridgeline("show", str(tmp_path / "run"), cwd=tmp_path)
    assert "parked: 2 kernels waiting for Elsewhere 9000; go on: " in shown.stdout


async def test_a_search_that_is_over_keeps_its_certificate_where_its_device_is_not(tmp_path: Path) -> None:
    search = {"rounds": 1, "ideas": 2, "implementations": 1}
    done = await run_search(options(tmp_path, search=search), engine=MemoryEngine(), models=[ScriptedModel()])
    assert done.certified
    move(tmp_path / "run", "elsewhere-9")
    more = options(tmp_path, park=True, resume=True, max_rounds=3, search=search)
    told: list[Any] = []
    again = await run_search(more, models=[ScriptedModel()], on_event=told.append)
    assert (again.state, again.certified) == ("finished", True)
    assert (tmp_path / "run" / "certificate.json").exists()
    assert any("goes on only where its device is" in str(event.get("message")) for event in told)


async def test_a_device_of_the_same_architecture_and_another_kind_is_another_one(tmp_path: Path) -> None:
    again, here = await begun(tmp_path)
    move(tmp_path / "run", here, kind=DeviceKind.CUDA)
    assert (await run_search(again, models=[MAILBOX])).state == "waiting"
    with pytest.raises(RunError, match="resume it there or start anew"):
        await run_search(dataclasses.replace(again, park=False), models=[MAILBOX])


async def test_a_hosts_engine_does_not_stand_for_another_device(tmp_path: Path) -> None:
    again, _ = await begun(tmp_path)
    with pytest.raises(RunError, match="begun on elsewhere-9, this device is "):
        await run_search(again, engine=MemoryEngine(), models=[MAILBOX])


def test_a_gpu_that_is_here_without_its_compiler_is_not_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_compiler(device: Device) -> None:
        raise DeviceError("no nvcc on this machine")

    monkeypatch.setattr("ridgeline.tools.machine.devices.detect_device", lambda name: H200)
    monkeypatch.setattr("ridgeline.tools.build.toolchain.toolchain_for", no_compiler)
    with pytest.raises(DeviceError, match="no nvcc on this machine"):
        target_of_parking(find_problem("softmax"), "cuda", H200)


async def test_a_search_that_does_not_park_is_refused_on_another_device(tmp_path: Path) -> None:
    again, _ = await begun(tmp_path)
    with pytest.raises(RunError, match="begun on elsewhere-9, this device is .*; resume it there or start anew"):
        await run_search(dataclasses.replace(again, park=False), models=[MAILBOX])


@pytest.mark.sandboxed
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc here")
async def test_kernels_for_a_gpu_elsewhere_are_built_and_not_judged(tmp_path: Path) -> None:
    problem = dataclasses.replace(exp_problem("c", DeviceKind.CUDA), device=H200)
    kernel = candidate_of(
        'extern "C" void run(const float*, float*, void*, cudaStream_t) { unknown(); }', language="cu"
    )
    async with open_away_engine(H200, log=tmp_path / "log") as engine:
        build = await engine.submit(CompileTask(problem=problem, candidate=kernel))
        assert (build.status, "unknown" in build.log) == (Status.COMPILE_ERROR, True)
        with pytest.raises(DeviceAway, match="NVIDIA H200"):
            await engine.submit(VerifyTask(problem=problem, candidate=kernel, build=build))


async def test_a_processor_elsewhere_is_not_built_for(tmp_path: Path) -> None:
    device = dataclasses.replace(H200, kind=DeviceKind.CPU, name="Elsewhere 9000", arch="elsewhere-9")
    problem = dataclasses.replace(exp_problem(), device=device)
    async with open_away_engine(device, log=tmp_path / "log") as engine:
        with pytest.raises(DeviceAway, match="Elsewhere 9000"):
            await engine.submit(CompileTask(problem=problem, candidate=candidate_of("")))
