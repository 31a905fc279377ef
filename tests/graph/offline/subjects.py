"""Subjects of requests, made of exported references."""

import pytest

from ridgeline.graph.models.requests import Subject
from ridgeline.tools.machine.vectors import VECTOR_REGISTERS
from ridgeline.tools.records.baselines import Baseline, Baselines, Floor
from ridgeline.tools.records.problem import Device, DeviceFact
from ridgeline.tools.records.reference_mode import ReferenceMode
from ridgeline.tools.records.vocabulary import DeviceKind, Interface, PrecisionClass

CPU = Device(
    kind=DeviceKind.CPU, name="cpu", arch="native", uuid="cpu", cores=2, memory_bytes=1 << 33, cache_bytes=1 << 25
)
WIDE, NARROW = (
    (DeviceFact(name=VECTOR_REGISTERS, value=registers),) for registers in ("32 of 512 bits", "16 of 256 bits")
)
"""Tables of CPUs with and without 512-bit vectors, so that nothing here depends on this machine's."""
HOPPER = Device(
    kind=DeviceKind.CUDA, name="NVIDIA H200", arch="sm_90a", uuid="GPU-0", cores=132, memory_bytes=141 << 30,
    cache_bytes=50 << 20,
)  # fmt: skip


BASELINES = Baselines(
    device=CPU,
    entries=(Baseline(name=ReferenceMode.EAGER, precision_class=PrecisionClass.FP32, median_ms=9.0),),
    floor=Floor(floor_ms=0.3, compute_floor_ms=0.1, bound="memory", bandwidth_gbps=50.0, gflops=100.0),
)


def subject_of(reference, device=CPU, tolerance="fp32", facts=WIDE):
    return Subject(
        problem_name=reference.name, reference_source="", header="", interface=Interface.C,
        language="cpp" if device.kind is DeviceKind.CPU else "cu", tolerance=PrecisionClass(tolerance), device=device,
        description=reference.description, facts=facts if device.kind is DeviceKind.CPU else (),
    )  # fmt: skip


QUICK = "// flags: -O1\n"
"""A line of a source that takes g++ half the time and changes none of the product's other flags, -ffast-math among them."""
each_build = pytest.mark.parametrize(
    "flags", [pytest.param(QUICK, id="quick"), pytest.param("", id="as_shipped", marks=pytest.mark.slow)]
)
"""A family's structures by themselves are always built as the product builds them, its other compositions in `make soak`."""


def some_slow(names, fast):
    """Return parameters of a test, all but `fast` marked slow: each compiles for seconds."""
    return [name if name in fast else pytest.param(name, marks=pytest.mark.slow) for name in names]
