"""Modules of a program of a user's own, the problem made of one, and the reference in it."""

from __future__ import annotations

import types
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from ridgeline.problems.spec import ProblemSpec


class Chain(nn.Module):
    """A layer norm and a GELU: a family that the offline model composes."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.norm, self.drop = nn.LayerNorm(width), nn.Dropout(0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.drop(functional.gelu(self.norm(x)))


class Block(nn.Module):
    """What a module of a program may hold: tied weights, buffers of each kind, a plain tensor, contexts, writes."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(16, 16), nn.Linear(16, 16)])
        self.layers[1].weight = self.layers[0].weight
        self.norm = nn.BatchNorm1d(16)
        self.register_buffer("table", torch.linspace(0, 1, 64).reshape(4, 16).sin(), persistent=False)
        self.register_buffer("mask", torch.ones(16, 16).tril().bool())
        self.unused = nn.Parameter(torch.zeros(3))
        self.steps = torch.arange(16.0).sqrt()  # neither a parameter nor a buffer

    def forward(self, x: torch.Tensor, n: int, scale: float, other: torch.Tensor | None = None) -> dict[str, Any]:
        with torch.no_grad():
            y = functional.silu(self.layers[0](x)) + self.table
        with torch.autocast("cpu", enabled=False):
            y = y @ torch.where(self.mask, self.layers[1].weight, 0.0) * scale + self.steps
        y = y.relu_()
        y += n
        a, b = self.norm(y).to(x.dtype)[:, :].chunk(2, -1)
        return {"a": a, "b": (b[..., None], [torch.arange(4, device=x.device) * 2])}


class Given(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2


class Scaled(nn.Module):
    def __init__(self, scale: float) -> None:
        super().__init__()
        self.scale = torch.tensor(scale)
        self.register_buffer("shift", torch.full((4,), scale), persistent=False)

    def forward(self, x: torch.Tensor, least: float = 0.0) -> torch.Tensor:
        return (x * self.scale).clamp(min=least) + self.shift[0]


def made(folder: Path, module: nn.Module, *example: Any, **keys: Any) -> ProblemSpec:
    return ProblemSpec.from_module(module, example, folder=folder / "own", **{"name": "own", **keys})


def reference_of(spec: ProblemSpec) -> Any:
    """Run a problem's reference, whose module is this file's own."""
    module = types.ModuleType("reference")
    exec(spec.reference_source("cpu"), module.__dict__)
    return module
