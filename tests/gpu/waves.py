"""The mean of sines of an input, whose arithmetic takes many times the floor: the problem of the cheats in sources/cheats."""

from __future__ import annotations

import re
from pathlib import Path

_SOURCES = Path(__file__).parent / "sources"
_HEADERS = (_SOURCES, Path(__file__).parent.parent / "cheats" / "sources")
_REFERENCE = """import torch
from torch import nn
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(COLS))
    def forward(self, x):
        total = torch.zeros_like(x)
        for k in range(1, 25):
            total = total + torch.sin(x * (k / 8) + self.bias)
        return total / 24
def get_inputs():
    return [torch.randn(ROWS, COLS)]
def get_init_inputs():
    return []
"""
SHAPES = {"waves": (4096, 4096), "small": (64, 256)}
"""By the first word of a cheat's name. A call on the small one leaves most of a GPU idle."""


def shape_of(name: str) -> tuple[int, int]:
    """Return the rows and columns of the problem that a cheat is for."""
    return SHAPES[name.partition("_")[0]]


def reference_of(name: str) -> str:
    """Return the reference of the problem that a cheat is for."""
    rows, cols = shape_of(name)
    return _REFERENCE.replace("ROWS", str(rows)).replace("COLS", str(cols))


def names() -> list[str]:
    """Return the names of all cheats of these problems, honest ones too."""
    return sorted(path.stem for path in (_SOURCES / "cheats").glob("*.cu"))


def source_of(name: str) -> str:
    """Return a cheat's source behind the work that all of them share, with the headers that it names."""
    return (_SOURCES / "waves_work.h").read_text() + _whole((_SOURCES / "cheats" / f"{name}.cu").read_text())


def _whole(source: str) -> str:
    return re.sub(r'#include "(\w+\.h)"\n', lambda header: _whole(_header(header[1])) or header[0], source)


def _header(name: str) -> str:
    """Return a header's text, "" where it is none of the tests'."""
    return next((path.read_text() for folder in _HEADERS if (path := folder / name).is_file()), "")
