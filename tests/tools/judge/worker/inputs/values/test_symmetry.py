"""Symmetric inputs that are always alike: some pairs change by more than any gate, and what is definite stays so."""

from __future__ import annotations

import pytest
import torch
from tests.tools.judge.worker.made import N_SETS, made

from ridgeline.tools.judge.worker.inputs.arrangements.lifts import blocked
from ridgeline.tools.judge.worker.inputs.arrangements.mask_links import near_links
from ridgeline.tools.judge.worker.inputs.values.structure import mirrored
from ridgeline.tools.judge.worker.inputs.values.symmetry import may_be_definite, near_singular, with_secret_pairs
from ridgeline.tools.judge.worker.inputs.values.transforms import with_one_run

SIZE = 1024
COVARIANCE = f"torch.exp(-(torch.arange({SIZE}.)[:, None] - torch.arange({SIZE}.)).abs() / 64)"
BANDED = "4 * torch.eye(64) + torch.eye(64).roll(1, 0).tril() + torch.eye(64).roll(1, 0).tril().mT"
DISTANCES = "(torch.arange(64.)[:, None] - torch.arange(64.)).abs()"


def as_trials_and_sets_have_it(matrix: str, body: str) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """Return a matrix as it is given, and as the reference takes it in two trials and two timed sets."""
    found = made("a, x", f"{matrix}, torch.randn({SIZE if matrix == COVARIANCE else 64}, 4)", f"return {body}")
    assert not found.domain.not_varied | found.domain.only_as_drawn
    sets = [tuple(map(torch.empty_like, found.source.given("a"))) for _ in range(2)]
    filling = found.source.fill("renewal", N_SETS)
    for index, views in enumerate(sets):
        filling.write(index, views)
    trials = [found.source.nominal("b"), found.source.nominal("c")]
    return found.source.given("a")[0], [inputs[0] for inputs in (*trials, *sets)]


@pytest.mark.parametrize("body", ["a @ x", "torch.linalg.cholesky(a) @ x"])
def test_secret_pairs_of_a_definite_matrix_change_far_and_it_stays_definite(body: str) -> None:
    given, changed = as_trials_and_sets_have_it(COVARIANCE, body)
    for other in changed:
        assert torch.equal(other, other.mT)
        assert int(torch.linalg.cholesky_ex(other.double()).info) == 0
        assert bool(are_far(given, other).any())
    assert not torch.equal(are_far(given, changed[0]), are_far(given, changed[1]))


def are_far(given: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Return the rows with a pair that no scaling of rows explains: 0.1 of a row whose norm is 8 is beyond every gate."""
    roots = other.diagonal().sqrt()
    correlations = other / torch.outer(roots, roots)
    assert float(correlations.max()) < 1.0001
    return (correlations - given > 0.1).any(-1)


def test_few_pairs_change_far_in_some_draws_and_many_in_others() -> None:
    given = eval(COVARIANCE)
    generator = torch.Generator().manual_seed(5)
    shares = [float(are_far(given, with_secret_pairs(given, generator, share=0.5)).double().mean()) for _ in range(24)]
    assert min(shares) > 0 and sum(share < 0.05 for share in shares) > 3 and sum(share > 0.3 for share in shares) > 3


def test_zeros_of_a_definite_matrix_stay_and_some_of_its_pairs_change_far() -> None:
    given, changed = as_trials_and_sets_have_it(BANDED, "torch.linalg.cholesky(a) @ x")
    for other in changed:
        assert torch.equal(other, other.mT) and not bool(other[given == 0].any())
        roots = other.diagonal().sqrt()
        correlations = (other / torch.outer(roots, roots)).diagonal(1)
        assert float(correlations.min()) < 0.16  # 1/4 as it is given
        assert float(correlations.max()) > 0.25


def test_pairs_of_a_matrix_that_is_not_definite_have_factors_of_their_own() -> None:
    given, changed = as_trials_and_sets_have_it(DISTANCES, "a @ x")
    assert not may_be_definite(given)
    for other in changed:
        assert torch.equal(other, other.mT) and not bool(other.diagonal().any())
        ratios = (other / given)[given > 0].double()
        assert float(ratios.std()) > 0.05


@pytest.mark.parametrize("matrix", [COVARIANCE, BANDED, DISTANCES, "2 * torch.eye(64)"])
def test_a_run_of_a_symmetric_matrix_is_a_secret_pair(matrix: str) -> None:
    given = eval(matrix)
    changed = with_one_run(given, given, torch.Generator().manual_seed(3))
    assert torch.equal(changed, changed.mT) and not torch.equal(changed, given)
    assert not bool(changed[given == 0].any())
    if may_be_definite(given):
        assert int(torch.linalg.cholesky_ex(changed.double()).info) == 0
    if matrix == DISTANCES:
        assert int((changed != given).sum()) == 2


def left_out(affinity: torch.Tensor) -> float:
    """Return by what part of the largest number 24 rounds of propagation differ from 64."""
    moves = affinity / affinity.sum(-1, keepdim=True)
    few, all_of_them = (torch.linalg.matrix_power(moves, rounds) for rounds in (24, 64))
    return float((few - all_of_them).abs().max() / all_of_them.max())


def test_a_symmetric_matrix_links_neighbours_alone_in_blocks_and_stays_definite() -> None:
    """Rounds of propagation that are left out show: as it is drawn, such a matrix mixes at once."""
    points = torch.randn(96, 8, generator=torch.Generator().manual_seed(1)).double()
    affinity = torch.exp(-(points[:, None] - points).square().sum(-1) / 16)
    assert left_out(affinity) < 1e-6
    for seed in range(8):
        lined = blocked(affinity, torch.Generator().manual_seed(seed))
        assert torch.equal(lined, lined.mT) and torch.equal(lined.diagonal(), affinity.diagonal())
        assert float(torch.linalg.eigvalsh(lined)[0]) >= float(torch.linalg.eigvalsh(affinity)[0]) - 1e-12
        assert left_out(lined) > 0.01


def test_links_of_a_graph_lead_to_neighbours_alone_and_none_is_lost() -> None:
    drawn = (torch.rand(128, 128, generator=torch.Generator().manual_seed(1)) < 0.1).float()
    links = ((drawn + drawn.mT) > 0).float().fill_diagonal_(0)
    assert left_out(links) < 1e-5
    for seed in range(8):
        near = near_links(links, torch.Generator().manual_seed(seed))
        assert torch.equal(near, near.mT) and bool((near <= links).all()) and bool((near.sum(-1) > 0).all())
        assert left_out(near) > 0.01


@pytest.mark.parametrize("shape", [(48,), (2, 200)])
def test_a_nearly_singular_matrix_is_symmetric_and_as_definite_with_its_diagonal(shape: tuple[int, ...]) -> None:
    drawn = torch.randn(*shape, 3 * shape[-1], generator=torch.Generator().manual_seed(1))
    matrix = mirrored(drawn @ drawn.mT / drawn.shape[-1])
    found = near_singular(matrix, torch.Generator().manual_seed(2), size=8.0)
    assert found.dtype == matrix.dtype and torch.equal(found, found.mT)
    assert torch.allclose(found.diagonal(dim1=-2, dim2=-1), matrix.diagonal(dim1=-2, dim2=-1), rtol=1e-6)
    now, was = (torch.linalg.eigvalsh(t.double())[..., 0] for t in (found, matrix))
    assert bool((now > 0).all()) and bool((now < was / 4).all())


def test_only_symmetric_matrices_that_may_be_definite_are_made_nearly_singular() -> None:
    drawn = torch.randn(16, 16, generator=torch.Generator().manual_seed(1))
    gram = mirrored(drawn @ drawn.mT)
    no_diagonal = gram - torch.diag(gram.diagonal())
    for kept in (drawn, gram[:4, :4].clone(), torch.eye(16), no_diagonal, gram.long(), gram / 0, drawn[0]):
        assert near_singular(kept, torch.Generator().manual_seed(2), size=8.0) is kept


def test_what_symmetric_matrices_are_made_of_makes_them_nearly_singular_and_larger() -> None:
    drawn = torch.randn(2, 48, 96, generator=torch.Generator().manual_seed(1))
    for matrix in (drawn, drawn.mT.contiguous()):
        found = near_singular(matrix, torch.Generator().manual_seed(2), size=8.0, is_made=True)
        now, was = (torch.linalg.svdvals(t.double()) for t in (found, matrix))
        assert bool((now[..., 0] / now[..., -1] > 2 * was[..., 0] / was[..., -1]).all())
        assert 2.7 < float(torch.linalg.vector_norm(now) / torch.linalg.vector_norm(was)) < 2.9
        assert near_singular(matrix, torch.Generator().manual_seed(2), size=8.0) is matrix
    nearly = mirrored(drawn @ drawn.mT / 96) + torch.randn(48, 48, generator=torch.Generator().manual_seed(3)) / 1024
    found = near_singular(nearly, torch.Generator().manual_seed(2), size=8.0, is_made=True)
    now, was = (torch.linalg.eigvalsh((t + t.mT).double() / 2) for t in (found, nearly))
    assert bool((now[..., 0] > 0).all()) and bool((now[..., -1] / now[..., 0] > 2 * was[..., -1] / was[..., 0]).all())
    assert torch.allclose(found - found.mT, nearly - nearly.mT, atol=1e-5)
    for kept in (drawn[..., :4], drawn.long(), drawn.tril(), drawn / 0):
        assert near_singular(kept, torch.Generator().manual_seed(2), size=8.0, is_made=True) is kept
