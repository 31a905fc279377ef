"""A search's events as lines, as a program of a user's own asks for them."""

from __future__ import annotations

import pytest
from tests.graph.cli.view.boards import done, round_done, round_started, waiting

from ridgeline import EventLines
from ridgeline.graph.cli.view.board import Board


def test_each_event_that_matters_has_its_line_without_a_board_of_the_caller_s() -> None:
    line_of = EventLines()
    assert line_of(round_started(1, 2)).startswith("round 1/2: ")
    stage = {"event": "branch_stage", "branch": "r1i0v0", "idea_id": "r1i0", "candidate_id": "r1i0v0a0"}
    assert line_of(stage | {"stage": "verify", "attempt": 0, "model": "offline"}) == ""
    assert line_of(done("r1i0v0", 2.0)).startswith("  r1i0v0a0 ")
    assert "best so far" in line_of(round_done(1, 2))
    assert line_of({"event": "note", "message": "all \x1b[31m is well"}) == "note: all  [31m is well"
    assert line_of({"event": "of a later version"}) == ""


@pytest.mark.parametrize(
    "written", [{"type": "token"}, {}, "words", None, 3, ["event"], {"event": 3}, {"event": ["note"]}]
)
def test_what_another_node_of_the_graph_writes_to_the_stream_has_no_line(written: object) -> None:
    assert EventLines()(written) == ""


@pytest.mark.parametrize("name", Board.HANDLERS)
def test_an_event_of_another_node_s_own_that_has_the_name_of_a_search_s_changes_nothing(name: str) -> None:
    board = Board(problem="toy", device="cpu", models=())
    assert EventLines(board)({"event": name, "text": "of another node"}) == ""
    assert board.phase == "measuring the reference" and not board.warnings and not board.notes


def test_a_wait_that_ends_is_told_after_the_line_of_that_wait_alone() -> None:
    line_of = EventLines()
    assert line_of(waiting("")) == ""
    assert "pid 12 (sh)" in line_of(waiting("pid 12 (sh)"))
    assert line_of(waiting("pid 12 (sh)", is_news=False)) == ""
    assert line_of(waiting("")) != ""
    assert line_of(waiting("")) == ""
