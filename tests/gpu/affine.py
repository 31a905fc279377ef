"""relu(x) * scale + bias on 1 GiB read and written, and a kernel for it with whatever is wrong."""

from __future__ import annotations

from pathlib import Path

REFERENCE = """import torch
from torch import nn
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(4096))
        self.bias = nn.Parameter(torch.zeros(4096))
    def forward(self, x):
        return torch.relu(x) * self.scale + self.bias
def get_inputs():
    return [torch.randn(32768, 4096)]
def get_init_inputs():
    return []
"""
SOURCE = (Path(__file__).parent / "sources" / "affine.cu").read_text()


def with_defect(name: str) -> str:
    """Return the kernel with one of its defects, or HONEST."""
    return SOURCE.replace("#define DEFECT 0", f"#define DEFECT {name}", 1)
