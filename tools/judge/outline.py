"""A reference's outline: its signature, its bytes, and what keeps it from being judged (no torch here).

An outline takes neither the reference's memory nor its time: see `judge/worker/outline_main.py`. Of a reference that reads
values it takes both, in bounds, where it is asked whether it raises.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from ridgeline.tools.judge.hang_limit import reference_limit_s
from ridgeline.tools.judge.memory_check import in_gb, lacking_room
from ridgeline.tools.judge.set_count import WORKING_SETS, count_sets
from ridgeline.tools.records.codec import Record
from ridgeline.tools.records.module_contract import CallForm
from ridgeline.tools.records.problem import Description, Device, Signature
from ridgeline.tools.records.vocabulary import ArgKind, PrecisionClass, Role


class OutlineCode(StrEnum):
    """Reasons against judging a reference."""

    NONE = ""
    PACKAGE = "package"  # it imports what is not installed
    FORM = "form"  # no tensor in or out, or a type that kernels do not take
    RAISED = "raised"
    RANDOM = "random"
    STATE = "state"
    MEMORY = "memory"
    TIME = "time"
    HUNG = "hung"  # one step of it did not end within `step_limit_s`
    TIGHT = "tight"  # by an estimate judging takes more memory than there is
    VALUES = "values"  # the reference reads values, so no outline can be made
    GPU = "gpu"  # it reads values, and run for real on the CPU it raised what a GPU may be all that it lacks for


OPEN = frozenset({OutlineCode.TIGHT, OutlineCode.VALUES, OutlineCode.GPU})
"""Codes that leave it open: only a run can tell."""
LIMIT_S = 120.0
"""Limit for one reference: a recurrent layer of hundreds of steps takes tens of seconds."""
RUN_LIMIT_S = 60.0
"""Limit for a run for real, beyond which a reference is left to the judge; a few forwards, on one core."""
MEMORY_BYTES = 8 << 30
"""Limit for what a reference allocates for real: constants, and a model whose constructor reads values."""

_STEPS = 2  # those that take long, of a limit: forward, and the same again for what it describes

_PARAMETER_SETS = 8
"""Copies of the parameters in the judge: shared, default, drawn, placed, float64 (2), rounded, kept with a trial."""


def outline_limit_s(call_timeout_s: float) -> float:
    """Return the limit for a problem's reference, each of whose steps may take as long as it may before the judge."""
    return max(LIMIT_S, _STEPS * reference_limit_s(call_timeout_s))


@dataclass(frozen=True, slots=True, kw_only=True)
class OutlineRequest(Record):
    """One reference to outline, and the limits of the process that does."""

    source: str
    tolerance: PrecisionClass = PrecisionClass.FP32
    limit_s: float = LIMIT_S
    memory_bytes: int = MEMORY_BYTES
    with_graph: bool = False
    with_call: bool = False
    with_run: bool = False  # for real, on the CPU, where tensors without values do not do

    @property
    def step_limit_s(self) -> float:
        """Return how long one step may take: its import, its model's making, inputs, one forward."""
        return self.limit_s / _STEPS


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline(Record):
    """A reference's signature and its bytes, and what speaks against judging it."""

    code: OutlineCode = OutlineCode.NONE
    reason: str = ""  # one sentence
    signature: Signature | None = None
    description: Description | None = None  # when it was asked for: what needs no value of a tensor
    call: CallForm | None = None  # when it was asked for
    forward_bytes: int = 0  # the most that lives at once in one forward, its arguments included

    @property
    def set_bytes(self) -> int:
        """Return the bytes of one set of inputs and outputs."""
        return self._bytes_of(Role.INPUT, Role.OUTPUT)

    @property
    def parameter_bytes(self) -> int:
        """Return the bytes of parameters and buffers."""
        return self._bytes_of(Role.PARAMETER, Role.BUFFER)

    def judge_bytes(self, device: Device) -> int:
        """Return about how much memory judging takes.

        (sets + WORKING_SETS) * set + _PARAMETER_SETS * parameters + 2 * what else lives in one forward.
        """
        cache_bytes, memory_bytes = device.cache_bytes, device.memory_bytes
        sets = count_sets(self.set_bytes, kind=device.kind, cache_bytes=cache_bytes, memory_bytes=memory_bytes)
        between = max(0, self.forward_bytes - self.set_bytes - self.parameter_bytes)
        return (sets + WORKING_SETS) * self.set_bytes + _PARAMETER_SETS * self.parameter_bytes + 2 * between

    def on(self, device: Device) -> Outline:
        """Return the outline for a device, with a reason where the device's memory is, or may be, too small."""
        if self.signature is None or self.code:
            return self
        if lacking := lacking_room(self.signature, kind=device.kind, memory_bytes=device.memory_bytes):
            return replace(self, code=OutlineCode.MEMORY, reason=lacking)
        needed = self.judge_bytes(device)
        if needed <= device.memory_bytes:
            return self
        reason = (
            f"judging it takes about {in_gb(needed)}, this device has {in_gb(device.memory_bytes)}: only a "
            f"run can tell, or choose smaller sizes (targets.{device.kind}.sizes)"
        )
        return replace(self, code=OutlineCode.TIGHT, reason=reason)

    def _bytes_of(self, *roles: Role) -> int:
        args = self.signature.with_role(*roles) if self.signature else ()
        return sum(a.spanned_bytes for a in args if a.kind is ArgKind.TENSOR)
