"""A kernel's time at eager's own: what is comparable where the machine's speed drifts."""

from __future__ import annotations

import pytest
from tests.graph.memory_engine import DEVICE

from ridgeline.tools.records.baselines import Baseline, Baselines, Floor
from ridgeline.tools.records.reference_mode import ReferenceMode
from ridgeline.tools.records.results import Timing
from ridgeline.tools.records.vocabulary import PrecisionClass, Status

FLOOR = Floor(floor_ms=0.1, compute_floor_ms=0.0, bound="memory", bandwidth_gbps=100.0, gflops=100.0)
EAGER = Baseline(name=ReferenceMode.EAGER, precision_class=PrecisionClass.FP32, median_ms=8.0)
EAGER_TF32 = Baseline(name=ReferenceMode.EAGER_TF32, precision_class=PrecisionClass.TF32, median_ms=2.0)


def steady_ms(entries: tuple[Baseline, ...], timing: Timing, precision: PrecisionClass | None) -> float | None:
    return Baselines(device=DEVICE, entries=entries, floor=FLOOR).steady_ms(timing, precision)


def test_a_slow_machine_and_a_fast_one_give_one_time_and_the_order_of_the_speedups() -> None:
    slow = Timing(status=Status.OK, median_ms=5.0, reference_ms=20.0, speedup=4.0)
    fast = Timing(status=Status.OK, median_ms=2.5, reference_ms=9.0, speedup=3.6)
    first, second = (steady_ms((EAGER,), timing, PrecisionClass.FP32) for timing in (slow, fast))
    assert first == pytest.approx(2.0) and second == pytest.approx(8 / 3.6)


def test_a_reduced_class_is_held_against_eager_with_tf32_where_there_is_one() -> None:
    timing = Timing(status=Status.OK, median_ms=0.6, speedup=4.0)
    assert steady_ms((EAGER, EAGER_TF32), timing, PrecisionClass.FP16) == pytest.approx(0.5)
    assert steady_ms((EAGER, EAGER_TF32), timing, PrecisionClass.FP32) == pytest.approx(2.0)
    assert steady_ms((EAGER,), timing, PrecisionClass.FP16) == pytest.approx(2.0)


def test_without_a_speedup_or_eager_s_time_it_is_the_time_as_measured() -> None:
    timing = Timing(status=Status.OK, median_ms=0.6)
    assert steady_ms((EAGER,), timing, None) == 0.6
    assert steady_ms((), Timing(status=Status.OK, median_ms=0.6, speedup=4.0), None) == 0.6
