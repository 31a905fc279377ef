"""Close numbers and nearly singular matrices are tried where they do more than scale, or move, the output."""

from __future__ import annotations

import pytest
import torch
from tests.tools.judge.worker.made import made

from ridgeline.tools.judge.worker.grading.outputs.compare import compare
from ridgeline.tools.records.trial_names import BETWEEN, NARROW, NEAR_SINGULAR, NOMINAL

HINGE = (
    "errors, order = (1 - x * (2.0 * y - 1)).sort(1, descending=True)",
    "gt = y.float().gather(1, order)",
    "total = gt.sum(1, keepdim=True)",
    "jaccard = 1 - (total - gt.cumsum(1)) / (total + (1 - gt).cumsum(1))",
    "return (errors.relu() * torch.cat([jaccard[:, :1], jaccard.diff(dim=1)], 1)).sum(1)",
)
LABELLED = "torch.randn(8, 1024), torch.rand(8, 1024) > 0.7"
COVARIANCE = "(lambda a: a @ a.mT / 256 + 0.1 * torch.eye(128))(torch.randn(128, 256)), torch.randn(128, 4)"
SOLVED = "return torch.cholesky_solve(y, torch.linalg.cholesky(k))"


def hinge(x: torch.Tensor, y: torch.Tensor, bins: float | None) -> torch.Tensor:
    labels = y.to(x.dtype)
    errors = 1 - x * (2 * labels - 1)
    keys = errors if bins is None else (errors * bins).floor()
    order = keys.sort(dim=1, descending=True, stable=True).indices
    errors, gt = errors.gather(1, order), labels.gather(1, order)
    total = gt.sum(1, keepdim=True)
    jaccard = 1 - (total - gt.cumsum(1)) / (total + (1 - gt).cumsum(1))
    return (errors.relu() * torch.cat([jaccard[:, :1], jaccard.diff(dim=1)], 1)).sum(1)


def test_numbers_near_their_mean_need_a_whole_order_and_float32_gives_it() -> None:
    found = made("x, y", LABELLED, *HINGE)
    assert found.source.sizes[NARROW] >= 256
    for name, is_seen in ((NOMINAL[0], False), (NARROW, True)):
        case = found.book.case(name)
        x, y = case.inputs
        assert (compare(hinge(x.double(), y, 128.0), case.expected[0]).errors.overall > 2e-4) is is_seen
        assert compare(hinge(x.float(), y, None), case.expected[0]).errors.overall < 1e-5


def solved_by_cg(matrix: torch.Tensor, right: torch.Tensor, steps: int) -> torch.Tensor:
    found, rest = torch.zeros_like(right), right.clone()
    way, size = rest.clone(), rest.square().sum(0)
    for _ in range(steps):
        along = matrix @ way
        by = size / (way * along).sum(0)
        found, rest = found + by * way, rest - by * along
        before, size = size, rest.square().sum(0)
        way = rest + size / before * way
    return found


def test_a_nearly_singular_matrix_needs_more_steps_of_a_solver_and_float32_solves_it() -> None:
    found = made("k, y", COVARIANCE, SOLVED)
    assert NEAR_SINGULAR in found.domain.names
    for name, is_seen in ((NOMINAL[0], False), (NEAR_SINGULAR, True)):
        case = found.book.case(name)
        k, y = case.inputs
        assert torch.equal(k, k.mT)
        assert (compare(solved_by_cg(k.double(), y.double(), 24), case.expected[0]).errors.overall > 1e-4) is is_seen
        solved = torch.cholesky_solve(y.float(), torch.linalg.cholesky(k.float()))
        assert compare(solved, case.expected[0]).errors.overall < 1e-5


@pytest.mark.parametrize(
    "body", ["return x @ x[0]", "return x.mean(1)", "return torch.nn.functional.layer_norm(x, (64,))"]
)
def test_what_is_merely_scaled_or_moved_has_no_such_trials(body: str) -> None:
    if "x[0]" in body:
        names = made(
            "x, k", "torch.randn(16, 64), (lambda a: a @ a.mT)(torch.randn(64, 96))", "return x @ k"
        ).domain.names
    else:
        names = made("x", "torch.randn(16, 64)", body).domain.names
    assert not set(BETWEEN) & set(names)
