"""The words for how near an output is to its limits."""

from __future__ import annotations

import pytest

from ridgeline.tools.records.error_map import UNBOUNDED, LimitUse, Measure


def test_an_error_over_nothing_has_no_figure_in_words() -> None:
    use = LimitUse(measure=Measure.ROW, figure=UNBOUNDED, limit=6.4e-4)
    assert use.in_words() == "a row's error beyond all bounds, gate 0.00064" and not use.is_within


@pytest.mark.parametrize(
    ("factor", "words"),
    [
        (1.2, "1.2"),
        (1.004, "1.004"),
        (1.000023718511315, "1.00002"),
        (1 + 1e-9, "just over 1"),
        (1 - 1e-9, "just under 1"),
    ],
)
def test_a_factor_near_1_has_six_digits_at_most(factor: float, words: str) -> None:
    assert f"({words} x)" in LimitUse(measure=Measure.OUTPUT, figure=factor, limit=1.0).in_words()
