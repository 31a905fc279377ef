"""Distances of queries to items, a margin at each query's own item, and a turn towards it: like and opposite rows count."""

import torch
from torch import nn

QUERIES = 192
ITEMS = 256
WIDTH = 32
FAR = 0.9
SHARE = 0.25


class Model(nn.Module):
    def forward(self, queries, items, own):
        squares = queries.square().sum(-1)[:, None] + items.square().sum(-1)
        distances = (squares - 2 * queries @ items.mT).clamp(min=0).sqrt()
        q, i = (t / t.norm(dim=-1, keepdim=True) for t in (queries, items))
        cosine = (q * i[own]).sum(-1)
        margin = torch.where(cosine > -FAR, cosine, 2 * cosine + FAR)
        is_near = (cosine.abs() > 0.999)[:, None]
        angle = torch.acos(cosine.clamp(-0.999, 0.999))[:, None]
        weights = (
            torch.where(is_near, part, torch.sin(part * angle) / torch.sin(angle)) for part in (1 - SHARE, SHARE)
        )
        return distances, margin, sum(weight * rows for weight, rows in zip(weights, (q, i[own]), strict=True))


def get_inputs():
    return [torch.randn(QUERIES, WIDTH), torch.randn(ITEMS, WIDTH), torch.randint(0, ITEMS, (QUERIES,))]


def get_init_inputs():
    return []
