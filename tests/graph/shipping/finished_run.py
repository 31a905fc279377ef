"""Finished runs made by hand, around kernels that are written here: trusted, so that tests may load them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.descriptions import description_of

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.graph.session.outputs import write_result
from ridgeline.tools.build.flags import base_flags, link_flags
from ridgeline.tools.machine.devices import detect_device
from ridgeline.tools.records.problem import ArgSpec, Device, Signature, SkippedTrial
from ridgeline.tools.records.results import Build, Evaluation, Timing, Verdict
from ridgeline.tools.records.search import Candidate
from ridgeline.tools.records.vocabulary import (
    ArgKind,
    Interface,
    Label,
    Origin,
    PrecisionClass,
    Purpose,
    ReasonCode,
    Role,
    RunState,
    Status,
)

WINNER = "r1i1v0a0"
ROWS, COLS = 64, 32

REFERENCE = f"""
import torch


class Model(torch.nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(cols))
        self.shift = 0.25

    def forward(self, x, t, mask=None):
        y = torch.relu(x) * self.scale * t + self.shift
        return y, {{"sums": [y.sum(-1)]}}


def get_inputs():
    return [torch.randn({ROWS}, {COLS}), 0.5]


def get_init_inputs():
    return [{COLS}]
"""
NO_INIT_INPUTS = REFERENCE.partition("\n\ndef get_init_inputs")[0].replace("(self, cols)", f"(self, cols={COLS})")
"""The same one without the function that a reference may leave out."""
KERNEL = """
void run(const float* __restrict__ x, double t, const float* __restrict__ scale, float* __restrict__ out_0,
         float* __restrict__ out_1, void* workspace) {
  float* sums = static_cast<float*>(workspace);
  for (int64_t row = 0; row < X_SHAPE_0; row++) {
    sums[row] = 0;
    for (int64_t col = 0; col < X_SHAPE_1; col++) {
      const float value = x[row * X_SHAPE_1 + col] > 0 ? x[row * X_SHAPE_1 + col] : 0;
      out_0[row * X_SHAPE_1 + col] = value * scale[col] * static_cast<float>(t) + 0.25f;
      sums[row] += out_0[row * X_SHAPE_1 + col];
    }
    out_1[row] = sums[row];
  }
}

size_t workspace_bytes() { return X_SHAPE_0 * sizeof(float); }
"""
EXTENSION = """
#include <torch/extension.h>

std::vector<torch::Tensor> forward(torch::Tensor x, double t, torch::Tensor scale) {
  torch::Tensor y = torch::relu(x) * scale * t + 0.25;
  return {y, y.sum(-1)};
}
"""
MODULE = """
import torch


class ModelNew(torch.nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(cols))

    def forward(self, x, t, mask=None):
        y = torch.clamp(x, min=0) * self.weight * t + 0.25
        return y, {"sums": [y.sum(-1)]}
"""
SOURCES = {Interface.C: KERNEL, Interface.TORCH: EXTENSION, Interface.MODULE: MODULE}


def signature() -> Signature:
    x = ArgSpec(name="x", role=Role.INPUT, shape=(ROWS, COLS), strides=(COLS, 1), source="x")
    t = ArgSpec(name="t", role=Role.INPUT, kind=ArgKind.SCALAR, dtype="float64", value=0.5, source="t")
    scale = ArgSpec(name="scale", role=Role.PARAMETER, shape=(COLS,), strides=(1,), source="scale")
    y = replace(x, name="out_0", role=Role.OUTPUT, source="out_0")
    sums = ArgSpec(name="out_1", role=Role.OUTPUT, shape=(ROWS,), strides=(1,), source="out_1")
    return Signature(args=(x, t, scale, y, sums))


@dataclass(frozen=True, kw_only=True)
class Finished:
    """What the run of a test is to hold."""

    interface: Interface = Interface.C
    source: str = ""
    reference: str = REFERENCE
    signature: Signature | None = None
    device: Device | None = None
    flags: tuple[str, ...] | None = None  # of the recorded build; None: those that a build has
    certified_flags: tuple[str, ...] = ()  # of the certificate's
    language: str = ""
    problem: str = "scaled"
    certified: bool = True
    found_wrong: bool = False  # by its certificate, so that there is no winner
    fixed: bool = False  # `t` had one value in every test
    origin: Origin = Origin.MODEL  # of the winner, or of what it was tuned from
    model: str = "offline"
    tuned: bool = False
    over_best: float | None = None  # over PyTorch's best configuration


def write_run(folder: Path, finished: Finished | None = None) -> Path:
    """Write a finished run into a new folder and return it."""
    wanted = finished or Finished()
    device = wanted.device or detect_device("cpu")
    folder.mkdir(parents=True)
    (folder / ".lock").touch()
    flags = wanted.flags if wanted.flags is not None else (*base_flags(device), *link_flags(device.kind))
    skipped = (SkippedTrial(name="not_varied t", reason="", label=Label.NOT_VARIED),) if wanted.fixed else ()
    with Archive.open(folder / "archive.sqlite") as archive:
        archive.save_run(_record(wanted, device))
        described = description_of(wanted.signature or signature())
        archive.save_description(replace(described, skipped_trials=skipped))
        archive.add_candidates(_candidates(wanted, device))
        for purpose in (Purpose.SEARCH, Purpose.CERTIFY):
            archive.add_evaluation(replace(_evaluation(purpose, flags), speedup_vs_best=wanted.over_best))
        archive.save_certificate(_certificate(passed=wanted.certified, flags=wanted.certified_flags))
        if wanted.found_wrong:
            refute_winner(archive)
        write_result(folder, archive, RunState.FINISHED)
    return folder


def refute_winner(archive: Archive) -> None:
    """Let the winner be wrong under its certificate's secrets."""
    found = replace(_evaluation(Purpose.CERTIFY, ()), status=Status.WRONG, reason_code=ReasonCode.WRONG_VALUES)
    archive.add_evaluation(replace(found, timing=None))
    archive.save_run(RunRecord(best_id=""))


def _record(wanted: Finished, device: Device) -> RunRecord:
    return RunRecord(
        search_id="5e4c",
        problem={"name": wanted.problem, "interface": wanted.interface.value, "tolerance": "fp32"},
        device=device,
        graph_version=1,
        reference_source=wanted.reference,
        state=RunState.FINISHED,
        models=("offline",),
        settings={"rounds": 1},
        best_id=WINNER,
        versions={"torch": "2.13.0"},
    )


def _candidates(wanted: Finished, device: Device) -> list[Candidate]:
    """Return the winner, behind what it was tuned from where it is to be a tuned one."""
    written = _candidate(wanted, device)
    if not wanted.tuned:
        return [written]
    tuned = replace(written, origin=Origin.TUNE, parent_id="written")
    return [replace(written, id="written"), tuned]


def _candidate(wanted: Finished, device: Device) -> Candidate:
    return Candidate(
        id=WINNER,
        origin=wanted.origin,
        round=1,
        idea_id=None,
        parent_id=None,
        source=wanted.source or SOURCES[wanted.interface],
        language=wanted.language or wanted.interface.language(device.kind),
        interface=wanted.interface,
        model=wanted.model,
    )


def _evaluation(purpose: Purpose, flags: tuple[str, ...]) -> Evaluation:
    timing = Timing(status=Status.OK, median_ms=0.8, samples=90, reference_ms=1.6, speedup=2.0, speedup_ci95=(1.9, 2.1))
    return Evaluation(
        key=f"key-{purpose}",
        candidate_id=WINNER,
        purpose=purpose,
        status=Status.OK,
        build=Build(key="build", status=Status.OK, flags=flags, toolchain="g++ of the test"),
        verdict=Verdict(status=Status.OK, rel_error=1e-7, precision_class=PrecisionClass.FP32),
        timing=timing,
    )


def _certificate(*, passed: bool, flags: tuple[str, ...]) -> dict[str, Any]:
    return {
        "schema_version": 1,
        "passed": passed,
        "reason": "" if passed else "its timings spread",
        "candidate": {"id": WINNER, "origin": "model"},
        "date": "2026-11-23T12:00:00Z",
        "versions": {"torch": "2.13.0"},
        "build": {"flags": list(flags)},
    }
