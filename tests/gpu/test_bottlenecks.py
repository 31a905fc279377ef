"""Three planted bottlenecks, each named by the profiler from the counters of a real run; an honest kernel is not."""

import shutil
from collections.abc import Callable

import pytest

from ridgeline.tools.measure.ceilings import ceilings
from ridgeline.tools.measure.floor import floor_for
from ridgeline.tools.profile.profiler import profile_candidate
from ridgeline.tools.profile.under_tool import find_tool
from ridgeline.tools.records.problem import Device
from ridgeline.tools.records.results import Profile
from ridgeline.tools.sandbox.rules import Confined
from ridgeline.tools.sandbox.sandbox import Sandbox

from .bench import report
from .conftest import DESCRIPTION, Built

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]


@pytest.fixture
def profile(sandbox: Sandbox, gpu: Device, runner: Confined, built: Callable[..., Built]) -> Callable[[str], Profile]:
    if find_tool("ncu") is None:
        pytest.skip("needs Nsight Compute (ncu)")
    if reason := sandbox.reason_against_own_network():
        pytest.skip(reason)
    assert shutil.which("nvcc") or find_tool("nvcc")

    def of(name: str) -> Profile:
        found = built(name, gpu)
        made = profile_candidate(
            device=gpu,
            description=DESCRIPTION,
            floor=floor_for(DESCRIPTION, ceilings(gpu)),
            timing=None,
            library=found.library,
            sandbox=sandbox,
            build_log=found.log,
            runner=runner,
        )
        report("bottlenecks", kernel=name, notes=made.notes, details=made.details)
        return made

    return of


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("uncoalesced", "uncoalesced global loads: 32 sectors a request where 4 would do"),
        ("bank_conflicts", "shared-memory bank conflicts: 32-way"),
        ("register_spills", "local memory traffic"),
    ],
)
def test_planted_bottleneck_is_named_by_the_counters(profile: Callable[[str], Profile], name: str, said: str) -> None:
    found = profile(name)
    assert any(said in note for note in found.notes), found.notes
    assert found.details["kernel_ns"] > 0


def test_honest_kernel_has_none_of_them(profile: Callable[[str], Profile]) -> None:
    text = "\n".join(profile("honest").notes)
    assert "no hardware counters" not in text
    for word in ("uncoalesced", "bank conflicts", "spills"):
        assert word not in text
    assert "achieved occupancy" in text
