"""Scalars are as large, as small and as far moved as the reference stays well conditioned with."""

from __future__ import annotations

import torch
from tests.tools.judge.worker.domain.sizes.test_sized_trials import large
from tests.tools.judge.worker.made import made

from ridgeline.tools.judge.worker.grading.outputs.compare import compare
from ridgeline.tools.records.trial_names import (
    LARGE_SCALARS,
    LOWERED_VECTORS,
    MOVED_VECTORS,
    RAISED_VECTORS,
    SCALARS,
    SMALL_APART,
    SMALL_SCALARS,
)


def test_walks_that_restart_seldom_between_groups_need_every_round() -> None:
    body = ("walk = torch.softmax(scores, dim=1)", "found = start", "for _ in range(96):",
            "    found = (1 - restart) * (walk @ found) + restart * start", "return found")  # fmt: skip
    found = made("scores, start, restart", "torch.randn(96, 96), torch.randn(96, 16), 0.5", *body)
    assert {LARGE_SCALARS, SMALL_SCALARS, SMALL_APART} <= large(found)
    scalars = found.book.changes.scalars
    assert set(scalars) == {SCALARS, LARGE_SCALARS, SMALL_SCALARS, SMALL_APART}, "a positive one is not moved"
    assert scalars[SMALL_APART][0] == 0.5 / 16 and scalars[LARGE_SCALARS][0] > 0.5

    def walked(rounds: int, name: str) -> torch.Tensor:
        scores, start = (t.double() for t in found.book.case(name).inputs)
        restart = scalars.get(name, (0.5,))[0]
        state = start
        for _ in range(rounds):
            state = (1 - restart) * (torch.softmax(scores, dim=1) @ state) + restart * start
        return state

    for name, is_seen in (("nominal_0", False), ("apart", False), (SMALL_APART, True)):
        expected = found.book.case(name).expected[0]
        assert (compare(walked(32, name), expected).errors.overall > 1e-4) is is_seen
        assert compare(walked(96, name), expected).errors.overall < 1e-12


def test_a_scalar_of_nothing_is_moved_to_either_side() -> None:
    found = made(
        "x, log_width", "torch.randn(16, 64), 0.0", "return torch.tanh(x * torch.exp(x.new_tensor(log_width)))"
    )
    scalars = found.book.changes.scalars
    assert set(scalars) == {SCALARS, *MOVED_VECTORS} and LARGE_SCALARS not in large(found)
    assert scalars[RAISED_VECTORS][0] > 1 and scalars[LOWERED_VECTORS][0] < -1
