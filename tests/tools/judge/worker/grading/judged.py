"""Kernels as functions of torch, graded in every trial, without a judge's process; and sums as plain kernels make them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import torch
from tests.tools.judge.worker.made import SOURCE

from ridgeline.tools.judge.worker.call_form import Tensors
from ridgeline.tools.judge.worker.device import Cpu
from ridgeline.tools.judge.worker.grading.cases.case_book import CaseBook
from ridgeline.tools.judge.worker.grading.examiner import Examiner
from ridgeline.tools.judge.worker.inputs.source import SecretSource
from ridgeline.tools.judge.worker.reference import Reference
from ridgeline.tools.records.vocabulary import PrecisionClass

Kernel = Callable[..., torch.Tensor | Tensors]
TRIALS = ("nominal_0", "nominal_1", "shifted", "integers", "row_scaled", "outliers", "few_outliers", "mixture")


class Judged:
    """An examiner of one reference, with its cases."""

    def __init__(self, names: str, inputs: str, *body: str, secret: bytes = b"secret") -> None:
        lines = "\n".join(f"        {line}" for line in body)
        self.reference = Reference(SOURCE.format(names=names, inputs=inputs, body=lines))
        memory: Any = SimpleNamespace(parameters={}, inputs=[self.reference.draw_inputs(0)], n_sets=4, device=Cpu())
        self.source = SecretSource(self.reference, secret)
        self.book = CaseBook(self.reference, self.source, memory, budget_bytes=1 << 28, held_bytes=1 << 28)
        self.examiner = Examiner(self.book, TRIALS, memory, self.reference, PrecisionClass.FP32)

    def passes(self, trial: str, kernel: Kernel) -> bool:
        case = self.book.case(trial)
        outputs = kernel(*case.inputs)
        given = outputs if isinstance(outputs, tuple) else (outputs,)
        return all(self.examiner.passed_by(given, case))

    def refused_in(self, kernel: Kernel, among: Sequence[str] = TRIALS) -> list[str]:
        """Return the trials among these in which a kernel is wrong."""
        return [trial for trial in among if not self.passes(trial, kernel)]


def sums_by_lanes(rows: torch.Tensor, lanes: int = 8) -> torch.Tensor:
    """Return the sum of each row as few lanes in its own type make it, a term after the other.

    `cumsum` would not: on a CPU it adds in float64.
    """
    steps = rows.reshape(len(rows), -1, lanes).permute(1, 2, 0).contiguous()
    sums = steps[0].clone()
    for step in steps[1:]:
        sums += step
    total = sums[0].clone()
    for lane in sums[1:]:
        total += lane
    return total
