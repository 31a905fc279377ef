"""What a description does while another process holds the processor: broken references do not wait."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ridgeline.tools.engine import DescribeTask
from ridgeline.tools.engines.local import LocalEngine
from ridgeline.tools.errors import BadReferenceError
from ridgeline.tools.judge.outline_process import OutlineProcess
from ridgeline.tools.local import first_look
from ridgeline.tools.machine.locks import DeviceLock
from ridgeline.tools.records.problem import DescribedTarget, Target
from ridgeline.tools.records.vocabulary import DeviceKind

pytestmark = [pytest.mark.any_tier, pytest.mark.long, pytest.mark.usefixtures("warm_judge")]
WHOLE = """
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
    def forward(self, x):
        return x + 1
def get_inputs():
    return [torch.rand(4, 4)]
"""


@pytest.fixture
async def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[LocalEngine]:
    monkeypatch.setenv("RIDGELINE_LOCK_DIR", str(tmp_path / "locks"))
    monkeypatch.setattr(first_look, "TELL_AFTER_S", 0.05)
    engine = LocalEngine(cache_dir=tmp_path / "cache", log=tmp_path / "evaluator.log")
    yield engine
    await engine.aclose()


@pytest.fixture
def describe(make_problem: Callable[..., DescribedTarget]) -> Callable[[str], DescribeTask]:
    known = make_problem()

    def make(source: str) -> DescribeTask:
        target = Target(
            name="p",
            reference_source=source,
            interface=known.interface,
            tolerance=known.tolerance,
            device=known.device,
            call_timeout_s=10.0,
        )
        return DescribeTask(problem=target)

    return make


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (
            WHOLE.replace("super().__init__()", "super().__init__(); self.a = [][1]"),
            r"Model\(\) raised IndexError.*line 5",
        ),
        (WHOLE.replace("x + 1", "x @ torch.rand(3)"), r"forward\(\) raised .*line 7 in forward"),
        (WHOLE.replace("[torch.rand(4, 4)]", "missing"), r"get_inputs\(\) raised NameError.*line 9"),
        (WHOLE.replace("rand(4, 4)", "rand(0, 4)"), r"forward\(\) gives only empty tensors"),
        (
            WHOLE.replace("rand(4, 4)", "rand(1 << 36)"),
            r"judging it takes at least \d+ GB.*, this machine has .* smaller sizes",
        ),
    ],
)
async def test_a_broken_reference_is_told_while_another_process_holds_the_processor(
    engine: LocalEngine, describe: Callable[[str], DescribeTask], tmp_path: Path, source: str, said: str
) -> None:
    async with DeviceLock("cpu", tmp_path / "locks").exclusive(), asyncio.timeout(60):  # as another process would
        with pytest.raises(BadReferenceError, match=said):
            await engine.submit(describe(source))


async def test_a_problem_that_the_engines_user_refuses_is_described_while_another_process_holds_the_processor(
    describe: Callable[[str], DescribeTask], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RIDGELINE_LOCK_DIR", str(tmp_path / "locks"))
    monkeypatch.setattr(first_look, "TELL_AFTER_S", 0.05)
    asked: list[DescribedTarget] = []

    def refuses(described: DescribedTarget) -> bool:
        asked.append(described)
        return True

    refusing = LocalEngine(cache_dir=tmp_path / "cache", log=tmp_path / "evaluator.log", refuses=refuses)
    try:
        async with DeviceLock("cpu", tmp_path / "locks").exclusive(), asyncio.timeout(60):
            described = await refusing.submit(describe(WHOLE))
    finally:
        await refusing.aclose()
    assert described.reference_graph["nodes"] == asked[0].description.reference_graph["nodes"]


@pytest.mark.parametrize(("waiting", "niceness"), [(4.0, 19), (9.0, 0)])
def test_a_first_look_has_the_lowest_priority_but_where_that_is_never_due(
    waiting: float, niceness: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.getloadavg", lambda: (waiting, 0.0, 0.0))
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    assert first_look._niceness() == niceness


async def test_a_reference_that_is_whole_waits_and_its_outline_ends_with_the_wait(
    engine: LocalEngine,
    describe: Callable[[str], DescribeTask],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[OutlineProcess] = []

    class Kept(OutlineProcess):
        def __init__(self, *, niceness: int, with_graphs: bool) -> None:
            super().__init__(niceness=niceness, with_graphs=with_graphs)
            started.append(self)

    monkeypatch.setattr(first_look, "OutlineProcess", Kept)
    async with DeviceLock("cpu", tmp_path / "locks").exclusive():
        describing = asyncio.create_task(engine.submit(describe(WHOLE)))
        until = time.monotonic() + 60
        while not (started and started[0]._process.returncode is not None) and time.monotonic() < until:
            await asyncio.sleep(0.05)
        assert started[0]._process.returncode is not None, "the outline said nothing against it"
        await asyncio.sleep(0.2)
        assert not describing.done()
    assert (await describing).signature.args
    assert len(started) == 1


async def test_an_outline_under_way_ends_as_soon_as_the_processor_is_free(
    describe: Callable[[str], DescribeTask], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[OutlineProcess] = []

    class Slow(OutlineProcess):
        def __init__(self, *, niceness: int, with_graphs: bool) -> None:
            super().__init__(niceness=niceness, with_graphs=with_graphs)
            started.append(self)

    monkeypatch.setattr(first_look, "OutlineProcess", Slow)
    monkeypatch.setattr(first_look, "TELL_AFTER_S", 0.0)
    problem = describe(WHOLE.replace("import torch", "import torch, time\ntime.sleep(60)")).problem
    lock = DeviceLock("cpu", tmp_path / "locks")

    async def hold() -> float:
        async with first_look.held_to_describe(lock, problem):
            return time.monotonic()

    async with lock.exclusive():
        holding = asyncio.create_task(hold())
        while not started:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
    assert await asyncio.wait_for(holding, 10)
    assert started[0]._process.returncode is not None


async def test_on_a_gpu_nothing_is_looked_at_while_it_waits(
    describe: Callable[[str], DescribeTask], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_look, "OutlineProcess", None)
    monkeypatch.setattr(first_look, "TELL_AFTER_S", 0.0)
    problem = describe("not python").problem
    problem = replace(problem, device=replace(problem.device, kind=DeviceKind.CUDA))
    lock = DeviceLock("gpu", tmp_path / "locks")
    async with lock.exclusive():
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3), first_look.held_to_describe(lock, problem):
                pass
    async with asyncio.timeout(10), first_look.held_to_describe(lock, problem):
        pass
