"""Outputs of few numbers: a sum of signed terms that is next to nothing is held to what it is made of."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tests.tools.judge.worker.made import SOURCE

from ridgeline.tools.judge.worker.device import Cpu
from ridgeline.tools.judge.worker.grading.cases.case import Case, errors_of, exact_of, expected_of
from ridgeline.tools.judge.worker.grading.cases.case_book import CaseBook
from ridgeline.tools.judge.worker.grading.examiner import Examiner
from ridgeline.tools.judge.worker.inputs.source import SecretSource
from ridgeline.tools.judge.worker.reference import Reference
from ridgeline.tools.records.vocabulary import PrecisionClass

TERMS, LANES = 1 << 18, 8
FP32 = PrecisionClass.FP32


class Loss:
    """The sum of TERMS signed products, which is this share of its usual size."""

    def __init__(self, share: float) -> None:
        draw = f"torch.randn({TERMS})"
        self.reference = Reference(
            SOURCE.format(names="x, y", inputs=f"{draw}, {draw}", body="        return (x * y).sum()")
        )
        source = SecretSource(self.reference, b"secret")
        memory: Any = SimpleNamespace(parameters={}, inputs=[self.reference.draw_inputs(0)], n_sets=4, device=Cpu())
        self.book = CaseBook(self.reference, source, memory, budget_bytes=1 << 26)
        self.examiner = Examiner(self.book, ("nominal_0", "nominal_1"), memory, self.reference, FP32)
        self.x, self.y = (t.clone() for t in source.nominal("a sum"))
        self.x[0] = 1.0
        rest = float((self.x[1:].double() * self.y[1:].double()).sum())
        self.y[0] = share * TERMS**0.5 - rest
        inputs = (self.x, self.y)
        expected = expected_of(self.reference, inputs, {}, exact_of(inputs[:1]))
        own = {FP32: errors_of(self.reference.run(inputs), expected)}
        self.case = Case("a sum", inputs, {}, expected, own)

    def passes(self, products: torch.Tensor) -> bool:
        """Return whether the sum of these products passes, made by few lanes in fp32, a term after the other."""
        lanes = products.view(-1, LANES).cumsum(0)[-1]
        return all(self.examiner.passed_by((lanes.sum(),), self.case))


@pytest.mark.parametrize("share", [1.0, 0.03, 0.001])
def test_a_sum_in_fp32_is_right_however_little_is_left(share: float) -> None:
    loss = Loss(share)
    assert loss.passes(loss.x * loss.y)


@pytest.mark.parametrize("share", [1.0, 0.03, 0.001])
def test_a_sum_of_rounded_or_fewer_products_is_wrong(share: float) -> None:
    loss = Loss(share)
    assert not loss.passes(loss.x.bfloat16().float() * loss.y.bfloat16().float())
    some = loss.x * loss.y
    some[-TERMS // 1024 :] = 0
    assert not loss.passes(some)


def test_what_they_are_conditioned_like_is_asked_for_only_near_a_limit() -> None:
    loss = Loss(1.0)
    assert all(loss.examiner.passed_by((loss.case.expected[0].values.float(),), loss.case))
    assert loss.case.conditions == []


def test_a_mean_of_positive_numbers_is_well_conditioned() -> None:
    loss = Loss(1.0)
    source = SOURCE.format(names="x", inputs="torch.rand(4096)", body="        return x.mean()")
    reference = Reference(source)
    inputs = reference.draw_inputs(0)
    case = Case("a mean", inputs, {}, expected_of(reference, inputs, {}, exact_of(inputs)))
    book = CaseBook(reference, SecretSource(reference, b"secret"), loss.book._memory, budget_bytes=1 << 20)
    assert 1.0 <= book.condition_of(case, 0) < 1.5
