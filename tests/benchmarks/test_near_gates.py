"""Kernels near a gate get the same verdict again and again."""

from __future__ import annotations

import asyncio
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from ridgeline.tools.engines.local import LocalEngine
from ridgeline.tools.machine.devices import detect_device
from ridgeline.tools.records.results import Verdict
from ridgeline.tools.records.vocabulary import PrecisionClass, ReasonCode, Status

RIGHT = Verdict(status=Status.OK, precision_class=PrecisionClass.FP32, margin=0.8, draws=4, verify_s=2.0)
WRONG = Verdict(status=Status.WRONG, reason_code=ReasonCode.WRONG_VALUES, margin=1.2, verify_s=1.0)


def test_a_verdict_agrees_by_its_status_and_its_class() -> None:
    tf32 = Verdict(status=Status.OK, precision_class=PrecisionClass.TF32, margin=0.1, verify_s=1.0)
    found = import_module("near_gates").agreement(RIGHT, [RIGHT, RIGHT, WRONG, tf32])
    assert (found["agree"], found["share"], found["judged_again"]) == (2, 0.5, 2)
    assert found["margin"] == {"smallest": 0.1, "median": 0.8, "largest": 1.2}
    assert found["verify_s"] == {"judged_once": 1.0, "judged_again": 2.0}


@pytest.mark.slow
@pytest.mark.sandboxed
@pytest.mark.parametrize("kernel", ["winograd_2", "winograd_4", "fast_exp", "split_bf16"])
def test_fifty_fresh_verifications_agree_with_the_first(kernel: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp(kernel)
    for above in (folder, folder.parent, folder.parent.parent):
        above.chmod(0o755)  # confined code may become another user
    found = asyncio.run(_agreement(kernel, folder))
    assert found["first"]["status"] is Status.OK
    assert found["share"] >= 0.98, found


async def _agreement(kernel: str, folder: Path) -> dict[str, Any]:
    benchmark = import_module("near_gates")
    device = detect_device("cpu")
    engine = LocalEngine(cache_dir=folder)
    try:
        first, others = await benchmark.verdicts(kernel, engine, device, 50)
    finally:
        await engine.aclose()
    found: dict[str, Any] = benchmark.agreement(first, others)
    return found
