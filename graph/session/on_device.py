"""The problem of a user on a device: the target that a search measures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ridgeline.tools.records.problem import Device, Target
from ridgeline.tools.records.vocabulary import Interface, PrecisionClass

if TYPE_CHECKING:
    from ridgeline.problems.spec import ProblemSpec


def on_device(spec: ProblemSpec, device: Device) -> Target:
    """Return the problem on `device`, not yet described.

    Raises:
        ProblemError: a size that the target sets does not exist in the reference.
    """
    return Target(
        name=spec.name,
        reference_source=spec.reference_source(device.kind.value),
        interface=Interface(spec.interface),
        tolerance=PrecisionClass(spec.tolerance),
        device=device,
        call_timeout_s=spec.call_timeout_s,
    )
