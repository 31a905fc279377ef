"""Outputs in float64 have a class of their own: sums in another order pass, what was float32 in between does not."""

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
from ridgeline.tools.records.precision import NEAR_LIMIT, accepted_classes, allows_tf32, asked_of, loosest
from ridgeline.tools.records.trial_names import TRANSFORMED
from ridgeline.tools.records.vocabulary import PrecisionClass

EXACT, FP64, FP32, TF32, BF16 = (PrecisionClass(p) for p in ("exact", "fp64", "fp32", "tf32", "bf16"))
TRIALS = ("nominal_0", "nominal_1", *(t for t in TRANSFORMED if t not in ("mixture", "few_outliers")))
DRAW = "torch.randn(64, 1024, dtype=torch.float64)"


class Graded:
    """A reference of one input in float64, and what its examiner says of outputs for each trial."""

    def __init__(self, body: str, *, inputs: str = DRAW, tolerance: PrecisionClass = FP64) -> None:
        self.reference = Reference(SOURCE.format(names="x", inputs=inputs, body=f"        {body}"))
        source = SecretSource(self.reference, b"secret")
        outputs = tuple(map(torch.empty_like, self.reference.run(self.reference.draw_inputs(0))))
        memory: Any = SimpleNamespace(
            parameters={}, inputs=[self.reference.draw_inputs(0)], outputs=[outputs], n_sets=1, device=Cpu()
        )
        self.book = CaseBook(self.reference, source, memory, budget_bytes=1 << 26)
        self.examiner = Examiner(self.book, TRIALS, memory, self.reference, tolerance)

    def x(self, trial: str = "nominal_0") -> torch.Tensor:
        return self.book.case(trial).inputs[0]

    def __call__(self, *outputs: torch.Tensor, trial: str = "nominal_0") -> Grade:
        return self.examiner._grader.grade(outputs, self.book.case(trial))


def sums_one_by_one(x: torch.Tensor) -> torch.Tensor:
    """Return the sums of rows, each number added to the last sum."""
    return x.cumsum(-1)[..., -1]


def softmax(x: torch.Tensor) -> torch.Tensor:
    e = (x - x.amax(-1, keepdim=True)).exp()
    return e / sums_one_by_one(e)[..., None]


def layer_norm(x: torch.Tensor) -> torch.Tensor:
    mean = sums_one_by_one(x) / x.shape[-1]
    variance = sums_one_by_one(x * x) / x.shape[-1] - mean * mean  # in one pass
    return (x - mean[..., None]) * (variance[..., None] + 1e-5).rsqrt()


def product(x: torch.Tensor) -> torch.Tensor:
    parts = [a @ b.T for a, b in zip(x.split(16, -1), x.split(16, -1), strict=True)]
    return torch.stack(parts).flip(0).cumsum(0)[-1]


WORK = [
    ("return torch.softmax(x, -1)", softmax),
    ("return torch.nn.functional.layer_norm(x, (1024,))", layer_norm),
    ("return x @ x.T", product),
    ("return torch.nn.functional.gelu(x)", lambda x: 0.5 * x * torch.special.erfc(-x * 0.5**0.5)),
]
NAMES = ["softmax", "layer_norm", "product", "gelu"]


@pytest.mark.parametrize(("body", "honest"), WORK, ids=NAMES)
def test_another_order_in_float64_is_fp64_in_every_trial_and_far_from_its_limits(body: str, honest: Any) -> None:
    graded = Graded(body)
    grades = {trial: graded(honest(graded.x(trial)), trial=trial) for trial in TRIALS}
    assert [trial for trial, grade in grades.items() if not grade.passed] == []
    assert loosest([grade.measured for grade in grades.values()]) is FP64
    assert max(grade.nearest.factor for grade in grades.values() if grade.nearest) < NEAR_LIMIT


@pytest.mark.parametrize(("body", "honest"), WORK, ids=NAMES)
def test_what_is_computed_in_float32_is_not(body: str, honest: Any) -> None:
    graded, allowed = Graded(body), Graded(body, tolerance=FP32)
    rounded = honest(graded.x().float()).double()
    grade = graded(rounded)
    assert (grade.passed, grade.measured) == (False, FP32)
    assert grade.nearest is not None and grade.nearest.factor > 1000
    grade = allowed(rounded)
    assert (grade.passed, grade.measured) == (True, FP32)
    assert allowed(honest(allowed.x())).measured is FP64


def test_inputs_alone_rounded_to_float32_are_not() -> None:
    graded = Graded("return x @ x.T")
    rounded = graded.x().float().double()
    assert graded(rounded @ rounded.T).measured is FP32


@pytest.mark.first_case
@pytest.mark.parametrize(
    "body", ["return x.sum(-1)", "return x.sqrt().sum(-1)", "return x.mean()", "return (x * x).mean()"]
)
def test_sums_of_a_million_numbers_one_after_another_are_fp64(body: str) -> None:
    graded = Graded(body, inputs="torch.rand(2, 1 << 20, dtype=torch.float64)")
    for trial in ("nominal_0", "integers"):
        x = graded.x(trial)
        parts = x.sqrt() if "sqrt" in body else x * x if "*" in body else x
        sums = sums_one_by_one(parts.flatten() if "mean" in body else parts)
        grade = graded(sums / x.numel() if "mean" in body else sums, trial=trial)
        assert grade.passed, (trial, grade.nearest)
    if "mean" not in body:  # one number of so many that were rounded may be near by chance
        rounded = graded.x().float().double()
        assert not graded((rounded.sqrt() if "sqrt" in body else rounded).sum(-1)).passed


def test_each_output_is_held_to_its_own_type() -> None:
    graded = Graded("y = x @ x.T; return y, y.float()")
    y = graded.x() @ graded.x().T
    assert graded(y, y.float()).passed_by == (True, True)
    wide = (graded.x().float() @ graded.x().float().T).double()
    grade = graded(wide, wide.float())
    assert (grade.passed_by, grade.output) == ((False, True), 0)


def test_a_reference_that_computes_in_float32_asks_for_no_more() -> None:
    graded = Graded("return (x.float() @ x.float().T).double()")
    product = sums_one_by_one(graded.x().float()[:, None] * graded.x().float()[None])
    assert graded(product.double()).measured is FP32 and graded(product.double()).passed
    rounded = graded.x().bfloat16().float()
    assert not graded((rounded @ rounded.T).double()).passed


@pytest.mark.parametrize(
    ("body", "is_double"),
    [
        ("return x @ x.T * torch.tensor(2.0)", True),
        ("return x @ x.T + (x > 0).sum()", True),
        ("return x @ x.T * torch.linspace(0, 1, 64)", False),
        ("return x @ x.T * (x[:, :64] > 0).float()", True),
        ("return x @ x.T * torch.ones(64, 64).tril()", True),
        ("return x @ x.T + torch.eye(64) + 0.5 * torch.arange(64.0)", True),
        ("return x @ x.T * (torch.ones(64, 64).tril() / 3)", False),
        ("return x @ x.T + x.sum().float()", False),
        ("return x @ x.T + x[:, :64].half()", False),
        ("return x.float().mean().double()", False),
    ],
)
def test_a_cast_of_many_numbers_on_the_way_tells(body: str, is_double: bool) -> None:
    graded = Graded(body)
    assert graded.examiner._grader.accepted == ((FP64,) if is_double else (FP32,))


def test_what_is_given_in_float32_is_as_good_as_any() -> None:
    graded = Graded("return x.T.double() @ x.double()", inputs="torch.randn(64, 64)")
    right = graded.x().T.double() @ graded.x().double()
    assert graded(right).passed
    assert not graded((graded.x().T @ graded.x()).double()).passed


def test_fp64_is_of_outputs_in_float64_alone() -> None:
    assert accepted_classes(FP64, ("float64",)) == (FP64,)
    assert accepted_classes(FP32, ("float64",)) == (FP64, FP32)
    assert accepted_classes(FP32, ("float64", "int64")) == (FP64, FP32)
    assert accepted_classes(FP64, ("float32",)) == accepted_classes(FP32, ("float32",)) == (FP32,)
    assert accepted_classes(FP64, ("int64",)) == (FP32,)
    assert accepted_classes(FP64, ("bfloat16",)) == (BF16,)
    assert accepted_classes(TF32, ("float64", "float32")) == (FP32, TF32)
    assert not allows_tf32(FP64, ("float64",), ("float64",)) and allows_tf32(TF32, ("float64",), ("float64",))
    assert not FP64.is_reduced


def test_it_is_told_as_fp32_where_no_output_is_in_float64() -> None:
    assert asked_of(FP64, ("float32", "int64")) is FP32
    assert asked_of(FP64, ("float32", "float64")) is FP64
    assert asked_of(BF16, ("float32",)) is BF16


def test_a_timed_output_is_held_to_fp64() -> None:
    graded = Graded("return torch.softmax(x, -1)")
    memory: Any = graded.examiner._memory
    (x,) = memory.inputs[0]
    memory.outputs[0][0].copy_(softmax(x))
    assert graded.examiner.check(0).passed
    memory.outputs[0][0].copy_(softmax(x.float()))
    assert not graded.examiner.check(0).passed


def test_a_row_of_float64_far_below_the_rest_is_kept() -> None:
    sized = (
        DRAW.replace("64, 1024", "64, 64") + " * torch.where(torch.arange(64) % 8 == 3, 1e-14, 1.0).double()[:, None]"
    )
    graded = Graded("return x @ x[:8].repeat(1, 8).view(64, 64)", inputs=sized)
    right = graded.x() @ graded.x()[:8].repeat(1, 8).view(64, 64)
    assert graded(right * (1 + 1e-15)).passed
    lost = graded(torch.where((torch.arange(64) % 8 == 3)[:, None], 0.0, right))
    assert not lost.passed and lost.lost is not None and len(lost.lost) == 8
