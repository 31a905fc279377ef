"""When both figures of a kernel are told, the search's and its certificate's."""

from __future__ import annotations

from dataclasses import replace

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.history.measured_again import measured_again_words
from ridgeline.tools.records.results import Evaluation
from ridgeline.tools.records.vocabulary import Label, Purpose


def certified(found: Evaluation, speedup: float, *labels: Label) -> Evaluation:
    """Return a kernel's certificate with this speedup."""
    assert found.timing
    timing = replace(found.timing, speedup=speedup, speedup_ci95=(speedup - 0.5, speedup + 0.5), labels=labels)
    return replace(found, purpose=Purpose.CERTIFY, timing=timing)


def test_both_figures_are_told_where_the_certificates_is_outside_of_the_searchs_interval(filled: Archive) -> None:
    best = filled.run().best_id
    found = filled.own_evaluation(best or "")
    assert best and found and found.timing and found.speedup_interval
    low, high = found.speedup_interval
    for inside in (low, high):
        filled.add_evaluation(certified(found, inside))
        assert measured_again_words(filled, best) == "", "the interval holds it"
    filled.add_evaluation(certified(found, 9.5, Label.BUSY_MACHINE))
    own = f"{found.speedup:.2f}x ({low:.2f} to {high:.2f})"
    again = "the certificate's fresh measurements say 9.50x (9.00 to 10.00)"
    assert measured_again_words(filled, best) == f"the search measured {own}; {again} on a busy machine"
    filled.add_evaluation(replace(found, timing=replace(found.timing, labels=(Label.BUSY_MACHINE,))))
    filled.add_evaluation(certified(found, 9.5))
    assert measured_again_words(filled, best) == f"the search measured {own} on a busy machine; {again}"
    assert measured_again_words(filled, None) == "" == measured_again_words(filled, "r4i1v0a0")
