"""The judge's memory for one problem: three regions that judge and runner both map."""

from __future__ import annotations

import torch

from ridgeline.tools.judge.replies import Place
from ridgeline.tools.judge.set_count import WORKING_SETS, count_sets
from ridgeline.tools.judge.worker.device import JudgeDevice
from ridgeline.tools.judge.worker.regions import LEAST_BYTES, storage_elements, torch_dtype
from ridgeline.tools.records.problem import ArgSpec, Signature
from ridgeline.tools.records.vocabulary import ArgKind, Role

_RED_ZONE_BYTES = LEAST_BYTES
"""Behind each tensor, also one that ends with its page: what a kernel writes beyond an output shows there, and a sanitizer's
build finds it closed."""


class ArenaMemory:
    """Every set of inputs and outputs of a problem, and its parameters, as torch tensors over shared regions."""

    INPUTS, PARAMETERS, OUTPUTS = 0, 1, 2

    def __init__(self, signature: Signature, *, device: JudgeDevice, cache_bytes: int, memory_bytes: int) -> None:
        self.device = device
        specs = [a for a in signature.args if a.kind is ArgKind.TENSOR]
        offsets: dict[int, int] = {self.INPUTS: 0, self.PARAMETERS: 0, self.OUTPUTS: 0}
        starts: list[tuple[int, int]] = []
        self.set_bytes = 0  # without the red zones, which no kernel touches
        for spec in specs:
            region = self._region_of(spec.role)
            taken = _aligned(_size_bytes(spec))
            starts.append((region, offsets[region]))
            offsets[region] += taken + _RED_ZONE_BYTES
            self.set_bytes += taken if region != self.PARAMETERS else 0
        self.n_sets = count_sets(self.set_bytes, kind=device.kind, cache_bytes=cache_bytes, memory_bytes=memory_bytes)
        self.regions = (
            device.region("inputs", offsets[self.INPUTS] * self.n_sets, writable_by_runner=False),
            device.region("parameters", offsets[self.PARAMETERS], writable_by_runner=False),
            device.region("outputs", offsets[self.OUTPUTS] * self.n_sets, writable_by_runner=True),
        )
        self.places = tuple(
            Place(spec=s, region=r, offset=o, set_stride=0 if r == self.PARAMETERS else offsets[r])
            for s, (r, o) in zip(specs, starts, strict=True)
        )
        self.parameters = {p.spec.source: self._view(p, 0) for p in self.places if p.region == self.PARAMETERS}
        self.inputs = tuple(self._views(self.INPUTS, i) for i in range(self.n_sets))
        self.outputs = tuple(self._views(self.OUTPUTS, i) for i in range(self.n_sets))
        self.behind_outputs = tuple(self._spans_behind(self.OUTPUTS, i) for i in range(self.n_sets))
        """Of each set, the bytes between each output's last one and the next tensor."""

    @property
    def taken_bytes(self) -> int:
        """Return what the sets take, and grading beside them."""
        return (self.n_sets + WORKING_SETS) * self.set_bytes

    def wipe(self) -> None:
        """Overwrite all that a runner can write: a later runner could read there what an earlier one left."""
        self.regions[self.OUTPUTS].wipe()

    @staticmethod
    def _region_of(role: Role) -> int:
        if role is Role.INPUT:
            return ArenaMemory.INPUTS
        return ArenaMemory.OUTPUTS if role is Role.OUTPUT else ArenaMemory.PARAMETERS

    def _view(self, place: Place, set_index: int) -> torch.Tensor:
        return self.regions[place.region].tensor(place.offset + set_index * place.set_stride, place.spec)

    def _views(self, region: int, set_index: int) -> tuple[torch.Tensor, ...]:
        return tuple(self._view(p, set_index) for p in self.places if p.region == region)

    def _spans_behind(self, region: int, set_index: int) -> tuple[torch.Tensor, ...]:
        return tuple(
            self.regions[region].span(
                p.offset + set_index * p.set_stride + _size_bytes(p.spec),
                _aligned(_size_bytes(p.spec)) - _size_bytes(p.spec) + _RED_ZONE_BYTES,
            )
            for p in self.places
            if p.region == region
        )


def _size_bytes(spec: ArgSpec) -> int:
    return storage_elements(spec) * torch_dtype(spec.dtype).itemsize


def _aligned(size_bytes: int) -> int:
    return -(-size_bytes // LEAST_BYTES) * LEAST_BYTES
