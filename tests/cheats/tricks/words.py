"""Words and ends that tricks of several groups share."""

from __future__ import annotations

from tests.cheats.trick import R

AFFINE = "tests/gpu/test_judge_on_gpu.py"
SECRET = "secret inputs and parameters, new in every trial"
UNMOVED = (R.WEIGHTS_IGNORED, R.WRONG_VALUES, R.STALE_OUTPUT)
IN_PLACE = "contents change in place, outputs are poisoned, timed outputs are looked at"
CAUGHT_WHEN_TIMED = (R.STALE_OUTPUT, R.PRECISION_TOO_LOW, R.TIMED_OUTPUT_WRONG, R.WORKED_AHEAD)
"""Which of the blocks meets it first is chance: one whose contents change says `worked_ahead`."""
