from dataclasses import replace

import pytest
from tests.descriptions import description_of

from ridgeline.tools.records.problem import ArgSpec, Description, SkippedTrial
from ridgeline.tools.records.results import Trial, Verdict
from ridgeline.tools.records.vocabulary import ArgKind, Label, Role, Status

SKIPPED = SkippedTrial(name="other mask", reason="forward() raised ValueError: bounds: 0 to 3")


def test_a_skipped_trial_keeps_its_name_and_reason_apart() -> None:
    stored = description_of(skipped_trials=(SKIPPED,)).to_json()
    (trial,) = stored["skipped_trials"]
    assert trial == {"name": SKIPPED.name, "reason": SKIPPED.reason, "label": "trial_skipped"}
    assert Description.from_json(stored).skipped_trials == (SKIPPED,)
    del trial["label"]  # as it was stored before there was one
    assert Description.from_json(stored).skipped_trials == (SKIPPED,)


@pytest.mark.parametrize(
    ("argument", "spanned", "stored"),
    [
        (ArgSpec(name="x", role=Role.INPUT, shape=(4, 8), strides=(16, 1)), 56 * 4, 32 * 4),
        (ArgSpec(name="x", role=Role.INPUT, dtype="bool", shape=(4, 8), strides=(0, 1)), 8, 8),
        (ArgSpec(name="x", role=Role.OUTPUT, dtype="float16", shape=(4, 0), strides=(1, 1)), 0, 0),
        (ArgSpec(name="n", role=Role.INPUT, kind=ArgKind.SCALAR, dtype="int64", value=3.0), 8, 0),
    ],
    ids=["gaps", "expanded", "empty", "scalar"],
)
def test_an_argument_spans_its_gaps_and_stores_what_a_kernel_moves(
    argument: ArgSpec, spanned: int, stored: int
) -> None:
    assert (argument.spanned_bytes, argument.stored_bytes) == (spanned, stored)


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("shifted", Label.TRIAL_SKIPPED),
        ("other mask", Label.TRIAL_SKIPPED),
        ("timed row_scaled", Label.TRIAL_SKIPPED),
        ("not_varied", Label.TRIAL_SKIPPED),  # of an argument, which it does not name
        ("not_varied mask", Label.NOT_VARIED),
        ("only_as_drawn pos", Label.ONLY_AS_DRAWN),
        ("constant_output out_1", Label.CONSTANT_OUTPUT),
    ],
)
def test_a_verdict_of_an_earlier_version_had_what_was_not_run_among_its_trials(name: str, label: Label) -> None:
    ran = Trial(name="nominal_0", rel_error=1e-7, gate=1e-5, passed=True)
    verdict = Verdict(status=Status.OK, trials=(ran,), labels=(label,))
    earlier = {"name": name, "rel_error": 0.0, "gate": 0.0, "passed": True, "skipped": "always these", "draw": 0}
    stored = {key: value for key, value in verdict.to_json().items() if key != "skipped"}
    stored["trials"] = [{**ran.to_json(), "skipped": ""}, earlier]
    apart = replace(verdict, skipped=(SkippedTrial(name=name, reason="always these", label=label),))
    assert Verdict.from_json(stored) == Verdict.from_json(apart.to_json()) == apart
