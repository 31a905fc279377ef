"""The reference's side of a measurement: which mode a candidate of a class meets."""

from __future__ import annotations

import pytest

from ridgeline.tools.measure.sides import eager_mode
from ridgeline.tools.records.reference_mode import ReferenceMode
from ridgeline.tools.records.vocabulary import DeviceKind, PrecisionClass

FULL_PRECISION = [None, PrecisionClass.EXACT, PrecisionClass.FP64, PrecisionClass.FP32]
REDUCED = [precision for precision in PrecisionClass if precision not in FULL_PRECISION]


@pytest.mark.parametrize("measured", REDUCED)
def test_reduced_precision_meets_eager_with_tf32_on_a_gpu_alone(measured: PrecisionClass) -> None:
    assert eager_mode(DeviceKind.CUDA, measured) is ReferenceMode.EAGER_TF32
    assert eager_mode(DeviceKind.CPU, measured) is ReferenceMode.EAGER


@pytest.mark.parametrize("measured", FULL_PRECISION)
def test_full_precision_meets_eager_with_tf32_off(measured: PrecisionClass | None) -> None:
    assert eager_mode(DeviceKind.CUDA, measured) is ReferenceMode.EAGER
