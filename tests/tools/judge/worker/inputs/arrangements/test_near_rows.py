"""Half of an input's rows are brought near others, of its own and of earlier inputs; structure stays."""

from __future__ import annotations

import pytest
import torch

from ridgeline.tools.judge.worker.inputs.arrangements.near_rows import NearRows, may_have_near_rows


def drawn(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(2)


@pytest.mark.parametrize("shape", [(16, 32), (2, 16, 32), (2, 3, 17, 32), (2, 4)])
def test_half_of_each_matrix_is_near_its_other_rows_by_powers_of_two(shape: tuple[int, ...]) -> None:
    tensor = drawn(*shape)
    found, seen = NearRows(1024.0)(tensor, generator()), set()
    for was, now in zip(tensor.reshape(-1, *shape[-2:]), found.reshape(-1, *shape[-2:]), strict=True):
        changed = (was != now).any(-1)
        assert int(changed.sum()) == shape[-2] // 2
        for before, after in zip(was[changed], now[changed], strict=True):
            parts = (after - now[~changed]).norm(dim=-1) / (before - now[~changed]).norm(dim=-1)
            halvings = -parts.min().log2()
            assert abs(float(halvings - halvings.round())) < 1e-3 and 1 <= round(float(halvings)) <= 10
            seen.add(round(float(halvings)))
    assert len(seen) > 1 or shape[0] == 2


def test_rows_are_no_nearer_than_the_size_says() -> None:
    tensor = drawn(256, 32)
    found = NearRows(2.0)(tensor, generator())
    distances = torch.cdist(found, found) + 100 * torch.eye(256)
    assert float(distances.min()) > 0.2 * float(torch.cdist(tensor, tensor).median())


def test_rows_are_near_those_of_the_first_input_of_their_form_too() -> None:
    bring, source = NearRows(1024.0), generator()
    first, other, second = (bring(t, source) for t in (drawn(64, 32), drawn(64, 16), -drawn(64, 32)))
    assert 8 <= int((torch.cdist(second, first).amin(-1) < 2).sum()) <= 24
    assert int((torch.cdist(other, first[:, :16]).amin(-1) < 1).sum()) == 0


def test_structure_stays() -> None:
    symmetric = drawn(8, 8) + drawn(8, 8).mT
    kept = (symmetric, torch.eye(8), drawn(8, 8).sort(-1).values, drawn(8), drawn(1, 8), torch.ones(4, 4, dtype=torch.int64),
            torch.zeros(8, 8).masked_fill(torch.ones(8, 8).triu(1).bool(), -torch.inf), torch.ones(0, 4))  # fmt: skip
    assert not any(map(may_have_near_rows, kept))
    assert all(NearRows(4.0)(tensor, generator()) is tensor for tensor in kept)
    lower = drawn(8, 8).tril()
    assert torch.equal(NearRows(4.0)(lower, generator()) == 0, lower == 0)
    assert float(NearRows(4.0)(drawn(8, 8).abs(), generator()).min()) > 0
