"""Limits of rows and elements where the sums of honest kernels decide: large terms that nearly cancel."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tests.tools.judge.worker.made import SOURCE, made

from ridgeline.tools.judge.worker.device import Cpu
from ridgeline.tools.judge.worker.grading.cases.case import Case, exact_of, expected_of
from ridgeline.tools.judge.worker.grading.cases.case_book import CaseBook
from ridgeline.tools.judge.worker.grading.cases.class_errors import sum_errors
from ridgeline.tools.judge.worker.grading.examiner import Examiner
from ridgeline.tools.judge.worker.inputs.source import SecretSource
from ridgeline.tools.judge.worker.reference import Reference
from ridgeline.tools.records.precision import SUM_ERROR, Errors
from ridgeline.tools.records.vocabulary import PrecisionClass

TOKENS, DEPTH = 512, 64
TIED = 16  # rows
LAST_BIT = 2.0**-7  # that a tensor core keeps beside 50,625
FP16 = PrecisionClass.FP16


class Attention:
    """Attention in fp16 with rows that two keys compete for, at scores of 225 x 225 / 8."""

    def __init__(self) -> None:
        draw = f"torch.randn({TOKENS}, {DEPTH}).half()"
        body = "        return torch.nn.functional.scaled_dot_product_attention(q[None], k[None], v[None])[0]"
        self.reference = Reference(SOURCE.format(names="q, k, v", inputs=", ".join([draw] * 3), body=body))
        source = SecretSource(self.reference, b"secret")
        memory: Any = SimpleNamespace(
            parameters={}, inputs=[self.reference.draw_inputs(0)], n_sets=4, device=Cpu()
        )  # no process to share memory with
        self.book = CaseBook(self.reference, source, memory, budget_bytes=1 << 24)
        self.examiner = Examiner(self.book, ("nominal_0", "nominal_1"), memory, self.reference, FP16)
        q, k, v = (t.clone() for t in source.nominal("tied"))
        q[:TIED, 0], k[3, 0], k[4, 0], v[3, 1] = 225.0, 225.0, 225.0, 225.0
        k[3:5, 1:] *= 0.3  # what decides between the two keys is 0.005 % of their scores
        expected = expected_of(self.reference, (q, k, v), {}, exact_of((q,)))
        self.case = Case("tied", (q, k, v), {}, expected)

    def written(self, *, last_bit: float) -> tuple[torch.Tensor]:
        """Return the output of a kernel whose products are cut off at this bit, as tensor cores do beside a large one."""
        q, k, v = (t.double() for t in self.case.inputs)
        products = q[:, None, :] * k[None, :, :]
        large = products.abs().amax(dim=-1, keepdim=True) > 1e4
        scores = torch.where(large, torch.trunc(products / last_bit) * last_bit, products).sum(dim=-1)
        return ((torch.softmax(scores / DEPTH**0.5, dim=-1) @ v).half(),)


@pytest.fixture(scope="module")
def attention() -> Attention:
    return Attention()


def test_a_kernel_whose_sums_are_those_of_tensor_cores_is_right(attention: Attention) -> None:
    outputs = attention.written(last_bit=LAST_BIT)
    assert all(attention.examiner.passed_by(outputs, attention.case))
    known = dict.fromkeys(SUM_ERROR)  # as if nothing were known of what sums lose
    inputs, expected = attention.case.inputs, attention.case.expected
    assert not all(
        attention.examiner.passed_by(
            outputs, Case("tied", inputs, {}, expected, dict(attention.case.own), known, plain=[None])
        )
    )


def test_a_kernel_whose_sums_keep_less_is_not(attention: Attention) -> None:
    assert not all(attention.examiner.passed_by(attention.written(last_bit=2.0**5 * LAST_BIT), attention.case))


def test_a_row_of_another_key_is_not(attention: Attention) -> None:
    (output,) = attention.written(last_bit=2.0**-20)
    assert all(attention.examiner.passed_by((output,), attention.case))
    output[7] = attention.case.inputs[2][4]
    assert not all(attention.examiner.passed_by((output,), attention.case))


def test_what_sums_lose_is_asked_for_only_near_a_limit(attention: Attention) -> None:
    case = attention.book.case("nominal_0")
    assert all(attention.examiner.passed_by(tuple(e.values.half() for e in case.expected), case))
    assert case.sums == {}


def test_sums_lose_little_where_nothing_cancels() -> None:
    found = made("x", "torch.randn(64, 64)", "return x @ x")
    errors = found.book.sum_errors(found.book.case("nominal_0"), PrecisionClass.TF32)
    assert errors is not None
    assert 0 < errors[0].overall < errors[0].worst_element < 8 * SUM_ERROR[PrecisionClass.TF32]


def test_nothing_is_told_of_a_reference_without_float64() -> None:
    draw = "torch.randn(64, 64).half()"
    body = "        if x.dtype == torch.float64:\n            raise TypeError('half only')\n        return x + 1"
    reference = Reference(SOURCE.format(names="x", inputs=draw, body=body))
    inputs = reference.draw_inputs(0)
    case = Case("nominal_0", inputs, {}, expected_of(reference, inputs, {}, exact_of(inputs)))
    assert sum_errors(reference, case, SUM_ERROR[FP16]) is None


def _errors(names: str, body: str, *inputs: torch.Tensor) -> Errors | None:
    reference = Reference(SOURCE.format(names=names, inputs=", ".join(["torch.rand(64, 64)"] * len(inputs)), body=body))
    case = Case("made", inputs, {}, expected_of(reference, inputs, {}, exact_of((inputs[0],))))
    found = sum_errors(reference, case, SUM_ERROR[PrecisionClass.FP32])
    return found[0] if found else None


def test_no_operand_leaves_a_domain_around_zero() -> None:
    x = torch.rand(64, 64)
    x[::2, ::2] = 1.0
    body = "        assert x.abs().max() <= 1\n        return torch.log1p(x)"
    for inputs in (x, -0.5 * x, x * torch.linspace(-0.5, 0.5, 64).sign()):
        errors = _errors("x", body.replace("log1p(x)", "log1p(x.abs())"), inputs)
        assert errors is not None and errors.worst_element > 0


def test_a_mask_of_whole_numbers_is_as_it_was() -> None:
    mask = (torch.rand(64, 64) < 0.5).float()
    errors = _errors("x, mask", "        return torch.where(mask == 1, x, -x)", torch.rand(64, 64), mask)
    assert errors is not None and errors.worst_element < 8 * SUM_ERROR[PrecisionClass.FP32]


def test_a_case_in_float64_keeps_its_inputs() -> None:
    x = torch.rand(64, 64, dtype=torch.float64)
    as_given = x.clone()
    assert _errors("x", "        return 2 * x", x) is not None
    assert torch.equal(x, as_given)
