"""The specification that the builder of a module gets beside the module's file."""

from __future__ import annotations

from dataclasses import dataclass

from ridgeline.tools.records.codec import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuFacts(Record):
    """The facts that a builder without a GPU tells of the GPU where a module will run."""

    name: str
    arch: str  # "sm_90a"
    cores: int  # multiprocessors
    memory_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BuilderSpec(Record):
    """The making of one `ModelNew`."""

    init: str  # the list of the constructor's arguments, as a Python literal
    gpu: GpuFacts | None  # None: the module runs on a CPU
