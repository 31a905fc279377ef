"""What took a search's time, as its page says it."""

from __future__ import annotations

import dataclasses

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.report.page import render_report
from ridgeline.checkpoints.result import build_result
from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.tools.records.vocabulary import RunState


def tells_the_rest(archive: Archive) -> bool:
    return "took the rest" in render_report(archive, build_result(archive), state_words="")


def test_the_time_beside_the_rounds_is_told_of_a_search_whose_rounds_all_have_their_time(filled: Archive) -> None:
    filled.save_run(RunRecord(wall_s=10_000.0))
    assert tells_the_rest(filled)
    for state in (RunState.STOPPED, RunState.RUNNING):
        filled.save_run(RunRecord(state=state))
        assert not tells_the_rest(filled), "a round may be cut or under way"
    filled.save_run(RunRecord(state=RunState.BUDGET))
    last = max(filled.rounds(), key=lambda record: record.round)
    filled.save_round(dataclasses.replace(last, wall_s=None))
    assert not tells_the_rest(filled)
