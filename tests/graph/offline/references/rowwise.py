"""Row-wise references that do not ship: what users may bring. `python rowwise.py OUT` exports them."""

import torch
import torch.nn.functional as F
from export import export
from torch import nn

INFINITY = float("inf")


class Quickstart(nn.Module):
    def __init__(self, cols=768):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(cols))
        self.norm = nn.LayerNorm(cols)
        nn.init.normal_(self.norm.weight)
        nn.init.normal_(self.norm.bias)

    def forward(self, x, residual):
        return self.norm(F.gelu(x + self.bias) + residual)


class RmsGate(nn.Module):
    def __init__(self, cols=512):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(cols))

    def forward(self, x, gate):
        scale = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
        return x * scale * (1 + self.weight) * F.silu(gate)


class MaskedSoftmax(nn.Module):
    def forward(self, scores, mask):
        return torch.softmax(scores.masked_fill(~mask[:, None, None, :], -INFINITY), dim=-1)


class Cosine(nn.Module):
    def forward(self, a, b):
        return F.cosine_similarity(a, b, dim=-1)


class LogSumExp(nn.Module):
    def forward(self, x, temperature):
        return temperature * torch.logsumexp(x / temperature, dim=-1)


class Softmax(nn.Module):
    def forward(self, x):
        return torch.softmax(x, -1)


class LogSoftmax(nn.Module):
    def forward(self, x):
        return torch.log_softmax(x, -1)


class LayerNorm2d(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm((6, 50))

    def forward(self, x):
        return self.norm(x)


class MeanPool(nn.Module):
    def forward(self, x):
        return F.relu(x).mean(-1), x.amax(dim=-1, keepdim=True), torch.tanh(x)


class Gallery(nn.Module):
    """One of each elementwise operation."""

    def forward(self, x, y):
        a = F.leaky_relu(x, 0.2) + F.elu(y) - F.hardtanh(x, -0.5, 2.0)
        b = torch.sigmoid(x) * torch.erf(y) + F.gelu(x, approximate="tanh") / (1 + y.abs())
        c = torch.log1p(y.abs()) + torch.expm1(x * 0.1) + (x**3).clamp(max=4) + torch.sqrt(y.abs()) - y.pow(0.5 * 2)
        d = torch.where((x > 0) & (y <= 0.3), torch.maximum(x, y), torch.minimum(x, -y)) + torch.reciprocal(2 + x.abs())
        return a + b + c + d, (a * b).var(-1), torch.log(c.abs().sum(-1) + 1) + x.norm(dim=-1)


class HalfNorm(nn.Module):
    def forward(self, x, weight):
        wide = x.float()
        return (wide * torch.rsqrt((wide * wide).mean(-1, keepdim=True) + 1e-5)).to(x.dtype) * weight


class SwiGlu(nn.Module):
    def forward(self, x):
        left, right = x.chunk(2, dim=-1)
        return F.silu(left) * right


class PerRow(nn.Module):
    def forward(self, x, scale, table):
        wide = x.transpose(1, 2)
        return (wide * scale[:, :, None] + table - wide.mean(-1, keepdim=True)).contiguous()


class Plain(nn.Module):
    def forward(self, x):
        return F.silu(x) * 2.0


def spread(rows, cols):
    """Return rows with ordinary, large, tiny and constant contents."""
    x = torch.randn(rows, cols)
    x[1] *= 60
    x[2] *= 1e-3
    x[3] = 3.0 + 1e-2 * x[3]
    x[4] += 40
    return x


def mask_rows(rows, cols):
    mask = torch.rand(rows, cols) > 0.3
    mask[1] = False
    return mask


CASES = {
    "quickstart": (Quickstart(), lambda: [spread(64, 768), torch.randn(64, 768)]),
    "rms_gate": (RmsGate(), lambda: [spread(48, 512), 20 * torch.randn(48, 512)]),
    "masked_softmax": (MaskedSoftmax(), lambda: [4 * torch.randn(3, 4, 10, 130), mask_rows(3, 130)]),
    "cosine": (Cosine(), lambda: [spread(32, 257), torch.randn(32, 257)]),
    "log_sum_exp": (LogSumExp(), lambda: [spread(32, 1000), 0.7]),
    "softmax": (Softmax(), lambda: [spread(32, 1000)]),
    "log_softmax": (LogSoftmax(), lambda: [spread(32, 999)]),
    "layer_norm_2d": (LayerNorm2d(), lambda: [spread(32, 300).reshape(8, 4, 6, 50)]),
    "mean_pool": (MeanPool(), lambda: [spread(16, 333)]),
    "gallery": (Gallery(), lambda: [torch.randn(16, 400), torch.randn(16, 400)]),
    "half_norm": (HalfNorm(), lambda: [torch.randn(16, 256).bfloat16(), torch.randn(256).bfloat16()]),
    "swiglu": (SwiGlu(), lambda: [torch.randn(24, 400)]),
    "per_row": (PerRow(), lambda: [torch.randn(6, 40, 8), torch.randn(6, 8), torch.randn(8, 40)]),
    "plain": (Plain(), lambda: [torch.randn(20, 100)]),
}
REFUSED = {
    "matmul": (nn.Linear(8, 8), lambda: [torch.randn(4, 8)]),
    "sorted": (
        type("Sorted", (nn.Module,), {"forward": lambda self, x: torch.sort(x)[0]})(),
        lambda: [torch.randn(4, 8)],
    ),
    "top": (
        type("Top", (nn.Module,), {"forward": lambda self, x: torch.topk(x.softmax(-1), 3)[0].softmax(-1)})(),
        lambda: [torch.randn(4, 8)],
    ),
    "columns": (
        type("Columns", (nn.Module,), {"forward": lambda self, x: x / x.sum(0)})(),
        lambda: [torch.randn(4, 8)],
    ),
    "whole": (type("Whole", (nn.Module,), {"forward": lambda self, x: x.sum()})(), lambda: [torch.randn(4, 8)]),
}


if __name__ == "__main__":
    export({**CASES, **REFUSED}, rng_seed=7)
