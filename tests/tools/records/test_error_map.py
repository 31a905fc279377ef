"""The words for how near an output is to its limits."""

from __future__ import annotations

from ridgeline.tools.records.error_map import UNBOUNDED, LimitUse, Measure


def test_an_error_over_nothing_has_no_figure_in_words() -> None:
    use = LimitUse(measure=Measure.ROW, figure=UNBOUNDED, limit=6.4e-4)
    assert use.in_words() == "a row's error beyond all bounds, gate 0.00064" and not use.is_within
