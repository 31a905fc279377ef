from tests.descriptions import description_of

from ridgeline.tools.records.problem import Description, SkippedTrial

SKIPPED = SkippedTrial(name="other mask", reason="forward() raised ValueError: bounds: 0 to 3")


def test_a_skipped_trial_keeps_its_name_and_reason_apart() -> None:
    stored = description_of(skipped_trials=(SKIPPED,)).to_json()
    (trial,) = stored["skipped_trials"]
    assert trial == {"name": SKIPPED.name, "reason": SKIPPED.reason, "label": "trial_skipped"}
    assert Description.from_json(stored).skipped_trials == (SKIPPED,)
    del trial["label"]  # as it was stored before there was one
    assert Description.from_json(stored).skipped_trials == (SKIPPED,)
