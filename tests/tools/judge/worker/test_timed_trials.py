"""A judge that gives a timed block a whole trial: drawn anew, for one of its calls, and graded as the trial is."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from tests.tools.judge.worker.made import loading

from ridgeline.tools.judge.messages import Check, LeaveOut, Prepare, Renew
from ridgeline.tools.judge.worker.judge import Judge
from ridgeline.tools.records.trial_names import (
    CORRIDOR,
    LARGE_MATRICES,
    MOVED_COPY,
    NOT_FINITE,
    ONE_INFINITE,
    ONE_NAN,
    SILENT,
    SOLID,
    TINY_NUMBERS,
    as_kind,
)

ROUNDS = 100
SOURCE = f"""
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(32, 32)

    def forward(self, x):
        z = torch.zeros_like(x)
        for _ in range({ROUNDS}):
            z = torch.tanh(self.layer(z) + x)
        return z


def get_inputs():
    return [torch.randn(16, 32)]


def get_init_inputs():
    return []
"""
KIND = as_kind(LARGE_MATRICES)
ORDER = tuple(range(3))


@pytest.fixture(scope="module")
def judge() -> Judge:
    return Judge(loading(SOURCE, "00" * 16))


def written(judge: Judge, rounds: int) -> int:
    """Ask for the trial, write what so many rounds give into the set that has its inputs, and return the set."""
    renewed = judge.renew(Renew(order=tuple(range(judge.memory.n_sets)), wanted=(KIND,), calls=2))
    [index] = renewed.trial_sets
    assert renewed.kinds == (KIND,) and index in ORDER[:2]
    [x] = judge.memory.inputs[index]
    weight, bias = (judge.memory.parameters[f"layer.{name}"].double() for name in ("weight", "bias"))
    z = torch.zeros_like(x, dtype=torch.float64)
    for _ in range(rounds):
        z = torch.tanh(z @ weight.mT + bias + x)
    judge.memory.outputs[index][0].copy_(z)
    return index


def test_what_only_the_trial_shows_is_seen_in_a_timed_block(judge: Judge) -> None:
    assert KIND in judge.loaded().timed_kinds
    assert judge.check(Check(set_index=written(judge, ROUNDS))).passed
    assert not judge.check(Check(set_index=written(judge, ROUNDS // 2))).passed


def test_an_output_that_nobody_wrote_is_missing(judge: Judge) -> None:
    [index] = judge.renew(Renew(wanted=(KIND,), calls=1)).trial_sets
    assert not judge.check(Check(set_index=index)).passed


def test_contents_that_a_candidate_has_met_never_come_again(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        judge._redraws, "_objection", lambda _trial: ""
    )  # three refusals in a row lead to the first secret
    judge.prepare(Prepare(trial=LARGE_MATRICES, set_index=0, nan=True))
    seen = [judge.memory.inputs[0][0].clone()]
    for _ in range(2):
        [index] = judge.renew(Renew(wanted=(KIND,), calls=1)).trial_sets
        seen.append(judge.memory.inputs[index][0].clone())
    assert not any(torch.equal(a, b) for i, a in enumerate(seen) for b in seen[:i])


def test_a_trial_comes_again_as_it_was_met_where_another_draw_has_no_room(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judge._redraws, "_has_room", False)
    monkeypatch.setattr(judge._redraws, "_objection", lambda _trial: pytest.fail("the reference was asked"))
    judge.prepare(Prepare(trial=LARGE_MATRICES, set_index=0, nan=True))
    met = judge.memory.inputs[0][0].clone()
    [index] = judge.renew(Renew(wanted=(KIND,), calls=1)).trial_sets
    assert torch.equal(judge.memory.inputs[index][0], met)


def test_the_trials_of_a_verification_stay_as_they_were_drawn(judge: Judge) -> None:
    judge.prepare(Prepare(trial="nominal_0", set_index=0, nan=True))
    given, case = judge.memory.inputs[0][0].clone(), judge._book.case("nominal_0")
    for _ in range(2):
        judge.renew(Renew(wanted=(KIND,), calls=1))
    judge.renew(Renew())
    assert judge._book.case("nominal_0") is case
    judge.prepare(Prepare(trial="nominal_0", set_index=0, nan=True))
    assert torch.equal(judge.memory.inputs[0][0], given)


def test_trials_of_silent_inputs_are_kinds_of_sets(judge: Judge) -> None:
    assert set(SILENT) <= set(judge.loaded().timed_kinds)
    judge.renew(Renew(wanted=SILENT, calls=2))
    assert sorted(judge._renewal.trial_sets.values()) == sorted(SILENT)
    for index in judge._renewal.trial_sets:
        [x] = judge.memory.inputs[index]
        assert 0 < int((x != 0).sum()) <= x.numel() // 2


def test_a_trial_that_the_reference_refuses_by_then_is_left_out(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    judge.renew(Renew(wanted=(KIND,), calls=1))
    monkeypatch.setattr(judge, "_refused_now", lambda: {KIND: "ValueError"})
    assert KIND not in judge.leave_out(LeaveOut()).timed_kinds


def test_a_trial_with_other_scalars_is_refused_by_those() -> None:
    given = SOURCE.replace("(self, x)", "(self, x, bound)").replace("32)]", "32), 100.0]")
    given = given.replace("        z = torch.zeros", "        assert bound > 9\n        z = torch.zeros")
    asking = Judge(loading(given, "00" * 16))
    asking.renew(Renew(wanted=(KIND,), calls=1))
    assert asking._refused_now() == {}
    changed = {**asking._book.changes.scalars, LARGE_MATRICES: (1.0,)}
    asking._book.use(replace(asking._book.changes, scalars=changed))
    assert list(asking._refused_now()) == [KIND]


def test_moved_copies_come_in_a_timed_block_drawn_anew() -> None:
    lags = "torch.stack([(x * y.roll(lag, 1)).sum(1) for lag in range(LAGS)]).amax(0)"
    source = SOURCE.replace("[torch.randn(16, 32)]", "[torch.randn(16, 64), torch.randn(16, 64)]")
    head, _, rest = source.partition("    def forward(self, x):")
    of_pair = f"{head}    def forward(self, x, y):\n        return {lags}\n\n\n{rest[rest.index('def get_inputs') :]}"
    judge = Judge(loading(of_pair.replace("LAGS", "64"), "00" * 16))
    kind, drawn = as_kind(MOVED_COPY), []
    assert kind in judge.loaded().timed_kinds
    for _ in range(2):
        [index] = judge.renew(Renew(wanted=(kind,), calls=1)).trial_sets
        x, y = judge.memory.inputs[index]
        likeness = torch.stack([torch.cosine_similarity(x.roll(lag, 1), y, 1) for lag in range(16, 49)]).amax(0)
        assert int((likeness > 0.9).sum()) >= 8
        drawn.append(x.clone())
    assert not torch.equal(*drawn)


def test_tiny_numbers_come_in_a_timed_block_drawn_anew() -> None:
    judge = Judge(loading(SOURCE, "00" * 16))
    kind, drawn = as_kind(TINY_NUMBERS), []
    assert kind in judge.loaded().timed_kinds
    for _ in range(2):
        [index] = judge.renew(Renew(wanted=(kind,), calls=1)).trial_sets
        [x] = judge.memory.inputs[index]
        assert int((x.abs().amax(-1) == 0).sum()) == 1
        assert int((x.abs().amax(-1) < 0.2).sum()) in {4, 5}  # the row of zeros may be one of the four
        drawn.append(x.clone())
    assert not torch.equal(*drawn)


def test_areas_and_corridors_come_in_a_timed_block_drawn_anew() -> None:
    source = SOURCE.replace("[torch.randn(16, 32)]", "[torch.rand(4, 32, 32) < 0.5]")
    head, _, rest = source.partition("    def forward(self, x):")
    body = "    def forward(self, x):\n        return x.float().cumsum(-1)\n\n\n"
    judge = Judge(loading(f"{head}{body}{rest[rest.index('def get_inputs') :]}", "00" * 16))
    drawn = []
    for trial, most in ((SOLID, 8), (CORRIDOR, 32)) * 2:
        assert as_kind(trial) in judge.loaded().timed_kinds
        [index] = judge.renew(Renew(wanted=(as_kind(trial),), calls=1)).trial_sets
        [x] = judge.memory.inputs[index]
        assert 0 < int((x[..., 1:] != x[..., :-1]).sum(-1).max()) <= most
        drawn.append(x.clone())
    assert not torch.equal(drawn[0], drawn[2]) and not torch.equal(drawn[1], drawn[3])


def test_numbers_that_are_none_come_in_a_timed_block_drawn_anew() -> None:
    head, _, rest = SOURCE.partition("    def forward(self, x):")
    body = "    def forward(self, x):\n        return torch.nan_to_num(x, posinf=1.0, neginf=-1.0)\n\n\n"
    judge = Judge(loading(f"{head}{body}{rest[rest.index('def get_inputs') :]}", "00" * 16))
    drawn = []
    for trial in (NOT_FINITE, ONE_NAN, ONE_INFINITE) * 2:
        assert as_kind(trial) in judge.loaded().timed_kinds
        [index] = judge.renew(Renew(wanted=(as_kind(trial),), calls=1)).trial_sets
        [x] = judge.memory.inputs[index]
        drawn.append(~x.isfinite())
        assert (int(drawn[-1].sum()) > 1) == (trial == NOT_FINITE) and bool(drawn[-1].any())
    assert not torch.equal(drawn[0], drawn[3])
