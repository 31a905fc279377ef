"""Rows far below the rest are compared with their own size, where they are more than luck."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tests.tools.judge.worker.made import SOURCE

from ridgeline.tools.judge.worker.device import Cpu
from ridgeline.tools.judge.worker.grading.cases.case import Case
from ridgeline.tools.judge.worker.grading.cases.case_book import CaseBook
from ridgeline.tools.judge.worker.grading.examiner import Examiner
from ridgeline.tools.judge.worker.grading.grades import Grade
from ridgeline.tools.judge.worker.grading.outputs.expected import expect
from ridgeline.tools.judge.worker.grading.outputs.small_rows import Moved, kept_rows
from ridgeline.tools.judge.worker.inputs.source import SecretSource
from ridgeline.tools.judge.worker.reference import Reference
from ridgeline.tools.measure.grade_words import explain_grade
from ridgeline.tools.records.error_map import Measure
from ridgeline.tools.records.precision import LOST_ROW, NEAR_LIMIT, ROW_SCALE_FLOOR, accepted_classes, small_share
from ridgeline.tools.records.vocabulary import PrecisionClass

FP32, TF32, FP16, BF16, FP8, CRFM = (PrecisionClass(p) for p in ("fp32", "tf32", "fp16", "bf16", "fp8", "crfm"))
ROWS, SMALL = 64, 1e-6
SIZED = f"torch.randn({ROWS}, {ROWS}) * torch.where(torch.arange({ROWS}) % 8 == 3, {SMALL}, 1.0)[:, None]"
IS_SMALL = torch.arange(ROWS) % 8 == 3

PRODUCT = "return x @ x[:8].repeat(1, 8).view(64, 64)"


class Graded:
    """A reference of rows of two sizes, and what its examiner says of outputs for the first nominal trial."""

    def __init__(self, *body: str, tolerance: PrecisionClass = FP32, inputs: str = SIZED) -> None:
        lines = "\n".join(f"        {line}" for line in body)
        self.reference = Reference(SOURCE.format(names="x", inputs=inputs, body=lines))
        source = SecretSource(self.reference, b"secret")
        outputs = tuple(map(torch.empty_like, self.reference.run(self.reference.draw_inputs(0))))
        self.memory: Any = SimpleNamespace(
            parameters={},
            inputs=[self.reference.draw_inputs(0)],
            outputs=[outputs],
            behind_outputs=[(torch.empty(8, dtype=torch.uint8),)],
            n_sets=1,
            device=Cpu(),
        )
        self.book = CaseBook(self.reference, source, self.memory, budget_bytes=1 << 24)
        self.examiner = Examiner(self.book, ("nominal_0",), self.memory, self.reference, tolerance)
        self.case = self.book.case("nominal_0")
        self.right = self.reference.run(self.case.inputs)[0]

    def __call__(self, output: torch.Tensor) -> Grade:
        return self.examiner.grade_reference((output,))

    def without_small_rows(self, value: float = 0.0) -> torch.Tensor:
        return torch.where(IS_SMALL[:, None], torch.full_like(self.right, value), self.right)

    def small_row_times(self, factor: float) -> torch.Tensor:
        return torch.where(IS_SMALL[:, None], factor * self.right, self.right)


def test_rows_that_the_limit_of_rows_does_not_see_may_not_be_anything() -> None:
    graded = Graded(PRODUCT)
    assert graded(graded.right).passed
    for value in (0.0, 1e-7):
        grade = graded(graded.without_small_rows(value))
        assert (grade.passed, grade.measured) == (False, None)
        assert grade.lost is not None and grade.lost.places.tolist() == IS_SMALL.nonzero().flatten().tolist()
        assert grade.nearest is not None and (grade.nearest.measure, grade.nearest.limit) == (
            Measure.SMALL_ROW,
            LOST_ROW,
        )
        assert grade.errors.worst_row < 1e-4


@pytest.mark.parametrize("tolerance", [FP32, TF32, BF16])
def test_honest_rows_are_right_in_each_class(tolerance: PrecisionClass) -> None:
    graded = Graded(PRODUCT, tolerance=tolerance)
    rounded = graded.case.inputs[0].bfloat16().float()
    output = graded.right if tolerance is not BF16 else rounded @ rounded[:8].repeat(1, 8).view(64, 64)
    assert graded(output).passed
    assert not graded(torch.where(IS_SMALL[:, None], 0.0, output)).passed


def test_a_class_whose_range_ends_before_may_lose_them() -> None:
    graded = Graded(PRODUCT, tolerance=FP16, inputs=SIZED.replace("1e-06", "1e-9"))
    assert graded(graded.without_small_rows()).passed
    assert not Graded(PRODUCT, tolerance=TF32)(graded.without_small_rows()).passed


def test_honest_outputs_are_asked_for_only_where_a_small_row_is_far_off() -> None:
    graded = Graded(PRODUCT)
    asked = []

    def honest() -> Any:
        asked.append(True)
        return graded.book.honest(graded.case, 0, (FP32,))

    (want,) = graded.case.expected
    for output in (graded.right, graded.small_row_times(1 + 0.9 * NEAR_LIMIT * LOST_ROW)):
        kept = kept_rows(output, want, FP32, honest)
        assert kept is not None and kept.lost is None and kept.worst <= NEAR_LIMIT * LOST_ROW
    assert not asked
    near = kept_rows(graded.small_row_times(1.2), want, FP32, honest)
    assert near is not None and near.lost is None and near.worst == pytest.approx(0.2, rel=1e-3) and asked


def test_a_small_row_near_its_limit_is_the_nearest_figure() -> None:
    graded = Graded(PRODUCT)
    grade = graded(graded.small_row_times(1.2))
    assert grade.passed and grade.nearest is not None
    assert grade.nearest.measure is Measure.SMALL_ROW and grade.nearest.factor == pytest.approx(0.8, rel=1e-3)
    assert not graded(graded.small_row_times(1.3)).passed


@pytest.mark.parametrize(
    ("body", "inputs"),
    [
        ("return x - x.mean(-1, keepdim=True)", "torch.where(torch.arange(64)[:, None] % 8 == 3, 1 + 1e-6 * X, X)"),
        ("return (x + 1e4 * (x.abs() < 1e-4)) - 1e4 * (x.abs() < 1e-4)", SIZED),
        ("return x * 1e-6 ** (torch.arange(64) % 8 == 3)[:, None]", "torch.randint(-9, 9, (64, 64)).float()"),
        ("return torch.where(torch.arange(64) < 15, 0.3 * x, 0.0)", SIZED),
        ("return 0.3 * x.abs()", SIZED.replace("1e-06", "1e-32")),
        ("return 0.3 * x.abs()[:, :15]", SIZED),
        ("return (1e-2 * x).abs().half()", SIZED.replace("1e-06", "1e-4")),
    ],
    ids=[
        "moves with the operands",
        "PyTorch loses it",
        "whole numbers",
        "few numbers",
        "out of range",
        "short",
        "half",
    ],
)
def test_what_is_left_of_a_row_by_luck_may_be_anything(body: str, inputs: str) -> None:
    graded = Graded(body, inputs=inputs.replace("X", "torch.randn(64, 64)"))
    assert graded(graded.right).passed
    grade = graded(graded.without_small_rows())
    assert grade.lost is None and grade.errors.overall > 0
    assert grade.passed


def test_a_variance_in_one_pass_may_lose_small_rows() -> None:
    spread = "torch.where(torch.arange(64) % 8 == 3, 1e-4, 1.0)[:, None, None]"
    graded = Graded("return x.var(1)", inputs=f"torch.randn(64, 8, 64) * {spread} + 2 * ({spread} < 1)")
    (x,) = graded.case.inputs
    in_one_pass = ((x * x).sum(1) - x.sum(1) ** 2 / 8) / 7
    assert graded(in_one_pass).passed


def test_the_1e_2_rule_does_not_ask_for_small_rows() -> None:
    graded = Graded(PRODUCT, tolerance=CRFM)
    assert graded(graded.without_small_rows()).passed


def test_rows_are_small_below_what_the_limit_of_rows_lets_pass() -> None:
    assert [small_share(p) for p in (FP32, TF32, FP16, BF16, FP8)] == pytest.approx(
        [6.4e-5, 4e-4, 4e-4, 3.2e-3, 3.2e-3]
    )
    assert small_share(FP32) < ROW_SCALE_FLOOR
    # the smallest row of the trial `row_scaled` is none in fp32: neighbours of other sizes cost a fast algorithm digits
    scales = torch.exp2(torch.linspace(-5, 5, 512, dtype=torch.float64))
    assert expect(scales[:, None] * torch.randn(512, 512)).small is None


def test_nothing_is_lost_where_nothing_can_be_told() -> None:
    graded = Graded(PRODUCT)
    (want,) = graded.case.expected
    lost = graded.without_small_rows()
    honest = list(graded.book.honest(graded.case, 0, accepted_classes(FP32, ("float32",))))
    assert all(isinstance(each, Moved) for each in honest) and sum(each.by_operands for each in honest if each) > 1
    found = kept_rows(lost, want, FP32, lambda: iter(honest))
    assert found is not None and found.lost is not None
    assert kept_rows(lost, want, FP32, lambda: iter([None, *honest])) is None


def test_infinite_elements_of_a_small_row_count_for_nothing() -> None:
    graded = Graded("return (x @ x.T).masked_fill(torch.ones(64, 64).triu(40) == 1, -torch.inf)")
    assert graded(graded.right).passed
    assert graded(torch.where(torch.isinf(graded.right), graded.right, graded.without_small_rows())).lost is not None


def test_the_map_of_the_error_has_the_lost_rows() -> None:
    graded = Graded(PRODUCT)
    graded.examiner.prepare("nominal_0", 0, nan=True)
    graded.memory.outputs[0][0].copy_(graded.without_small_rows())
    found: Any = graded.examiner.examine("nominal_0", 0)
    assert (found.trial.passed, found.measured, found.lost_rows, found.error_map.wrong) == (False, None, 8, 8 * 64)
    assert 0.5e-6 < found.lost_share < 2e-6
    assert found.worst is not None and (found.worst.index[0] % 8, found.worst.got) == (3, 0.0)
    reason = explain_grade(found, FP32).reason
    assert "8 rows of out" in reason and "small row's error 1, gate 0.25" in reason and "each of those is 0" in reason


def test_a_timed_output_has_its_small_rows() -> None:
    graded = Graded(PRODUCT)
    graded.memory.parameters, (inputs,) = {}, graded.memory.inputs
    (right,) = graded.reference.run(inputs)
    (output,) = graded.memory.outputs[0]
    output.copy_(right)
    assert graded.examiner.check(0).passed
    output[IS_SMALL] = 0.0
    trial = graded.examiner.check(0)
    assert not trial.passed and trial.nearest is not None and trial.nearest.measure is Measure.SMALL_ROW


def test_one_output_keeps_its_small_rows_by_itself() -> None:
    graded = Graded("return x @ x.T, x.half()")
    right = graded.reference.run(graded.case.inputs)
    lost = (torch.where(IS_SMALL[:, None], 0.0, right[0]), right[1])
    assert graded.examiner.grade_reference(right).passed
    grade = graded.examiner.grade_reference(lost)
    assert grade.passed_by == (False, True)
    assert isinstance(graded.case, Case)


@pytest.mark.parametrize(("size", "is_asked_for"), [(1e-20, True), (1e-145, True), (1e-200, False)])
def test_rows_of_float64_are_asked_for_down_to_its_own_range(size: float, is_asked_for: bool) -> None:
    rows = torch.randn(ROWS, ROWS, dtype=torch.float64)
    rows[IS_SMALL] *= size
    want = expect(rows)
    lost = torch.where(IS_SMALL[:, None], torch.zeros_like(rows), rows)
    moved = Moved(output=rows * (1 + 1e-15), allowed=1.0, by_operands=True)
    kept = want.small and kept_rows(lost, want, PrecisionClass.FP64, lambda: iter([moved]))
    assert bool(kept and kept.lost) is is_asked_for
