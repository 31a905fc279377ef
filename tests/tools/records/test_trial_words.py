"""The words of trials: every trial has some, and the page of trials has every one of them."""

from __future__ import annotations

from pathlib import Path

from ridgeline.tools.records import trial_names
from ridgeline.tools.records.trial_words import CONTENTS

PAGE = Path(__file__).parents[3] / "docs" / "trials.md"


def test_every_trial_with_one_name_has_words_and_is_on_the_page() -> None:
    groups = (trial_names.TRANSFORMED, trial_names.CROWDS, trial_names.ARRANGED, trial_names.SIZED, trial_names.SIGNED)
    single = {trial_names.APART, trial_names.AS_MADE, trial_names.ORDER_ONE, trial_names.NEAR_ONE, trial_names.SCALARS}
    assert set(CONTENTS) == single | {trial for group in groups for trial in group}
    page = PAGE.read_text()
    assert [trial for trial in CONTENTS if f"`{trial}`" not in page] == []
