"""A judge that begins as a copy is as one that is started by itself: in what it answers and says of its end."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ridgeline.tools.errors import TrustedProcessLost
from ridgeline.tools.judge.messages import Renew
from tests.tools.judge.worker.judging import judging, reference
from tests.warm_judge import WarmJudges

pytestmark = pytest.mark.long
DOUBLES = reference("x", "return x * 2", "torch.randn(8, 8)")


@pytest.mark.thorough
def test_a_copy_describes_a_problem_as_a_judge_of_its_own_does(warm_judges: WarmJudges, tmp_path: Path) -> None:
    with judging(DOUBLES, tmp_path) as alone, warm_judges.starting(), judging(DOUBLES, tmp_path) as copy:
        assert copy.problem.description == alone.problem.description
        assert copy.problem.trials == alone.problem.trials
        assert copy.problem.places == alone.problem.places


def test_copies_are_processes_of_their_own_whose_end_is_told(warm_judges: WarmJudges, tmp_path: Path) -> None:
    with warm_judges.starting(), judging(DOUBLES, tmp_path) as first, judging(DOUBLES, tmp_path) as second:
        assert first.pid != second.pid
        os.kill(first.pid, 9)
        with pytest.raises(TrustedProcessLost, match="signal 9"):
            first.ask(Renew())
        second.ask(Renew())
