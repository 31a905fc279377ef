"""The judge on a GPU: honest kernels, and kernels that end badly, after which the next one is unharmed."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ridgeline.tools.records import PrecisionClass, Purpose, ReasonCode, Status

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]

REFERENCE = """import torch
from torch import nn
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(4096))
        self.bias = nn.Parameter(torch.zeros(4096))
    def forward(self, x):
        return torch.relu(x) * self.scale + self.bias
def get_inputs():
    return [torch.randn(32768, 4096)]
def get_init_inputs():
    return []
"""
SOURCE = (Path(__file__).parent / "sources" / "affine.cu").read_text()
R, S = ReasonCode, Status
DEFECTS = {
    "ENDLESS": (S.TIMEOUT, R.CALL_TIMEOUT, ""),
    "ILLEGAL": (S.RUNTIME_ERROR, R.CUDA_ERROR, ""),
    "WRITES_INPUT": (S.RUNTIME_ERROR, R.CUDA_ERROR, ""),
    "ALLOCATES": (S.RUNTIME_ERROR, R.CUDA_ERROR, "run left an error behind: out of memory"),
    "BAD_LAUNCH": (S.RUNTIME_ERROR, R.CUDA_ERROR, ""),
    "HALF": (S.WRONG, R.OUTPUT_NOT_WRITTEN, ""),
    "EXITS": (S.RUNTIME_ERROR, R.EXITED, ""),
    "POINTER_CACHE": (S.WRONG, R.STALE_OUTPUT, ""),
    "TRAPS": (S.RUNTIME_ERROR, R.CUDA_ERROR, ""),
}
"""How each ends: status, code and what the reason holds, as on an H200."""


def with_defect(name: str) -> str:
    return SOURCE.replace("#define DEFECT 0", f"#define DEFECT {name}", 1)


@pytest.fixture(scope="module")
def problem(bench):
    return bench.problem(REFERENCE)


@pytest.fixture(scope="module")
def built(bench, problem):
    return bench.build(problem, {name: with_defect(name) for name in ("HONEST", "SIDE_STREAM", *DEFECTS)})


def report(name: str, **facts: object) -> None:
    """Append figures to the file that a measuring run asks for."""
    path = os.environ.get("RIDGELINE_GPU_REPORT")
    if path:
        with open(path, "a", encoding="utf-8") as lines:
            lines.write(json.dumps({"test": name, **facts}) + "\n")


def test_an_honest_kernel_is_timed_against_eager(bench, problem, built) -> None:
    outcome = bench.judge(problem, *built["HONEST"])
    assert outcome.last.status is S.OK, outcome.said()
    assert outcome.verdict is not None
    assert outcome.verdict.precision_class is PrecisionClass.FP32
    timing = outcome.timing
    assert timing is not None
    report("honest", timing=timing.to_json(), verdict_s=outcome.verdict.verify_s)
    assert 1.5 < timing.speedup < 6
    assert timing.clocks


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_bad_end_is_told_and_leaves_the_next_kernel_unharmed(bench, problem, built, defect: str) -> None:
    status, code, reason = DEFECTS[defect]
    outcome = bench.judge(problem, *built[defect])
    report(defect, said=outcome.said())
    assert outcome.last.status is status, outcome.said()
    assert outcome.last.reason_code is code, outcome.said()
    assert reason in (outcome.last.reason or ""), outcome.said()
    after = bench.judge(problem, *built["HONEST"], timed=False)
    assert after.last.status is S.OK, after.said()


def test_the_time_after_bad_ends_is_the_time_alone(bench, problem, built) -> None:
    alone = bench.judge(problem, *built["HONEST"], purpose=Purpose.EVALUATE).timing
    for defect in ("ENDLESS", "ILLEGAL", "ALLOCATES"):
        bench.judge(problem, *built[defect])
        after = bench.judge(problem, *built["HONEST"], purpose=Purpose.EVALUATE).timing
        assert alone is not None
        assert after is not None
        ratio = after.median_ms / alone.median_ms
        report("after", defect=defect, ratio=ratio, alone_ms=alone.median_ms)
        assert ratio == pytest.approx(1, abs=0.01)


def test_work_on_a_side_stream_gains_nothing(bench, problem, built) -> None:
    """The device is drained before the clock stops; the host's events on the given stream then disagree with it."""
    outcome = bench.judge(problem, *built["SIDE_STREAM"])
    report("side_stream", said=outcome.said())
    honest = bench.judge(problem, *built["HONEST"]).timing
    if outcome.last.status is S.OK:
        assert outcome.timing is not None
        assert outcome.timing.median_ms > 0.97 * honest.median_ms
    else:
        assert outcome.last.reason_code is R.WITNESS_DISAGREES, outcome.said()
