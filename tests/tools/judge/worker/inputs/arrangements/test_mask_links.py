"""Masks with links between near places alone: rounds of what spreads over them that are left out show."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from tests.tools.judge.worker.made import made

from ridgeline.tools.judge.worker.grading.outputs.compare import compare
from ridgeline.tools.judge.worker.inputs.arrangements.lifts import mask_apart
from ridgeline.tools.judge.worker.inputs.arrangements.mask_links import near_links
from ridgeline.tools.records.trial_names import APART, BLOCKED

LINKS = "(torch.rand(2, 128, 128) < 0.08)"
HUBS = ("hubs = torch.ones_like(x[:, :, :1])", "for _ in range(48):", "    ranks = a.mT @ (a @ hubs)",
        "    hubs = ranks / ranks.norm(dim=1, keepdim=True)", "return hubs")  # fmt: skip


def _hubs(links: torch.Tensor, rounds: int) -> torch.Tensor:
    hubs = torch.ones(links.shape[0], links.shape[2], 1, dtype=torch.float64)
    for _ in range(rounds):
        ranks = links.double().mT @ (links.double() @ hubs)
        hubs = ranks / ranks.norm(dim=1, keepdim=True)
    return hubs


@pytest.mark.parametrize("change", [near_links, mask_apart])
@pytest.mark.parametrize("shape", [(2, 128, 128), (96, 256), (256, 96)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bool, torch.int64])
def test_links_are_taken_away_and_none_is_a_row_s_or_a_column_s_last(
    change: Callable[..., torch.Tensor], shape: tuple[int, ...], dtype: torch.dtype
) -> None:
    links = (torch.rand(shape, generator=torch.Generator().manual_seed(1)) < 0.1).to(dtype)
    links[..., 5, :] = 0
    for seed in range(4):
        kept = change(links, torch.Generator().manual_seed(seed))
        assert kept.dtype is dtype and not bool((kept.long() > links.long()).any())
        assert int(kept.count_nonzero()) < int(links.count_nonzero()) / 2
        for axis in (-1, -2):
            assert torch.equal(kept.any(axis), links.any(axis))


@pytest.mark.parametrize("change", [near_links, mask_apart])
def test_what_is_symmetric_or_triangular_stays_so(change: Callable[..., torch.Tensor]) -> None:
    drawn = torch.rand(64, 64, generator=torch.Generator().manual_seed(1))
    links, causal = ((drawn + drawn.mT) < 0.4).float(), torch.ones(64, 64).tril()
    for seed in range(4):
        kept = change(links, torch.Generator().manual_seed(seed))
        assert torch.equal(kept, kept.mT)
        assert not bool(change(causal, torch.Generator().manual_seed(seed)).triu(1).any())


@pytest.mark.parametrize("given", [f"{LINKS}.float()", LINKS, f"{LINKS}.int()"])
def test_directed_links_mix_late_in_two_trials(given: str) -> None:
    found = made("a, x", f"{given}, torch.randn(2, 128, 4)", "a = a.to(x.dtype)", *HUBS)
    for name, is_seen in (("nominal_0", False), (BLOCKED, True), (APART, True)):
        case = found.book.case(name)
        assert (compare(_hubs(case.inputs[0], 14), case.expected[0]).errors.overall > 1e-4) is is_seen


def test_a_mask_that_the_reference_refuses_with_few_links_is_named_and_others_change() -> None:
    body = ("assert float(a.mean()) > 0.3", "return a @ b")
    found = made("a, b", "(torch.rand(64, 64) < 0.5).float(), (torch.rand(64, 64) < 0.5).float()", *body)
    assert {f"{BLOCKED} a", f"{APART} a"} <= set(found.domain.skipped)
    for trial in (BLOCKED, APART):
        assert trial in found.domain.names and set(found.source.links.masks[trial]) == {1}


def test_masks_whose_places_the_reference_keeps_have_no_links() -> None:
    prefix = "(torch.arange(64) < torch.randint(8, 64, (16, 1))).float()"
    found = made("x, a", f"torch.randn(16, 64), {prefix}", "assert bool((a.diff() <= 0).all())", "return x * a")
    assert not any(found.source.links.masks.values())
