"""What is called degenerate: an output that something trivial passes for in every draw, and not by one draw of a threshold."""

from __future__ import annotations

import pytest
from tests.tools.judge.worker.grading.judged import Judged

SPIKES = "(torch.rand(64, 64) < 0.4).float()"


@pytest.mark.parametrize("secret", [b"two", b"three", b"five", b"six"])
def test_spikes_beyond_a_threshold_that_is_drawn_are_work_whatever_a_single_draw_is(secret: bytes) -> None:
    judged = Judged("x, least", f"{SPIKES}, 2 * torch.rand(1)", "return (x >= least).float()", secret=secret)
    assert judged.examiner.degenerate is None


def test_an_input_itself_is_degenerate_in_every_draw() -> None:
    found = Judged("x, least", f"{SPIKES}, 0.9 * torch.rand(1)", "return (x > least).float()").examiner.degenerate
    assert found is not None and found.reason == "an output of input 0 itself passes the comparison"
