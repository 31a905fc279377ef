"""The floor under a problem's time: the compulsory bytes at the device's ceiling of bandwidth.

floor = bytes of inputs and outputs / ceiling at the rotating working set + bytes of parameters / ceiling at any size

Each input is read once and each output written once. The ceiling is the fastest rate at which the device was seen to
move that much memory in any way, so no honest kernel can be faster. A plain copy's rate would have put an honest
streaming kernel below the floor.

The floor of arithmetic is advisory: FLOPs by formula / the fastest unit whose precision the problem accepts. An
algorithm may need fewer operations, so nothing is refused for being below it.
"""

from __future__ import annotations

from ridgeline.tools.judge.set_count import rotating_bytes
from ridgeline.tools.measure.ceilings import Ceilings
from ridgeline.tools.records.baselines import Floor
from ridgeline.tools.records.precision import accepted_classes, strictness
from ridgeline.tools.records.problem import Description, Signature
from ridgeline.tools.records.vocabulary import STRICTEST_FIRST, ArgKind, PrecisionClass, Role

_FLOATING = {"float64", "float32", "float16", "bfloat16"}
_STORED_AS = {PrecisionClass.FP16: "float16", PrecisionClass.BF16: "bfloat16"}


def floor_for(description: Description, limits: Ceilings, tolerance: PrecisionClass = PrecisionClass.FP32) -> Floor:
    """Return the least time the problem can take on this device, when results of class `tolerance` are accepted.

    Inputs and outputs rotate through more memory than the caches hold, so they move at main memory's rate. Parameters
    are the same in every call and may stay in a cache, so they count at the fastest rate of any size.

    Raises:
        ProblemError: the tolerance is `exact`.
    """
    signature = description.signature
    resident = sum(a.stored_bytes for a in signature.with_role(Role.PARAMETER, Role.BUFFER))
    moving = max(description.compulsory_bytes - resident, 0)
    device = limits.device
    moved = rotating_bytes(moving, kind=device.kind, cache_bytes=device.cache_bytes, memory_bytes=device.memory_bytes)
    rate = limits.fastest_at(moved)
    memory_ms = (moving / rate + resident / limits.fastest_anywhere) / 1e6
    unit, gflops = limits.fastest_unit(legal_classes(signature, tolerance))
    compute_ms = description.flops / gflops / 1e6
    return Floor(
        floor_ms=memory_ms,
        compute_floor_ms=compute_ms,
        bound="memory" if memory_ms >= compute_ms else "compute",
        bandwidth_gbps=rate,
        gflops=gflops,
        unit=unit,
        class_gflops=dict(limits.class_gflops),
    )


def legal_classes(signature: Signature, tolerance: PrecisionClass) -> tuple[PrecisionClass, ...]:
    """Return the classes whose units a correct kernel may compute on.

    A class is legal when it is as strict as the loosest class accepted, or when all floating operands are stored in
    it: products of fp16 numbers are exact on a tensor core that adds in fp32, whatever the problem's tolerance.

    Raises:
        ProblemError: the tolerance is `exact`.
    """
    outputs = tuple(a.dtype for a in signature.with_role(Role.OUTPUT) if a.kind is ArgKind.TENSOR)
    loosest = strictness(accepted_classes(tolerance, outputs)[-1])
    operands = {a.dtype for a in signature.args if a.role is not Role.OUTPUT and a.kind is ArgKind.TENSOR}
    floating = operands & _FLOATING
    return tuple(c for c in STRICTEST_FIRST if strictness(c) <= loosest or floating == {_STORED_AS.get(c)})
