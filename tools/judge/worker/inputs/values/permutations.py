"""Permutations in another order: rows that change places, single places that do, few or many, and two of one row."""

from __future__ import annotations

import torch

from ridgeline.tools.judge.worker.inputs.values.transforms import few_or_many


def mixed_up(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return the rows in another order, the elements where there is one row."""
    rows = tensor if tensor.shape[0] > 1 else tensor.reshape(-1)
    return rows[torch.randperm(rows.shape[0], generator=generator, device=generator.device)].view(tensor.shape)


def exchanged(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return a permutation with few places exchanged or many, and half of the time mixed up."""
    is_mixed = bool(uniform((), generator) < 1 / 2)
    flat = tensor.flatten().clone()
    chosen = few_or_many(_rows(tensor).shape, generator).flatten()
    chosen[_two_of(flat.numel(), generator)] = True
    places = chosen.nonzero().flatten()
    places = places[torch.randperm(places.numel(), generator=generator, device=generator.device)]
    flat[places] = flat[places.roll(1)]
    changed = flat.view(tensor.shape)
    mixed = mixed_up(changed, generator) if is_mixed else changed
    return changed if torch.equal(mixed, tensor) else mixed


def exchanged_in_rows(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return a permutation with few places exchanged within their rows, or many."""
    rows = _rows(tensor)
    chosen = few_or_many(rows.shape, generator)
    chosen[_one_of(rows.shape[0], generator), _two_of(rows.shape[1], generator)] = True
    counts, places = chosen.sum(-1, keepdim=True), torch.arange(rows.shape[1], device=rows.device)
    order = torch.where(chosen, uniform(rows.shape, generator), 2.0).argsort(-1)  # the chosen places first
    following = torch.where(places < counts - 1, places + 1, torch.where(places == counts - 1, 0, places))
    return rows.scatter(1, order, rows.gather(1, order.gather(1, following))).view(tensor.shape)


def with_two_exchanged(tensor: torch.Tensor, _other: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return a permutation with two places of one secret row exchanged: it stays one."""
    changed = _rows(tensor).clone()
    row = changed[_one_of(changed.shape[0], generator)]
    places = _two_of(row.numel(), generator)
    row[places] = row[places.flip(0)]
    return changed.view(tensor.shape)


def with_one_replaced(tensor: torch.Tensor, other: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return distinct numbers one of which is another draw's at its place, where that has others: they stay distinct."""
    places = (~torch.isin(other, tensor)).flatten().nonzero().flatten()
    if not places.numel():
        return tensor
    changed, place = tensor.flatten().clone(), places[_one_of(places.numel(), generator)]
    changed[place] = other.flatten()[place]
    return changed.view(tensor.shape)


def _rows(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.reshape(-1, tensor.shape[-1]) if tensor.shape[-1] > 1 else tensor.reshape(1, -1)


def uniform(shape: torch.Size | tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    """Return random numbers from 0 to 1."""
    return torch.rand(shape, generator=generator, device=generator.device)


def _one_of(count: int, generator: torch.Generator) -> int:
    return int(torch.randint(count, (), generator=generator, device=generator.device))


def _two_of(count: int, generator: torch.Generator) -> torch.Tensor:
    first = torch.randint(count, (1,), generator=generator, device=generator.device)
    second = (first + torch.randint(1, count, (1,), generator=generator, device=generator.device)) % count
    return torch.cat((first, second))
