"""Whose kernels run in a candidate, by a profile: its own, or cuBLAS's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ridgeline.tools.profile.profiler import profile_candidate
from ridgeline.tools.profile.under_tool import find_tool
from ridgeline.tools.records.problem import Device
from ridgeline.tools.records.results import OwnWork
from ridgeline.tools.sandbox.rules import Confined
from ridgeline.tools.sandbox.sandbox import Sandbox

from .bench import report
from .conftest import DESCRIPTION, Built

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]


@pytest.fixture
def work(sandbox: Sandbox, gpu: Device, runner: Confined, built: Callable[..., Built]) -> Callable[[str], OwnWork]:
    if find_tool("ncu") is None:
        pytest.skip("needs Nsight Compute (ncu)")
    if reason := sandbox.reason_against_own_network():
        pytest.skip(reason)

    def of(name: str) -> OwnWork:
        found = built(name, gpu)
        profile = profile_candidate(
            device=gpu,
            description=DESCRIPTION,
            floor=None,
            timing=None,
            library=found.library,
            sandbox=sandbox,
            build_log=found.log,
            runner=runner,
        )
        assert profile.own_work is not None
        report("own_work", kernel=name, **profile.own_work.to_json())
        return profile.own_work

    return of


def test_honest_kernel_s_time_is_all_its_own(work: Callable[[str], OwnWork]) -> None:
    found = work("honest")
    assert (found.share, found.others) == (1.0, ()), found
    assert found.kernels_ns


@pytest.mark.skipif(not Path("/usr/local/cuda/lib64/libcublas.so").exists(), reason="needs cuBLAS")
def test_kernel_of_a_library_that_is_loaded_meanwhile_is_named(work: Callable[[str], OwnWork]) -> None:
    found = work("borrows_cublas")
    assert found.share == pytest.approx(0.0), found
    assert found.others
