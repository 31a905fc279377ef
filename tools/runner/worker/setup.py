"""What the parent tells a Python runner before it loads the candidate, read and mapped (runs in the runner)."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from ridgeline.tools.runner.worker.device import CpuDevice, CudaDevice, Device, Failed, Region

Views = list[torch.Tensor]  # one for each set


@dataclass(frozen=True, slots=True, kw_only=True)
class Pointer:
    """One tensor of the signature in the judge's memory."""

    role: str
    views: Views


@dataclass(slots=True, kw_only=True)
class Setup:
    """The parent's set-up lines, with the regions mapped."""

    device: Device = field(default_factory=CpuDevice)
    library: str = ""
    watcher: str = ""
    sets: int = 1
    module: dict[str, Any] | None = None  # interface module: the source and how a ModelNew is made and called
    regions: list[Region] = field(default_factory=list)
    pointers: list[Pointer] = field(default_factory=list)  # in the order of the signature
    values: list[Pointer | float | int | bool] = field(default_factory=list)  # scalars among them, without outputs

    @property
    def outputs(self) -> list[Views]:
        """Return the judge's memory for each output."""
        return [p.views for p in self.pointers if p.role == "output"]

    @property
    def inputs(self) -> list[Views]:
        """Return each input tensor of `forward`."""
        return [p.views for p in self.pointers if p.role == "input"]


def read_setup(lines: Iterator[str]) -> Setup:
    """Return the set-up that the parent sends, its regions mapped.

    Raises:
        Failed: the device or its memory cannot be had, or the set-up has no end.
    """
    setup = Setup()
    for line in lines:
        word, _, rest = line.partition(" ")
        words = rest.split(" ")
        if word == "end":
            return setup
        if word == "device":
            setup.device = CudaDevice() if rest == "cuda" else CpuDevice()
        elif word in ("library", "watcher"):
            setattr(setup, word, rest)
        elif word == "module":
            setup.module = json.loads(rest)
        elif word == "sets":
            setup.sets = int(rest)
        elif word == "region":
            setup.regions.append(setup.device.map(int(words[0]), int(words[1]), read_only=words[2] == "ro"))
        elif word == "pointer":
            _add_pointer(setup, words)
        elif word == "scalar":
            setup.values.append(_scalar(words[0], words[1]))
    raise Failed("protocol", "the set-up has no end")


def _add_pointer(setup: Setup, words: Sequence[str]) -> None:
    role, dtype = words[0], words[4]
    region, offset, set_stride, ndim, *numbers = (int(word) for word in (*words[1:4], *words[5:]))
    shape, strides = numbers[:ndim], numbers[ndim:]
    memory = setup.regions[region]
    kind = getattr(torch, dtype)
    count = 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))

    def view(place: int) -> torch.Tensor:
        if math.prod(shape) == 0:
            return torch.empty(shape, dtype=kind, device=setup.device.name)
        return memory.flat(kind, count, place).as_strided(shape, strides)

    places = [offset + i * set_stride for i in range(setup.sets)]
    pointer = Pointer(role=role, views=[view(place) for place in places])
    setup.pointers.append(pointer)
    if role != "output":
        setup.values.append(pointer)


def _scalar(dtype: str, text: str) -> float | int | bool:
    value = float(text)
    return bool(value) if dtype == "bool" else int(value) if dtype == "int64" else value
