"""The engine of a machine that lacks the search's device."""

from __future__ import annotations

import pytest
from tests.candidates import candidate_of
from tests.graph.memory_engine import DESCRIPTION, DEVICE, MemoryEngine

from ridgeline.tools.engine import CompileTask, DescribeTask
from ridgeline.tools.engines.away import AwayEngine
from ridgeline.tools.errors import DeviceAway
from ridgeline.tools.records.problem import Target
from ridgeline.tools.records.vocabulary import Interface, PrecisionClass, Status

TARGET = Target(
    name="away", reference_source="", interface=Interface.C, tolerance=PrecisionClass.FP32, device=DEVICE
).described(DESCRIPTION)


async def test_it_builds_where_a_compiler_is_and_measures_nothing() -> None:
    engine = AwayEngine(MemoryEngine())
    build = await engine.submit(CompileTask(problem=TARGET, candidate=candidate_of("// speed 2\n")))
    assert build.status is Status.OK
    with pytest.raises(DeviceAway, match="Test CPU"):
        await engine.submit(DescribeTask(problem=TARGET))


async def test_without_a_compiler_a_build_waits_too() -> None:
    with pytest.raises(DeviceAway, match="Test CPU"):
        await AwayEngine(None).submit(CompileTask(problem=TARGET, candidate=candidate_of("// speed 2\n")))


async def test_it_closes_its_builder() -> None:
    closed = []

    class Builder(MemoryEngine):
        async def aclose(self) -> None:
            closed.append(self)

    builder = Builder()
    await AwayEngine(builder).aclose()
    assert closed == [builder]
