"""A kernel's published speedups stand on the eager time that it was measured beside."""

from __future__ import annotations

import pytest

from ridgeline.checkpoints.history.over_pytorch import over_each
from ridgeline.tools.measure.sides import eager_mode
from ridgeline.tools.records.reference_mode import ReferenceMode
from ridgeline.tools.records.vocabulary import DeviceKind, PrecisionClass

ON_A_GPU = [
    {"name": ReferenceMode.EAGER, "median_ms": 8.0},
    {"name": ReferenceMode.EAGER_TF32, "median_ms": 1.0},
    {"name": ReferenceMode.COMPILE, "median_ms": 4.0},
]


@pytest.mark.parametrize("precision", [None, *PrecisionClass])
def test_figure_over_the_mode_of_its_timing_is_the_measured_speedup(precision: PrecisionClass | None) -> None:
    in_json = precision.value if precision else None
    assert over_each(1.5, in_json, ON_A_GPU)[eager_mode(DeviceKind.CUDA, precision)] == pytest.approx(1.5)


def test_reduced_precision_has_eager_s_one_time_where_there_is_no_tf32() -> None:
    assert over_each(1.5, "bf16", ON_A_GPU[:1]) == {"eager": pytest.approx(1.5)}
