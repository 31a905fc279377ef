"""F(4x4, 3x3) in fp32 is far from every limit on all contents, and rows of a looser class are not: no verdict is a coin."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest
import torch
from tests.tools.judge.worker.made import made

from ridgeline.tools.judge.worker.grading.cases.case import errors_of
from ridgeline.tools.judge.worker.grading.outputs.compare import compare
from ridgeline.tools.judge.worker.grading.outputs.expected import expect
from ridgeline.tools.judge.worker.inputs.distributions import Distribution, SetKind
from ridgeline.tools.judge.worker.inputs.source import SecretSource
from ridgeline.tools.judge.worker.reference import Reference
from ridgeline.tools.records.precision import NEAR_LIMIT, Errors, Gate, gate_for
from ridgeline.tools.records.trial_names import FEW_OUTLIERS
from ridgeline.tools.records.vocabulary import PrecisionClass

CONVOLUTION = (Path(__file__).parents[2] / "benchmarks" / "near_gates" / "convolution.py").read_text()
SECRETS = 30
KINDS = (None, SetKind(Distribution.OUTLIERS), SetKind(Distribution.ROW_SCALED))


def largest_use(gate: Gate, errors: Errors) -> float:
    return max(use.figure / use.limit for use in gate.uses(errors))


def use_of_fp32(source: SecretSource, label: str, to: SetKind | None) -> float:
    """Return the largest figure / limit of F(4x4, 3x3) on a set's contents."""
    reference = source._reference
    (x,) = source.timed_set(label, reference.draw_inputs(0), 8, to)
    weight = reference.model.conv.weight.detach()
    expected = tuple(expect(o) for o in reference.run_double((x,), dict(reference.named_tensors())))
    own = errors_of(reference.run((x,)), expected)
    ours = errors_of((import_module("row_errors").winograd(x, weight).relu(),), expected)
    assert own is not None and ours is not None
    return largest_use(gate_for(PrecisionClass.FP32, own[0]), ours[0])


MANY_CHANNELS = CONVOLUTION.replace("32, 32, 3", "64, 64, 3").replace("1, 32, 24, 24", "1, 64, 28, 28")


@pytest.mark.parametrize(("to", "source"), [*((kind, CONVOLUTION) for kind in KINDS), (KINDS[1], MANY_CHANNELS)])
def test_a_fast_convolution_is_as_far_from_its_limits_when_it_is_verified_as_when_it_is_timed(
    to: SetKind | None, source: str
) -> None:
    torch.manual_seed(0)
    reference = Reference(source)
    for secret in range(SECRETS):
        secrets = SecretSource(reference, bytes([secret]))
        assert use_of_fp32(secrets, "trial", to) < NEAR_LIMIT
        assert use_of_fp32(secrets, "block", to) < NEAR_LIMIT


def test_verification_has_the_contents_of_a_timed_set_with_outliers() -> None:
    found = made("x", "torch.randn(512, 32)", "return torch.relu(x)")
    assert FEW_OUTLIERS in found.domain.names
    (few,), (many,) = found.book.case(FEW_OUTLIERS).inputs, found.book.case("outliers").inputs
    assert 1 <= int((few.abs() > 100).any(dim=1).sum()) <= 4
    assert int((many.abs() > 100).any(dim=1).sum()) >= 64
    assert float(few[few.abs() < 100].var()) == pytest.approx(0.58, abs=0.05)  # a mixture's


def test_one_row_in_bf16_is_not_fp32() -> None:
    torch.manual_seed(0)
    x, y = torch.randn(512), torch.randn(512, 64)
    values = 512**0.5 * torch.randn(1 << 17, 64, dtype=torch.float64)  # of so many rows that the whole does not show it
    values[7] = x.double() @ y.double()
    expected = expect(values)
    output = values.clone()
    output[7] = x.bfloat16().double() @ y.bfloat16().double()
    gate = gate_for(PrecisionClass.FP32, Errors(overall=0.0))
    assert compare(output, expected).errors.overall < gate.overall
    assert not gate.admits(compare(output, expected).errors)


def test_a_row_of_the_smallest_scale_that_is_left_out_is_in_no_class() -> None:
    torch.manual_seed(0)
    values = torch.exp2(torch.linspace(-5, 5, 512, dtype=torch.float64)).unsqueeze(1) * torch.randn(512, 64).double()
    output = values.clone()
    output[0] = 0
    for precision in PrecisionClass.FP32, PrecisionClass.TF32, PrecisionClass.BF16:
        assert not gate_for(precision, Errors(overall=0.0)).admits(compare(output, expect(values)).errors), precision
