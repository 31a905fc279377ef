"""Symmetric matrices that a reference makes are nearly singular in one trial, by what they are made of."""

from __future__ import annotations

import pytest
import torch
from tests.tools.judge.worker.domain.sizes.test_between import solved_by_cg
from tests.tools.judge.worker.made import Made, made, made_of
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

from ridgeline.tools.judge.worker.call_form import Tensors
from ridgeline.tools.judge.worker.domain.sizes.made_matrices import makes_symmetric
from ridgeline.tools.judge.worker.grading.outputs.compare import compare
from ridgeline.tools.judge.worker.reference import Reference
from ridgeline.tools.records.trial_names import NEAR_SINGULAR, NOMINAL

SOLVED = "return torch.cholesky_solve(y, torch.linalg.cholesky(k))"
MEASURED = "(lambda a: a @ a.mT / 256)(torch.randn(128, 256)) + torch.randn(128, 128) / 1024, torch.randn(128, 4)"
WHITENED = f"""
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(128, 256))

    def forward(self, y):
        k = self.weight @ self.weight.mT / 256 + 0.1 * torch.eye(128)
        {SOLVED}


def get_inputs():
    return [torch.randn(128, 4)]


def get_init_inputs():
    return []
"""


def matrix_of(found: Made, name: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the matrix and the right sides of a trial's equations in float64."""
    case = found.book.case(name)
    noise = 0.1 * torch.eye(128, dtype=torch.float64)
    if case.parameters:
        weight = case.parameters["weight"].double()
        return weight @ weight.mT / 256 + noise, case.inputs[0].double()
    k = case.inputs[0].double()
    return (k + k.mT) / 2 + noise, case.inputs[1].double()


@pytest.mark.parametrize("is_of_weights", [False, True])
def test_a_matrix_made_symmetric_needs_more_steps_of_a_solver_and_float32_solves_it(is_of_weights: bool) -> None:
    body = ("k = (k + k.mT) / 2 + 0.1 * torch.eye(128)", SOLVED)
    found = made_of(WHITENED) if is_of_weights else made("k, y", MEASURED, *body)
    assert NEAR_SINGULAR in found.domain.names
    for name, is_seen in ((NOMINAL[0], False), (NEAR_SINGULAR, True)):
        matrix, right = matrix_of(found, name)
        expected = found.book.case(name).expected[0]
        assert (compare(solved_by_cg(matrix, right, 30), expected).errors.overall > 1e-4) is is_seen
        solved = torch.cholesky_solve(right.float(), torch.linalg.cholesky(matrix.float()))
        assert compare(solved, expected).errors.overall < 1e-5


def test_products_with_themselves_and_means_with_the_transpose_are_made_symmetric_matrices() -> None:
    x = torch.randn(2, 16, 32)
    square = torch.randn(16, 16)
    for makes in (lambda: x @ x.mT, lambda: x.mT @ x, lambda: square + square.mT + 32 * torch.eye(16)):
        assert makes_symmetric(makes)
    symmetric = (x @ x.mT)[0]
    for others in (
        lambda: x @ x.flip(1).mT,
        lambda: symmetric.mT[:8],
        lambda: square + square.mT,
        lambda: symmetric @ square,
        lambda: torch.ones(16, 16),
        lambda: symmetric.to(torch.float8_e4m3fn),
        symmetric.to_sparse,
    ):
        assert not makes_symmetric(others)


def test_a_problem_that_makes_none_has_no_such_trial() -> None:
    assert (
        NEAR_SINGULAR
        not in made("x, w", "torch.randn(32, 64), torch.randn(64, 64)", "return (x @ w).tanh()").domain.names
    )


@pytest.mark.parametrize(("result", "is_jumping"), [("torch.tanh(x @ x.mT)", False), ("(x @ x.mT).argmax(-1)", True)])
def test_one_run_tells_both_whether_such_a_matrix_is_made_and_whether_anything_jumps(
    monkeypatch: pytest.MonkeyPatch, result: str, is_jumping: bool
) -> None:
    """A look for a matrix compares numbers, which no other look may take for the reference's own work."""
    looks, run = list[tuple[str, ...]](), Reference.run

    def counted(reference: Reference, inputs: Tensors) -> Tensors:
        looks.append(tuple(type(mode).__name__ for mode in _get_current_dispatch_mode_stack()))
        return run(reference, inputs)

    monkeypatch.setattr(Reference, "run", counted)
    found = made("x", "torch.randn(16, 32)", f"return {result}")
    assert [names for names in looks if {"_Made", "_Jumps"} & set(names)] == [("_Made", "_Jumps")]
    assert found.book.contents.makes_symmetric and found.domain._sized._jumps is is_jumping


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_where_no_matrix_can_be_looked_for_what_jumps_is_found_all_the_same() -> None:
    body = (
        "rows = torch.nested.nested_tensor([x[0], x[1, :8]])",
        "return x.argmax(-1) + rows.to_padded_tensor(0.0).numel()",
    )
    found = made("x", "torch.randn(16, 32)", *body)
    assert not found.book.contents.makes_symmetric and found.domain._sized._jumps
