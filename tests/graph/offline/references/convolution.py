"""Convolutions that do not ship. `python convolution.py OUT` exports them."""

import torch
import torch.nn.functional as F
from export import export
from torch import nn


class Conv(nn.Module):
    """A convolution with an epilogue of its own and perhaps a pool."""

    def __init__(self, *args, after=None, pool=None, dtype=torch.float32, **keywords):
        super().__init__()
        self.conv = nn.Conv2d(*args, dtype=dtype, **keywords)
        self.after, self.pool = after, pool

    def forward(self, x):
        y = self.conv(x)
        y = y if self.after is None else self.after(y)
        return y if self.pool is None else F.max_pool2d(y, **self.pool)


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(6, 10, 3, padding=1, bias=False)
        self.scale = nn.Parameter(torch.randn(10, 1, 1))

    def forward(self, x, y):
        return F.silu(self.conv(x) * self.scale + y)


def alexnet(**keywords):
    return Conv(3, 96, 11, stride=4, padding=2, **keywords)


POOL = {"kernel_size": 3, "stride": 2}
CASES = {
    "alexnet": (alexnet(), lambda: [torch.randn(2, 3, 67, 64)]),
    "alexnet_relu_pool": (alexnet(after=F.relu, pool=POOL), lambda: [torch.randn(2, 3, 67, 64)]),
    "square": (Conv(16, 32, 3, padding=1, bias=False, after=F.relu), lambda: [torch.randn(1, 16, 20, 24)]),
    "pointwise": (Conv(33, 17, 1, after=torch.tanh), lambda: [torch.randn(3, 33, 7, 9)]),
    "dilated": (Conv(5, 21, (3, 2), stride=(2, 3), padding=(3, 1), dilation=2), lambda: [torch.randn(2, 5, 19, 71)]),
    "wide": (Conv(4, 40, 5, stride=2, padding=2, pool={**POOL, "padding": 1}), lambda: [torch.randn(1, 4, 13, 260)]),
    "ceiling": (
        Conv(2, 9, 3, stride=3, pool={"kernel_size": 2, "ceil_mode": True}, after=F.relu),
        lambda: [torch.randn(2, 2, 32, 34)],
    ),
    "spread_pool": (
        Conv(3, 8, 3, padding=1, pool={"kernel_size": (2, 3), "stride": (3, 1), "dilation": (2, 2)}),
        lambda: [torch.randn(2, 3, 17, 12)],
    ),
    "residual": (Residual(), lambda: [torch.randn(2, 6, 9, 11), torch.randn(2, 10, 9, 11)]),
    "brain": (
        Conv(8, 24, 3, stride=2, padding=1, after=F.relu, dtype=torch.bfloat16),
        lambda: [torch.randn(2, 8, 15, 18).bfloat16()],
    ),
}
REFUSED = {
    "grouped": (Conv(8, 8, 3, groups=2), lambda: [torch.randn(1, 8, 6, 6)]),
    "transposed": (nn.ConvTranspose2d(3, 4, 3), lambda: [torch.randn(1, 3, 6, 6)]),
    "one_dimension": (nn.Conv1d(3, 4, 3), lambda: [torch.randn(1, 3, 6)]),
    "two_layers": (nn.Sequential(nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 3)), lambda: [torch.randn(1, 3, 9, 9)]),
    "after_pool": (
        nn.Sequential(nn.Conv2d(3, 4, 3), nn.MaxPool2d(2), nn.Tanh()),
        lambda: [torch.randn(1, 3, 9, 9)],
    ),
    "before": (nn.Sequential(nn.ReLU(), nn.Conv2d(3, 4, 3)), lambda: [torch.randn(1, 3, 9, 9)]),
    "summed": (
        type("Summed", (nn.Module,), {"forward": lambda self, x, w: F.conv2d(x, w).sum((2, 3))})(),
        lambda: [torch.randn(1, 3, 9, 9), torch.randn(4, 3, 3, 3)],
    ),
}


if __name__ == "__main__":
    export({**CASES, **REFUSED}, rng_seed=11)
