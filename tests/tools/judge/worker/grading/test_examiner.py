"""What is found missing in a first run, in a second one and in a timed output, and where it is looked for."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tests.tools.judge.worker.made import SOURCE

from ridgeline.tools.judge.replies import Beyond, Different, Graded, Missing, Same
from ridgeline.tools.judge.worker.device import Cpu
from ridgeline.tools.judge.worker.grading import examiner, grades
from ridgeline.tools.judge.worker.grading.cases.case_book import CaseBook
from ridgeline.tools.judge.worker.grading.examiner import Examiner
from ridgeline.tools.judge.worker.grading.limits.plain_sums import PLAIN_WAYS
from ridgeline.tools.judge.worker.inputs.source import SecretSource
from ridgeline.tools.judge.worker.reference import Reference
from ridgeline.tools.records.precision import Errors, Gate, gate_for
from ridgeline.tools.records.trial_names import MORE_PARALLEL_ROWS
from ridgeline.tools.records.vocabulary import PrecisionClass

TRIAL = "nominal_0"


class Bench:
    """An examiner of one set, whose outputs the reference itself writes."""

    def __init__(self, body: str, trials: tuple[str, ...] = (TRIAL,)) -> None:
        self.reference = Reference(
            SOURCE.format(names="x", inputs="torch.randn(40, 64)", body=f"        return {body}")
        )
        self.source = source = SecretSource(self.reference, b"secret")
        inputs = self.reference.draw_inputs(0)
        outputs = tuple(map(torch.empty_like, self.reference.run(inputs)))
        behind = tuple(torch.zeros(24, dtype=torch.uint8) for _ in outputs)
        self.memory: Any = SimpleNamespace(
            parameters={}, inputs=[inputs], outputs=[outputs], behind_outputs=[behind], n_sets=1, device=Cpu()
        )
        self.book = CaseBook(self.reference, source, self.memory, budget_bytes=1 << 24)
        self.examiner = Examiner(self.book, trials, self.memory, self.reference, PrecisionClass.FP32)

    def run(self, *left_out: tuple[int, ...]) -> None:
        """Write the outputs, but for these elements of the first one."""
        results = self.reference.run(self.memory.inputs[0])
        for i, (output, result) in enumerate(zip(self.memory.outputs[0], results, strict=True)):
            kept = [(place, output[place].clone()) for place in left_out if i == 0]
            output.copy_(result)
            for place, value in kept:
                output[place] = value

    def first_run(self, *left_out: tuple[int, ...]) -> object:
        self.examiner.prepare(TRIAL, 0, nan=True)
        self.run(*left_out)
        return self.examiner.examine(TRIAL, 0)

    def second_run(self, *left_out: tuple[int, ...]) -> object:
        self.examiner.poison(0, nan=False)
        self.run(*left_out)
        return self.examiner.examine_repeat(TRIAL, 0)


BODIES = {
    "numbers": "x.exp()",
    "nan": "torch.where(x > 1, x * float('nan'), x)",
    "infinities": "torch.where(x > 1, x * float('inf'), x)",
    "integers": "(1000 * x).to(torch.int32)",
    "several": "2 * x, (1000 * x).to(torch.int32)",
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_an_element_that_either_run_leaves_out_is_missing(body: str) -> None:
    bench = Bench(body)
    found = bench.first_run((7, 3))
    assert isinstance(found, Missing)
    assert (found.count, found.total, found.first, found.width) == (1, 40 * 64, 7 * 64 + 3, 64)
    found = bench.first_run()
    assert isinstance(found, Graded) and found.trial.passed
    assert bench.second_run() == Same()
    found = bench.second_run((7, 3), (9, 1))
    assert isinstance(found, Missing) and found.count == 2
    assert not bench.examiner.changed(0), "of what goes on being written, the output of this very run tells"
    bench.run()
    assert bench.examiner.changed(0)


@pytest.mark.parametrize("is_rounded", [True, False])
def test_only_errors_that_lie_as_rounding_has_them_are_called_so(*, is_rounded: bool) -> None:
    bench = Bench(BODIES["numbers"])
    bench.examiner.prepare(TRIAL, 0, nan=True)
    [right] = bench.reference.run(bench.memory.inputs[0])
    bench.memory.outputs[0][0].copy_(right.bfloat16() if is_rounded else right * 1.002)
    found = bench.examiner.examine(TRIAL, 0)
    assert isinstance(found, Graded) and found.measured is PrecisionClass.BF16
    assert found.is_like_rounding is is_rounded


def test_a_write_behind_any_output_is_seen_in_either_run() -> None:
    bench = Bench(BODIES["several"])
    for index, name in enumerate(bench.examiner.names):
        bench.examiner.prepare(TRIAL, 0, nan=True)
        bench.run()
        assert isinstance(bench.examiner.examine(TRIAL, 0), Graded)
        bench.memory.behind_outputs[0][index][5] ^= 1
        assert bench.examiner.examine(TRIAL, 0) == Beyond(output=name, count=1, first=5)
        bench.examiner.poison(0, nan=False)
        bench.run()
        assert bench.examiner.examine_repeat(TRIAL, 0) == Same()
        bench.memory.behind_outputs[0][index][-2:] = 0
        assert bench.examiner.examine_repeat(TRIAL, 0) == Beyond(output=name, count=2, first=22)


def test_what_lies_behind_outputs_is_a_secret_and_not_zero() -> None:
    bench, found = Bench(BODIES["several"]), set()
    for _ in range(64):
        bench.examiner.poison(0, nan=True)
        held = torch.unique(torch.cat(bench.memory.behind_outputs[0]))
        assert held.numel() == 1
        found.add(int(held))
    assert 0 not in found and len(found) > 32


def test_poison_is_missing_also_where_nan_is_expected() -> None:
    bench = Bench(BODIES["nan"])
    bench.first_run()
    place = tuple(map(int, torch.isnan(bench.memory.outputs[0][0]).nonzero()[0]))
    assert isinstance(bench.first_run(place), Missing)
    assert isinstance(bench.first_run(), Graded)


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_values_that_are_left_to_rounding_are_asked_to_be_finite_where_they_should_be_and_no_more(body: str) -> None:
    bench = Bench(body)
    bench.source.arrangements[MORE_PARALLEL_ROWS] = lambda inputs, _: inputs
    examiner, outputs = bench.examiner, bench.memory.outputs[0]

    def graded(turn: int) -> Graded | Different:
        bench.run()
        for each in outputs:
            each.add_(torch.where(torch.randn(each.shape) > turn, 1000, -1000).to(each.dtype))
        found = examiner.examine_repeat(MORE_PARALLEL_ROWS, 0) if turn else examiner.examine(MORE_PARALLEL_ROWS, 0)
        assert isinstance(found, Graded | Different)
        return found

    examiner.prepare(MORE_PARALLEL_ROWS, 0, nan=True)
    first = graded(0)
    assert isinstance(first, Graded) and first.trial.passed and examiner.check_trial(MORE_PARALLEL_ROWS, 0).passed
    second = graded(1)
    assert isinstance(second, Different) and second.graded.trial.passed and second.difference == 0
    if outputs[0].is_floating_point():
        place = tuple(outputs[0].isfinite().nonzero()[0].tolist())
        outputs[0][place] = math.nan
        wrong = examiner.examine(MORE_PARALLEL_ROWS, 0)
        assert isinstance(wrong, Graded) and not wrong.trial.passed and wrong.non_finite is not None
        assert wrong.non_finite.index == place
        assert not examiner.check_trial(MORE_PARALLEL_ROWS, 0).passed


def test_a_second_run_of_other_bits_is_different() -> None:
    bench = Bench(BODIES["numbers"])
    bench.first_run()
    bench.examiner.poison(0, nan=False)
    bench.run()
    bench.memory.outputs[0][0][3, 4] *= 1 + 1e-6
    found = bench.examiner.examine_repeat(TRIAL, 0)
    assert isinstance(found, Different) and found.graded.trial.passed


def test_a_second_run_that_gives_an_earlier_trials_output_says_so() -> None:
    bench = Bench(BODIES["numbers"], ("nominal_1", TRIAL))
    bench.first_run()
    bench.examiner.poison(0, nan=False)
    bench.memory.outputs[0][0].copy_(bench.book.case("nominal_1").expected[0].values)
    found = bench.examiner.examine_repeat(TRIAL, 0)
    assert isinstance(found, Different) and found.graded.stale == "nominal_1"


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_a_timed_output_with_an_element_left_out_fails(body: str) -> None:
    bench = Bench(body)
    for left_out in ((), ((7, 3),)):
        bench.examiner.prepare(TRIAL, 0, nan=True)
        bench.run(*left_out)
        trial = bench.examiner.check(0)
        assert trial.passed is not bool(left_out)
    assert trial.rel_error == 1e300 and math.isclose(trial.gate, 0.0)


def test_outputs_of_timed_sets_hold_either_kind_of_poison() -> None:
    bench, found = Bench(BODIES["numbers"]), set()
    for _ in range(64):
        bench.examiner.poison_timed(0)
        assert bench.examiner.is_unwritten(0)
        found.add(bool(bench.memory.outputs[0][0].isnan().all()))
    assert found == {True, False}


def test_numbers_that_were_compared_are_not_looked_through_for_poison(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(BODIES["numbers"])

    def look(*_args: object) -> None:
        raise AssertionError("looked for poison")

    monkeypatch.setattr(examiner, "unwritten", look)
    assert isinstance(bench.first_run(), Graded)
    assert bench.second_run() == Same()
    bench.examiner.poison(0, nan=True)
    bench.run()
    assert bench.examiner.check(0).passed


@pytest.mark.parametrize(
    ("off_by", "is_all", "measured", "limits"),
    [
        (0.0, True, "fp32", [("fp32", "alone")]),
        (3.5e-4, False, "fp32", [("fp32", "alone"), ("fp32", "again"), ("fp32", "with sums")]),
        (2e-4, True, "tf32", [("fp32", "alone"), ("fp32", "again"), ("tf32", "alone")]),
    ],
    ids=["right", "near a limit", "of a looser class"],
)
def test_a_class_s_limits_are_built_once_for_an_output(
    monkeypatch: pytest.MonkeyPatch, off_by: float, is_all: bool, measured: str, limits: list[tuple[str, str]]
) -> None:
    bench = Bench(BODIES["numbers"])
    bench.examiner.prepare(TRIAL, 0, nan=True)
    bench.run()
    output = bench.memory.outputs[0][0]
    output[(output == output.min()) | is_all] += off_by * float(output.square().mean().sqrt())
    built: list[tuple[str, str]] = []

    def noted(precision: PrecisionClass, own: Errors, **rest: Any) -> Gate:
        own_or_plain = "again" if (precision.value, "alone") in built else "alone"
        built.append((precision.value, "with sums" if "sums" in rest else own_or_plain))
        return gate_for(precision, own, **rest)

    monkeypatch.setattr(grades, "gate_for", noted)
    found = bench.examiner.examine(TRIAL, 0)
    assert isinstance(found, Graded) and found.measured == measured
    assert built.count(limits[0]) == 1 and built.count(("fp32", "again")) <= len(PLAIN_WAYS) + 1  # and a neighbour
    assert list(dict.fromkeys(built))[: len(limits)] == limits  # what last bits decide is graded after them


@pytest.mark.parametrize(
    "body", ["(4 * x).exp().half()", "((200 * x).half() ** 2) ** 0.5"], ids=["values", "arithmetic"]
)
def test_a_timed_output_is_graded_where_other_elements_are_beyond_the_type(body: str) -> None:
    bench = Bench(body)
    bench.run()
    output = bench.memory.outputs[0][0]
    assert not output.isfinite().all()
    assert bench.examiner.check(0).passed
    for wrong in (
        torch.zeros_like(output),
        torch.full_like(output, math.inf),
        output.where(output.isinf(), 1.01 * output),
    ):
        output.copy_(wrong)
        assert not bench.examiner.check(0).passed


def test_an_output_is_an_earlier_call_s_only_where_it_is_nearer_to_that_than_to_its_own() -> None:
    names = ("nominal_0", "nominal_1", "tweaked_1")  # the last two differ in a run of one input
    bench = Bench("(2 * x).softmax(-1)", names)
    before, own = (bench.book.case(name).expected[0].values for name in names[1:])
    apart = float((own - before).norm() / (own - own.mean()).norm())
    assert 0 < apart < examiner._STALE, "as near to one another as an output is to the call that it is from"
    for output, stale in ((own * (1 + apart / 8), ""), (before, "nominal_1")):
        bench.examiner.prepare(names[2], 0, nan=True)
        bench.memory.outputs[0][0].copy_(output)
        found = bench.examiner.examine(names[2], 0)
        assert isinstance(found, Graded) and not found.trial.passed
        assert found.stale == stale


def test_a_case_takes_what_is_kept_of_it() -> None:
    bench = Bench("x.exp()")
    case = bench.book.case(TRIAL)
    before = case.size_bytes
    part = bench.book.well_conditioned(case, 0, PrecisionClass.FP32)
    assert part is not None
    assert case.size_bytes == before + part.chosen.numel() + 8 * part.want.numel()
