"""A Python runner's set-up with the judge's memory mapped: one tensor for each pointer and set."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch

from ridgeline.tools.records.dtypes import spanned_elements
from ridgeline.tools.records.module_contract import ModuleSetup
from ridgeline.tools.records.vocabulary import Role
from ridgeline.tools.runner.wire import PointerLine, RunnerFailureCode, ScalarLine, Setup
from ridgeline.tools.runner.worker.device import DEVICES, MappedRegion, RunFailed, RunnerDevice

Views = list[torch.Tensor]  # one for each set


@dataclass(frozen=True, slots=True, kw_only=True)
class Pointer:
    """One tensor of the signature in the judge's memory."""

    role: Role
    views: Views


@dataclass(frozen=True, slots=True, kw_only=True)
class MappedSetup:
    """The parent's set-up of this runner, with the device opened and the regions mapped."""

    device: RunnerDevice
    library: str
    watcher: str
    n_sets: int
    module: ModuleSetup | None  # interface module alone
    does_nothing: bool  # no candidate is loaded
    weights_show: bool  # a call with other weights has to give another result
    shared_outputs: tuple[tuple[int, int], ...]  # pairs that may share memory
    regions: list[MappedRegion]
    pointers: list[Pointer]  # in the order of the signature
    values: list[Pointer | float | int | bool]  # pointers and scalars in the order of the signature, without outputs

    @property
    def outputs(self) -> list[Views]:
        """Return the judge's memory for each output."""
        return [p.views for p in self.pointers if p.role is Role.OUTPUT]

    @property
    def inputs(self) -> list[Views]:
        """Return each input tensor of `forward`."""
        return [p.views for p in self.pointers if p.role is Role.INPUT]


def read_setup(lines: Iterable[str]) -> MappedSetup:
    """Return the set-up that the parent sends, its regions mapped.

    Raises:
        RunFailed: the device or its memory cannot be had, or the set-up cannot be read.
    """
    try:
        setup = Setup.parse(lines)
    except (KeyError, ValueError) as error:
        raise RunFailed(RunnerFailureCode.PROTOCOL, f"the set-up cannot be read: {error}") from error
    if setup.python is None:
        raise RunFailed(RunnerFailureCode.PROTOCOL, "the set-up names no device")
    device = DEVICES[setup.python.device]()
    regions = [device.map(r.descriptor, r.size_bytes, read_only=not r.writable) for r in setup.regions]
    arguments = [_argument(line, device, regions, setup.n_sets) for line in setup.arguments]
    pointers = [argument for argument in arguments if isinstance(argument, Pointer)]
    return MappedSetup(
        device=device,
        library=setup.library,
        watcher=setup.python.watcher,
        n_sets=setup.n_sets,
        module=setup.python.module,
        does_nothing=setup.python.does_nothing,
        weights_show=setup.python.weights_show,
        shared_outputs=setup.python.shared_outputs,
        regions=regions,
        pointers=pointers,
        values=[a for a in arguments if not isinstance(a, Pointer) or a.role is not Role.OUTPUT],
    )


def _argument(
    line: PointerLine | ScalarLine, device: RunnerDevice, regions: list[MappedRegion], n_sets: int
) -> Pointer | float | int | bool:
    if isinstance(line, ScalarLine):
        return _scalar(line)
    memory = regions[line.region]
    kind = getattr(torch, line.dtype)
    count = spanned_elements(line.shape, line.strides)

    def view(place: int) -> torch.Tensor:
        if count == 0:
            return torch.empty(line.shape, dtype=kind, device=device.name)
        return memory.flat(kind, count, place).as_strided(line.shape, line.strides)

    return Pointer(role=line.role, views=[view(line.offset + i * line.set_stride) for i in range(n_sets)])


def _scalar(line: ScalarLine) -> float | int | bool:
    if line.dtype == "bool":
        return bool(line.value)
    return int(line.value) if line.dtype == "int64" else line.value
