"""What several limits ask of a case is made once, within a bound, and gives the same grades."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import torch
from tests.tools.judge.worker.grading.judged import Judged, sums_by_lanes
from tests.tools.judge.worker.made import made

from ridgeline.tools.judge.worker.grading.cases import class_errors
from ridgeline.tools.judge.worker.grading.cases.made_outputs import MadeOutputs
from ridgeline.tools.judge.worker.grading.grades import Grade
from ridgeline.tools.judge.worker.grading.limits import plain_sums

ROWS, WIDTH = 256, 2048
BODY = ("return x.abs().sum(-1), x.pow(2).sum(-1)",)
CASE = "few_outliers"


class Counted:
    """How often a judged problem's outputs were made, by what was asked for, while a kernel of few lanes was graded."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, judged: Judged) -> None:
        self.made: Counter[object] = Counter()
        self._judged = judged
        plain, moved = plain_sums.PlainSums.__init__, class_errors.moved_operands

        def sums(mode: Any, lanes: Any) -> None:
            self.made[lanes] += 1
            plain(mode, lanes)

        def operands(case: Any, relative: float, rng_seed: int) -> Any:
            self.made[relative, rng_seed] += 1
            return moved(case, relative, rng_seed)

        monkeypatch.setattr(plain_sums.PlainSums, "__init__", sums)
        monkeypatch.setattr(class_errors, "moved_operands", operands)

    def grade(self) -> Grade:
        case = self._judged.book.case(CASE)
        x = case.inputs[0]
        return self._judged.examiner._grader.grade((sums_by_lanes(x.abs(), 1), sums_by_lanes(x * x, 1)), case)


def judged() -> Judged:
    return Judged("x", f"torch.rand({ROWS}, {WIDTH})", *BODY)


def test_each_way_is_made_once_for_the_limits_of_all_outputs_and_of_their_parts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counted = Counted(monkeypatch, judged())
    counted.grade()
    assert len(counted.made) > 4 and set(counted.made.values()) == {1}


def test_without_room_they_are_made_again_and_the_grades_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    grades = []
    for room in (True, False):
        problem = judged()
        problem.book.made.room_bytes *= room
        counted = Counted(monkeypatch, problem)
        grades.append(counted.grade())
    assert max(counted.made.values()) > 1
    assert grades[0] == grades[1]


def test_outputs_of_one_case_take_the_place_of_another_ones() -> None:
    numbers = torch.ones(8)
    outputs, made, cases = MadeOutputs(2 * numbers.nbytes), [], [_Asked(), _Asked()]

    def make() -> tuple[torch.Tensor, ...]:
        made.append(1)
        return (numbers.clone(),)

    for what in ("a", "b", "c", "a", "b"):
        outputs.once(cases[0], what, make)
    assert len(made) == 3, "the third has no room"
    outputs.once(cases[0], "c", make)
    outputs.once(cases[1], "a", make)
    outputs.once(cases[1], "a", make)
    assert len(made) == 5
    outputs.once(cases[0], "a", make)
    outputs.clear()
    outputs.once(cases[0], "a", make)
    assert len(made) == 7


class _Asked:
    pass


def test_what_is_no_output_is_kept_too() -> None:
    outputs, made, case = MadeOutputs(), [], _Asked()
    assert all(outputs.once(case, "refused", lambda: made.append(1)) is None for _ in range(3))
    assert len(made) == 1


def test_they_share_the_room_of_the_case_that_is_held() -> None:
    book = made("x", "torch.randn(8, 32)", "return 2 * x", budget_bytes=0, held_bytes=1 << 20).book
    case = book.case("shifted")
    assert book.made.room_bytes == (1 << 20) - case.size_bytes
    book.let_go()
    assert book.made.room_bytes == 1 << 20


def test_what_is_kept_of_a_parameter_keeps_its_numbers() -> None:
    kept, case, parameter = MadeOutputs(1 << 20), torch.empty(0), torch.nn.Parameter(torch.ones(4))
    kept.once(case, "weight", lambda: (parameter,))
    parameter.data = torch.zeros(4)
    found = kept.once(case, "weight", lambda: None)
    assert found is not None and torch.equal(found[0], torch.ones(4))
