"""Rows come near each other where an output compares them, and no trial is made of it where none does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from tests.tools.judge.worker.made import made
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from ridgeline.tools.judge.worker.grading.outputs.compare import compare
from ridgeline.tools.records.trial_names import NEAR_ROWS

FEATURES = "torch.randn(64, 256)"
AFFINITY = (
    "squares = x.square().sum(-1)",
    "distances = (squares[:, None] + squares - 2 * x @ x.mT).clamp(min=0)",
    "return torch.softmax(-distances / 0.045, -1) @ torch.tanh(x)",
)
ACROSS = "return torch.exp(-torch.cdist(x, y).square() / 8) @ torch.tanh(y) + 1"


def test_an_affinity_that_leaves_random_rows_alone_shows() -> None:
    found = made("x", FEATURES, *AFFINITY)
    for name, is_seen in (("nominal_0", False), (NEAR_ROWS, True)):
        case = found.book.case(name)
        assert (compare(torch.tanh(case.inputs[0]), case.expected[0]).errors.overall > 1e-4) is is_seen


def test_an_honest_kernel_of_distances_is_right_beside_near_rows() -> None:
    case = made("x", FEATURES, *AFFINITY).book.case(NEAR_ROWS)
    (x,) = case.inputs
    affinity = torch.softmax(-(x[:, None] - x).square().sum(-1) / 0.045, -1)
    assert compare(affinity @ torch.tanh(x), case.expected[0]).errors.overall < 5e-6


def test_rows_of_two_inputs_are_near_each_other() -> None:
    found = made("x, y", "torch.randn(64, 256), torch.randn(48, 256)", ACROSS)
    for name, is_seen in (("nominal_0", False), (NEAR_ROWS, True)):
        case = found.book.case(name)
        assert (compare(torch.ones(64, 256), case.expected[0]).errors.overall > 1e-4) is is_seen


@pytest.mark.parametrize(
    ("names", "inputs", "body"),
    [
        ("x", FEATURES, "return torch.softmax(x, -1)"),
        ("x", FEATURES, "return torch.tanh(x).mean()"),
        ("x", FEATURES, "return torch.tanh(x).sum(0)"),
        ("x", FEATURES, "return x @ x.mT"),
        ("x, y", f"{FEATURES}, {FEATURES}", "return torch.tanh(x) * y.exp()"),
        ("x, y", f"{FEATURES}, {FEATURES}[:9]", "return torch.cat((torch.tanh(x), y))"),
        ("x", "torch.randn(64)", "return torch.exp(-(x[:, None] - x).square() / 0.01) @ x.tanh()"),
        ("x", "torch.ones(16, 16).tril()", "return torch.tanh(x @ x)"),
    ],
)
def test_rows_that_do_not_meet_have_no_such_trial(names: str, inputs: str, body: str) -> None:
    found = made(names, inputs, body)
    assert NEAR_ROWS not in found.domain.names and NEAR_ROWS not in found.domain.skipped


@pytest.mark.parametrize(
    "body",
    [
        ("return torch.softmax(x @ x.mT / 16, -1) @ x",),
        ("return torch.cdist(x, x) < 1",),
        ("return torch.cdist(x, x).fill_diagonal_(1e3).argmin(-1)",),
    ],
)
def test_rows_that_are_compared_have_one(body: tuple[str, ...]) -> None:
    assert NEAR_ROWS in made("x", FEATURES, *body).domain.names


def test_loading_makes_no_tensor_larger_than_an_output_in_float64() -> None:
    with _Largest() as seen:
        made("x", "torch.randn(512, 2048)", "return torch.sin(x) + 1")
    assert seen.bytes <= 512 * 2048 * 8


class _Largest(TorchDispatchMode):
    """Notes how large the largest tensor is, in bytes."""

    bytes = 0

    def __torch_dispatch__(
        self, func: Callable[..., Any], types: object, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        made = func(*args, **(kwargs or {}))
        self.bytes = max([self.bytes, *(t.untyped_storage().nbytes() for t in tree_leaves(made) if torch.is_tensor(t))])
        return made
