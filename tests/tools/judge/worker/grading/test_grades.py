"""Several outputs are graded each by itself: what one may err, or a rule that it passes, says nothing of another."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tests.tools.judge.worker.made import SOURCE

from ridgeline.tools.judge.worker.device import Cpu
from ridgeline.tools.judge.worker.grading.cases.case_book import CaseBook
from ridgeline.tools.judge.worker.grading.examiner import Examiner
from ridgeline.tools.judge.worker.grading.grades import Grade
from ridgeline.tools.judge.worker.inputs.source import SecretSource
from ridgeline.tools.judge.worker.reference import Reference
from ridgeline.tools.records.precision import Errors
from ridgeline.tools.records.vocabulary import PrecisionClass

FP32, CRFM = PrecisionClass.FP32, PrecisionClass.CRFM


class Graded:
    """A reference of one input and what its examiner says of outputs for the first nominal trial."""

    def __init__(self, *body: str, tolerance: PrecisionClass = FP32) -> None:
        lines = "\n".join(f"        {line}" for line in body)
        self.reference = Reference(SOURCE.format(names="x", inputs="torch.randn(64, 64)", body=lines))
        source = SecretSource(self.reference, b"secret")
        outputs = tuple(map(torch.empty_like, self.reference.run(self.reference.draw_inputs(0))))
        memory: Any = SimpleNamespace(
            parameters={}, inputs=[self.reference.draw_inputs(0)], outputs=[outputs], n_sets=1, device=Cpu()
        )
        book = CaseBook(self.reference, source, memory, budget_bytes=1 << 24)
        self.examiner = Examiner(book, ("nominal_0",), memory, self.reference, tolerance)
        self.case = book.case("nominal_0")
        self.x = self.case.inputs[0]
        self.right = self.reference.run(self.case.inputs)

    def __call__(self, *outputs: torch.Tensor) -> Grade:
        return self.examiner.grade_reference(outputs)


def product_in_bf16(x: torch.Tensor) -> torch.Tensor:
    rounded = x.bfloat16().float()
    return rounded @ rounded.T


def test_a_statistic_that_loses_its_digits_lets_no_product_beside_it_round_more() -> None:
    graded = Graded("t = 50 + x / 4", "return x @ x.T, (t * t).mean(-1) - t.mean(-1) ** 2")
    product, statistic = graded.right
    assert graded(product, statistic).passed
    grade = graded(product_in_bf16(graded.x), statistic)
    assert (grade.passed, grade.passed_by, grade.output) == (False, (False, True), 0)
    assert grade.nearest is not None and grade.nearest.factor > 100


def test_a_copy_in_bf16_lets_the_output_in_fp32_be_no_worse() -> None:
    graded = Graded("y = x @ x.T", "return y, y.bfloat16()")
    assert graded(*graded.right).passed_by == (True, True)
    rounded = product_in_bf16(graded.x)
    assert graded(rounded, rounded.bfloat16()).passed_by == (False, True)
    assert graded(rounded, graded.right[1]).passed_by == (False, True)


def test_under_the_1e_2_rule_small_numbers_beside_large_ones_are_judged_by_their_class() -> None:
    graded = Graded("return x.logsumexp(-1), x.softmax(-1) / 1024", tolerance=CRFM)
    assert graded(*graded.right).passed
    assert graded(graded.right[0] * 1.001, graded.right[1]).passed_by == (True, True), "the first stays under the rule"
    assert graded(graded.right[0], torch.zeros(64, 64)).passed_by == (True, False)


def test_an_output_that_its_input_nearly_is_has_no_nominal_gate() -> None:
    graded = Graded("return x - 2e-6 * x.roll(1, 0).tanh(), x * x.roll(1, 0)")
    assert graded(*graded.right).passed
    assert graded(graded.x, graded.right[1]).passed_by == (False, True)
    rounded = tuple(e.values.float() for e in graded.case.expected)
    assert graded(*rounded).passed
    assert graded(rounded[0], rounded[1] * (1 + 4e-6)).passed, "the other one keeps its own"


@pytest.mark.parametrize(
    "second",
    ["torch.arange(64.0).cos()", "torch.full((64,), 3.0)", "x.sum()", "torch.tensor(x.shape[0])"],
)
def test_an_output_without_work_of_its_own_refuses_no_problem(second: str) -> None:
    graded = Graded(f"return x @ x.T, {second}")
    assert graded.examiner.degenerate is None
    assert graded(*graded.right).passed


def test_errors_of_all_outputs_are_the_worst_of_each() -> None:
    graded = Graded("return x @ x.T, x + 1")
    product, sums = graded.right
    found = graded(product * 1.5, sums).errors
    assert found.overall > 0.4
    assert found == found.merged(Errors(overall=0.0))
