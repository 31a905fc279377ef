"""Whole numbers that name places of their own dimension are chains in half of the rows, as the others of one trial are near."""

from __future__ import annotations

import pytest
import torch
from tests.tools.judge.worker.made import Made, made, made_of

from ridgeline.tools.judge.worker.inputs.arrangements.chains import Chain, chain_of, chained, with_links
from ridgeline.tools.records.trial_names import APART

PARENTS = "(torch.rand(8, 512) * torch.arange(512)).long()"
SUMS = ("for _ in range(9):", "    x, i = x + x.gather(1, i), i.gather(1, i)", "return x")
BUFFER = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("parent", (torch.rand(512) * torch.arange(512)).long())

    def forward(self, x):
        parent = self.parent
        {check}
        for _ in range(9):
            x, parent = x + x[:, parent], parent[parent]
        return x


def get_inputs():
    return [torch.rand(2, 512)]


def get_init_inputs():
    return []
"""


def links(found: Made, index: int = 1) -> torch.Tensor:
    """Return an input of the trial."""
    return found.book.contents.of(APART)[0][index]


def depths(parents: torch.Tensor) -> torch.Tensor:
    """Return the longest way of each row to where it ends, or comes again."""
    places, rounds = (
        torch.arange(parents.shape[-1]).expand(parents.shape),
        torch.zeros(parents.shape[0], dtype=torch.long),
    )
    for _ in range(parents.shape[-1]):
        further = parents.gather(1, places)
        rounds += (further != places).any(1)
        places = further
    return rounds


def ends_of(tensor: torch.Tensor) -> tuple[int, int]:
    return int(tensor.min()), int(tensor.max())


def test_parents_before_their_nodes_are_chains_in_half_of_the_rows() -> None:
    found = made("x, i", f"torch.rand(8, 512), {PARENTS}", *SUMS)
    parents, places, largest = links(found), torch.arange(512), found.source.lifts[1][1]
    is_chain = (parents == (places - 1).clamp(0, largest)).all(1)
    assert APART in found.domain.names and int(is_chain.sum()) == 4
    assert int(depths(parents[is_chain]).min()) == largest + 1 > 448
    assert bool((parents[~is_chain] > places).any())


def test_chains_of_numbers_on_both_sides_of_their_places_lead_both_ways() -> None:
    parents = torch.randint(512, (8, 512), generator=torch.Generator().manual_seed(0))
    chain = chain_of(parents, (0, 511))
    assert chain is not None and chain.leads_down and chain.leads_up
    changed, places = chained(parents, torch.Generator().manual_seed(1), chain=chain), torch.arange(512)
    assert int((changed == (places - 1).clamp(min=0)).all(1).sum()) == 2
    assert int((changed == (places + 1).clamp(max=511)).all(1).sum()) == 2
    assert int((changed == parents).all(1).sum()) == 4


@pytest.mark.parametrize("seed", range(4))
def test_a_single_row_is_a_chain_that_leads_down_and_then_up(seed: int) -> None:
    parents = torch.randint(512, (512,), generator=torch.Generator().manual_seed(0))
    chain = chain_of(parents, (0, 511))
    assert chain is not None
    changed = chained(parents, torch.Generator().manual_seed(seed), chain=chain)
    assert int(depths(changed[None]).max()) >= 255 and ends_of(changed) <= (0, 511)


@pytest.mark.parametrize(("shape", "axis"), [((512, 8), 0), ((2, 512), 1), ((2, 512, 3), 1), ((512,), 0)])
def test_chains_follow_the_long_dimension(shape: tuple[int, ...], axis: int) -> None:
    places = torch.arange(512).view(*(512 if i == axis else 1 for i in range(len(shape))))
    parents = (torch.rand(shape, generator=torch.Generator().manual_seed(0)) * places).long()
    chain = chain_of(parents, ends_of(parents))
    assert chain is not None
    changed = chained(parents, torch.Generator().manual_seed(1), chain=chain)
    is_chain = (changed == (places - 1).clamp(*ends_of(parents))).all(axis)
    assert changed.shape == parents.shape and changed.dtype == parents.dtype
    assert int(is_chain.sum()) in (is_chain.numel() // 2, (is_chain.numel() + 1) // 2)


def test_a_chain_has_so_many_links_at_most() -> None:
    parents = (torch.rand(20000, generator=torch.Generator().manual_seed(0)) * torch.arange(20000)).long()
    chain = chain_of(parents, ends_of(parents))
    assert chain is not None
    changed = chained(parents, torch.Generator().manual_seed(1), chain=chain)
    assert changed[8191:8194].tolist() == [8190, 0, 8192] and ends_of(changed) <= ends_of(parents)


@pytest.mark.parametrize(
    "tensor",
    [
        torch.randint(100, (4096,)),
        torch.randint(512, (2, 4096)),
        torch.randint(50000, (8, 512)),
        torch.randint(9, (8, 512)),
        torch.zeros(8, 512, dtype=torch.long),
    ],
)
def test_other_whole_numbers_are_no_chains(tensor: torch.Tensor) -> None:
    assert chain_of(tensor, ends_of(tensor)) is None


def test_of_two_inputs_of_one_form_one_alone_is_a_chain_in_a_row() -> None:
    body = "return torch.zeros_like(x).index_add(0, target, x[source])"
    draw = "torch.randint(512, (512,))"
    found = made("x, source, target", f"torch.randn(512), {draw}, {draw}", body)
    source, target = links(found, 1), links(found, 2)
    away = (source - target).abs()
    assert int(torch.minimum(away, 512 - away).max()) <= 9 and int((source != target).sum()) > 256


def test_of_two_inputs_of_one_form_a_row_is_a_chain_in_one_of_them() -> None:
    chain = Chain(axis=-1, ends=(0, 511), leads_down=True, leads_up=True)
    drawn = tuple(torch.randint(512, (8, 512)) for _ in range(2))
    for seed in range(16):
        both = with_links(drawn, torch.Generator().manual_seed(seed), near={}, chains={0: chain, 1: chain})
        is_chain = [(changed != before).any(-1) for changed, before in zip(both, drawn, strict=True)]
        assert bool((is_chain[0] ^ is_chain[1]).all())


def test_chains_that_the_reference_refuses_are_named_and_its_numbers_near() -> None:
    check = "assert int((i == torch.arange(512) - 1).sum()) < 300"
    found = made("x, i", f"torch.rand(8, 512), {PARENTS}", check, *SUMS)
    assert f"{APART} i" in found.domain.skipped and APART in found.domain.names and not found.source.links.chains
    assert set(found.source.links.near) == {1}


def test_a_buffer_is_a_chain_in_some_trials() -> None:
    found = made_of(BUFFER.format(check=""))
    parents = [found.book.contents.of(name)[1]["parent"] for name in found.domain.names]
    lengths = [int(depths(each[None]).max()) for each in parents]
    assert max(lengths) > 256 and min(lengths) < 40 and not found.domain.not_varied | found.domain.only_as_drawn


@pytest.mark.parametrize("secret", [str(i).encode() for i in range(8)])
def test_a_buffer_whose_chains_are_refused_varies_otherwise(secret: bytes) -> None:
    check = "assert int((parent == torch.arange(512) - 1).sum()) < 300"
    found = made_of(BUFFER.format(check=check), secret=secret)
    skipped = [name for name in found.domain.skipped if " " not in name]
    sums = {int(found.book.contents.of(name)[1]["parent"].sum()) for name in found.domain.names}
    assert not skipped and not found.domain.not_varied | found.domain.only_as_drawn and len(sums) > 9
