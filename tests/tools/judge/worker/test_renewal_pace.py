"""The pace of renewals: what a processor is granted, and a machine that became slower."""

from __future__ import annotations

import pytest

from ridgeline.tools.judge.worker.renewal_pace import RenewalPace
from ridgeline.tools.measure.distrust import RENEWAL_SLOWDOWN


def pace_of(*seconds: float, n_sets: int = 3) -> RenewalPace:
    return RenewalPace(iter((*seconds, *seconds[-1:] * 9)).__next__, n_sets=n_sets)


def test_a_renewal_of_many_small_sets_is_granted_a_busy_processor_and_one_of_few_large_sets_is_not() -> None:
    many, few = pace_of(0.025, n_sets=512), pace_of(0.025)
    assert many.slowdown_of(1.6 * 0.025) < RENEWAL_SLOWDOWN
    assert few.slowdown_of(1.6 * 0.025) > RENEWAL_SLOWDOWN
    assert many.slowdown_of(2.5 * 0.025) > RENEWAL_SLOWDOWN
    assert pace_of(0.0001).slowdown_of(0.0005) == 0.0


def test_the_fastest_of_several_is_the_usual_one() -> None:
    assert pace_of(0.8, 0.2, 0.1, 0.3).slowdown_of(0.2 + 1e-3 + 3 * 20e-6) == pytest.approx(2.0)


def test_a_pace_that_is_taken_again_tells_how_much_slower_the_machine_is() -> None:
    assert pace_of(0.05).slowdown_since(pace_of(0.025)) == pytest.approx(2.0)


def test_where_nobody_needs_it_nothing_is_timed_and_nothing_is_slow() -> None:
    none = RenewalPace(lambda: 1 / 0, n_sets=3, is_needed=False)
    assert (none.slowdown_of(9.0), pace_of(0.5).slowdown_since(none)) == (0.0, 1.0)
