"""What plain loops in float32 make: products, sums of exponentials, losses, rows less their mean, running products."""

import torch
from torch import nn
from torch.nn import functional as F

SAMPLES, FEATURES = 2048, 16
ROWS, VOCABULARY = 4, 32768
WEEKS, DAYS = 4096, 7
SERIES, STEPS = 16, 2000


class Model(nn.Module):
    def forward(self, x, logits, is_object, week, factors, kept):
        centred = x - x.mean(0)
        apart = week - week.mean(-1, keepdim=True)
        return (
            centred.T @ centred / (SAMPLES - 1),
            torch.logsumexp(logits, -1),
            F.cross_entropy(logits.reshape(1, 2, -1), is_object),
            apart / (week.std(-1, keepdim=True) + 1e-5),
            factors.cumprod(-1),
            (logits[:, :WEEKS] * kept).sum(-1),
        )


def get_inputs():
    return [
        torch.randn(SAMPLES, FEATURES),
        torch.randn(ROWS, VOCABULARY),
        torch.randint(0, 2, (1, ROWS * VOCABULARY // 2)),
        torch.randn(WEEKS, DAYS),
        torch.randn(SERIES, STEPS),
        torch.rand(ROWS, WEEKS) < 0.5,
    ]


def get_init_inputs():
    return []
