"""A judge that draws from another secret: other trials, their own expected outputs, and a reference that refuses some."""

from __future__ import annotations

import pytest
import torch
from tests.tools.judge.worker.made import SOURCE, loading

from ridgeline.tools.judge.messages import Examine, Prepare, Redraw
from ridgeline.tools.judge.replies import Graded
from ridgeline.tools.judge.worker.judge import Judge
from ridgeline.tools.records.error_map import Measure

SECRETS = ("00" * 16, "01" * 16, "02" * 16)


@pytest.fixture(scope="module")
def judge() -> Judge:
    source = SOURCE.format(names="x", inputs="torch.randn(16, 64)", body="        return torch.sin(x)")
    return Judge(loading(source, SECRETS[0]))


def graded(judge: Judge, trial: str, factor: float = 1.0) -> tuple[torch.Tensor, Graded]:
    """Return a trial's input, and the grade of the right output times `factor`."""
    judge.prepare(Prepare(trial=trial, set_index=0, nan=True))
    given = judge.memory.inputs[0][0].clone()
    judge.memory.outputs[0][0].copy_(factor * torch.sin(given.double()))
    found = judge.examine(Examine(trial=trial, set_index=0))
    assert isinstance(found, Graded)
    return given, found


@pytest.mark.parametrize("trial", ["nominal_0", "tweaked_1", "shifted", "extra_3"])
def test_each_secret_has_its_own_inputs_and_expected_outputs(judge: Judge, trial: str) -> None:
    seen = []
    for secret in (*SECRETS, SECRETS[0]):
        judge.redraw(Redraw(secret=secret))
        seen.append(graded(judge, trial))
    assert all(found.trial.passed for _, found in seen)
    first, second, third, again = (given for given, _ in seen)
    assert torch.equal(first, again)
    assert not torch.equal(first, second) and not torch.equal(second, third)


def test_a_grade_names_the_figure_that_is_nearest_to_its_limit(judge: Judge) -> None:
    _, near = graded(judge, "nominal_0", 1 + 6e-6)
    assert near.trial.passed and near.trial.nearest is not None
    assert near.trial.nearest.measure is Measure.OUTPUT
    assert near.trial.nearest.factor == pytest.approx(0.6, abs=0.05)
    _, beyond = graded(judge, "nominal_0", 1 + 1.5e-5)
    assert not beyond.trial.passed and beyond.trial.nearest is not None
    assert beyond.trial.nearest.factor == pytest.approx(1.5, abs=0.1)


def test_a_trial_that_the_reference_refuses_under_a_fresh_secret_is_drawn_again(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusals = iter(["raised ValueError", "raised ValueError", ""])
    monkeypatch.setattr(judge._redraws, "_objection", lambda _trial: next(refusals))
    judge.redraw(Redraw(secret=SECRETS[1]))
    given, found = graded(judge, "shifted")
    assert found.trial.passed
    assert next(refusals, None) is None
    monkeypatch.undo()
    judge.redraw(Redraw(secret=SECRETS[1]))
    assert not torch.equal(given, graded(judge, "shifted")[0])


def test_a_trial_that_every_fresh_secret_makes_wrong_is_drawn_from_the_first_one(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge.redraw(Redraw(secret=SECRETS[0]))
    first = graded(judge, "row_scaled")[0]
    monkeypatch.setattr(judge._redraws, "_objection", lambda _trial: "raised AssertionError")
    judge.redraw(Redraw(secret=SECRETS[1]))
    given, found = graded(judge, "row_scaled")
    assert torch.equal(given, first) and found.trial.passed
