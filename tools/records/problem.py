"""A problem on one device: the device, the reference's signature and its description."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from ridgeline.tools.records.codec import Record
from ridgeline.tools.records.dtypes import element_bytes, spanned_bytes
from ridgeline.tools.records.module_contract import ModuleContract
from ridgeline.tools.records.precision import asked_of
from ridgeline.tools.records.vocabulary import ArgKind, DeviceKind, Interface, Label, PrecisionClass, Role

type_name = str  # a torch dtype without its prefix: "float32", "bfloat16", "int64", "bool"


@dataclass(frozen=True, slots=True, kw_only=True)
class Device(Record):
    """One device that candidates run on."""

    kind: DeviceKind
    index: int = 0
    name: str  # "Intel(R) Xeon(R) Platinum 8481C", "NVIDIA H200"
    arch: str  # native code runs on no other: a CPU model and its flags' hash, or "sm_90a"
    uuid: str  # names the lock: "cpu" or the GPU's UUID
    cores: int  # usable CPU cores, or multiprocessors
    memory_bytes: int
    cache_bytes: int  # last-level cache of a CPU, L2 of a GPU
    driver: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceFact(Record):
    """One line of a device's table: `L2 cache: 60 MiB`."""

    name: str
    value: str  # with its unit


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgSpec(Record):
    """One argument of `run`, as the reference describes it."""

    name: str  # a C identifier: "x", "layer_norm_weight", "xs_0" for an element of a list, "out" or "out_0"
    role: Role
    kind: ArgKind = ArgKind.TENSOR
    dtype: type_name = "float32"  # a scalar's is "float64", "int64" or "bool"
    shape: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    value: float | None = None  # a scalar's nominal value; scalars are also passed to `run` by value
    source: str = ""  # how the reference names it: "ln.weight", "xs[0]", "result['y']"

    @property
    def spanned_bytes(self) -> int:
        """Return how many bytes lie between a tensor's first and last element, both included."""
        return spanned_bytes(self.shape, self.strides, self.dtype)

    @property
    def stored_bytes(self) -> int:
        """Return how many bytes a kernel has to move for it: a dimension of stride 0 is stored once, a scalar nowhere."""
        if self.kind is not ArgKind.TENSOR:
            return 0
        strides = self.strides or (1,) * len(self.shape)
        stored = (size for size, stride in zip(self.shape, strides, strict=True) if stride != 0 or size == 0)
        return math.prod(stored) * element_bytes(self.dtype)


WRITTEN = "_after"
"""The end of the name of an output that is what becomes of an input."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature(Record):
    """The arguments of `run` in order: inputs, then parameters and buffers by name, then outputs."""

    args: tuple[ArgSpec, ...]

    def with_role(self, *roles: Role) -> tuple[ArgSpec, ...]:
        """Return the arguments of these roles, in order."""
        return tuple(a for a in self.args if a.role in roles)

    @property
    def given_scalars(self) -> tuple[float | int | bool, ...]:
        """Return the values that scalars usually have, in order."""
        return tuple(a.value for a in self.args if a.value is not None)

    @property
    def written_input(self) -> str:
        """Return the name of an input that `forward` writes without returning it, "" where there is none."""
        after = [a.name for a in self.with_role(Role.OUTPUT) if a.name.endswith(WRITTEN)]
        return after[0].removesuffix(WRITTEN) if after else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedTrial(Record):
    """A test that no candidate meets: a trial that the reference refuses, an argument's other values, or its effect."""

    name: str  # a trial's, or "not_varied NAME", … of an argument or an output
    reason: str
    label: Label = Label.TRIAL_SKIPPED  # what a verdict says of it

    @classmethod
    def of_name(cls, name: str, reason: str) -> Self:
        """Return the one of this name, which begins with its label where that is not TRIAL_SKIPPED: "not_varied mask"."""
        first, _, rest = name.partition(" ")
        label = Label(first) if rest and first in tuple(Label) else Label.TRIAL_SKIPPED
        return cls(name=name, reason=reason, label=label)


def with_skipped_apart(stored: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a stored verdict as this version has it: an earlier one kept skipped trials among the others, as passed."""
    trials = stored.get("trials", ())
    if not any(trial.get("skipped") for trial in trials):
        return stored
    skipped = [SkippedTrial.of_name(trial["name"], trial["skipped"]) for trial in trials if trial.get("skipped")]
    return {
        **stored,
        "trials": [trial for trial in trials if not trial.get("skipped")],
        "skipped": [each.to_json() for each in skipped],
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeRange(Record):
    """The smallest and the largest whole number that an input held in any trial."""

    name: str
    low: int
    high: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Description(Record):
    """The contract that a kernel must meet, found by running the reference once."""

    signature: Signature
    reference_graph: dict[str, Any] | None  # see tools/judge/worker/graph_export.py; None when the export failed
    graph_error: str = ""
    compulsory_bytes: int  # each input and parameter read once, each output written once
    flops: int  # by formula, advisory; 0 where no operation has one
    reference_sha256: str
    torch_version: str
    module: ModuleContract | None = None  # interface module alone
    skipped_trials: tuple[SkippedTrial, ...] = ()
    whole_numbers: tuple[WholeRange, ...] = ()  # that inputs held in the trials of the first secret
    weights_show: bool = True  # other parameters and buffers change the outputs, so a call with others has to differ

    @property
    def output_dtypes(self) -> tuple[str, ...]:
        """Return the outputs' types, in order."""
        return tuple(a.dtype for a in self.signature.with_role(Role.OUTPUT))


@dataclass(frozen=True, slots=True, kw_only=True)
class Target(Record):
    """A problem on one device, not yet described: the reference with this device's sizes, and the accepted class."""

    name: str
    reference_source: str  # sizes already substituted
    interface: Interface
    tolerance: PrecisionClass  # loosest class accepted
    device: Device
    call_timeout_s: float = 30.0

    @property
    def language(self) -> str:
        """Return the source language of a candidate: "cpp", "cu" or "py"."""
        return self.interface.language(self.device.kind)

    @property
    def judge_key(self) -> tuple[str, ...]:
        """Return the key of the judge's load: problems of one key share a judge and its secret."""
        return (self.reference_source, self.interface, self.tolerance)

    def described(self, description: Description) -> DescribedTarget:
        """Return the target with the judge's description of its reference."""
        fields = {f.name: getattr(self, f.name) for f in dataclasses.fields(Target)}
        return DescribedTarget(**fields, description=description)


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedTarget(Target):
    """A problem on one device whose reference was run once: every task but DescribeTask works on one."""

    description: Description

    @property
    def told_tolerance(self) -> PrecisionClass:
        """Return the tolerance in words: where no output is in float64, none is asked for its digits."""
        return asked_of(self.tolerance, self.description.output_dtypes)
