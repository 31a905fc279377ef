"""Sums, counts and places of numbers that a draw spreads evenly: over images, bins, lanes, blocks, masks, levels and groups."""

import torch
from torch import nn

IMAGES = 320
PIXELS = 64
ROWS = 96
COLS = 1024
BINS = 256
PER_BIN = 1 / 16
LARGEST = 8
SCORED = 16
SCORES = 4096
BITS = 24
PLACED = 128
GROUPS = 8
SUMMED = 64
EDGES = (-1.7, -1.2, -0.92, -0.68, -0.46, -0.26, -0.08, 0.08, 0.24, 0.4, 0.58, 0.78, 1.0, 1.28, 1.72)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("edges", torch.tensor(EDGES))
        self.register_buffer("group", torch.randint(0, GROUPS, (ROWS,)))

    def forward(self, images, x, scores, valid):
        bins = (x / PER_BIN).floor().clamp(-BINS // 2, BINS // 2 - 1).long() + BINS // 2
        weights = valid.to(x.dtype)
        means = (x * weights).sum(-1) / weights.sum(-1).clamp_min(1)
        groups = torch.zeros(GROUPS, SUMMED, dtype=x.dtype, device=x.device)
        return (
            images.sum(0),
            torch.bincount(bins.flatten(), minlength=BINS),
            x.topk(LARGEST).values,
            scores.topk(LARGEST).values,
            torch.where(valid.any(-1), means, x.amax(-1)),
            torch.bucketize(x[:, :PLACED], self.edges),
            groups.index_add(0, self.group, x[:, :SUMMED]),
        )


def get_inputs():
    images = torch.randint(0, 256, (IMAGES, PIXELS), dtype=torch.uint8)
    scores = torch.randint(0, 1 << BITS, (SCORED, SCORES), dtype=torch.int32)
    return [images, torch.randn(ROWS, COLS), scores, torch.rand(ROWS, COLS) < 1 / 2]


def get_init_inputs():
    return []
