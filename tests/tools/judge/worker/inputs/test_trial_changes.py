"""Other changes drop the cases that have other contents by them, and no other case."""

from __future__ import annotations

from dataclasses import replace

from ridgeline.tools.judge.worker.inputs.trial_changes import TrialChanges
from ridgeline.tools.records.trial_names import ORDER_ONE, SCALARS, SMALL_SCALARS

CHANGES = TrialChanges(
    alone={"alone_a": (0,), "alone_b": (1,)},
    signed={"mixed_signs": frozenset({0, "w"})},
    scalars={SCALARS: (1.0, 2), SMALL_SCALARS: (0.5, 2)},
)


def test_equal_changes_differ_in_no_trial() -> None:
    assert CHANGES.differing(replace(CHANGES, alone=dict(CHANGES.alone))) == set()


def test_the_trials_differ_whose_arguments_do() -> None:
    assert CHANGES.differing(replace(CHANGES, alone={"alone_a": (0,), "alone_b": (2,)})) == {"alone_b"}
    assert CHANGES.differing(replace(CHANGES, signed={})) == {"mixed_signs"}
    assert CHANGES.differing(replace(CHANGES, signed={**CHANGES.signed, "few_signs": frozenset({0})})) == {"few_signs"}
    assert CHANGES.differing(replace(CHANGES, scalars={**CHANGES.scalars, SCALARS: (1.5, 2)})) == {SCALARS}


def test_another_base_is_that_of_all_alone_and_of_the_parameters_of_signs() -> None:
    found = CHANGES.differing(replace(CHANGES, alone_base=ORDER_ONE))
    assert {"alone_a", "alone_b", "mixed_signs"} <= found
