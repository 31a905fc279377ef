"""Three planted mistakes, each found by the tool that is for it; an honest kernel passes all four."""

from collections.abc import Callable

import pytest

from ridgeline.tools.profile.sanitizer import TOOLS, SanitizerReport, examine
from ridgeline.tools.profile.under_tool import find_tool
from ridgeline.tools.records.problem import Device
from ridgeline.tools.sandbox.rules import Confined
from ridgeline.tools.sandbox.sandbox import Sandbox

from .bench import report
from .conftest import SIGNATURE, Built

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]


@pytest.fixture
def examined(
    sandbox: Sandbox, gpu: Device, runner: Confined, built: Callable[..., Built]
) -> Callable[..., SanitizerReport]:
    if find_tool("compute-sanitizer") is None:
        pytest.skip("needs compute-sanitizer")
    if reason := sandbox.reason_against_own_network():
        pytest.skip(reason)

    def of(name: str, *tools: str) -> SanitizerReport:
        found = examine(
            runner, signature=SIGNATURE, library=built(name, gpu).library, sandbox=sandbox, tools=tools or TOOLS
        )
        report("sanitizers", kernel=name, reason=found.reason, clean_tools=found.clean_tools)
        return found

    return of


@pytest.mark.parametrize(
    ("name", "tool", "said"),
    [
        ("out_of_bounds", "memcheck", "Invalid __global__ write of size 4 bytes"),
        ("race", "racecheck", "Race reported between"),
        ("uninitialised", "initcheck", "Uninitialized __global__ memory read"),
    ],
)
def test_planted_mistake_is_found(examined: Callable[..., SanitizerReport], name: str, tool: str, said: str) -> None:
    found = examined(name, tool)
    assert found.reason.startswith(f"{tool}: {said}"), found
    assert name in found.reason


def test_honest_kernel_passes_every_tool(examined: Callable[..., SanitizerReport]) -> None:
    assert examined("honest").clean_tools == TOOLS
