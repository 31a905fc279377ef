"""What the board makes of a search's events."""

from __future__ import annotations

import dataclasses
import io
import re
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
from rich.console import Console
from tests.graph.cli.view.boards import (
    Clock,
    certifying,
    done,
    drawn,
    make_board,
    round_done,
    round_started,
    stage,
    waiting,
)
from tests.graph.conftest import Search
from tests.graph.scripted_model import ScriptedModel

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.result import BestKernel
from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.graph.cli.view.board import Board
from ridgeline.graph.cli.view.lines import plain_line
from ridgeline.graph.cli.view.progress import PlainView
from ridgeline.graph.cli.view.recalled import recall
from ridgeline.graph.search import events
from ridgeline.tools.records.vocabulary import RunState


def tunable(request: Any) -> dict[str, Any]:
    """Return a kernel with one value to tune."""
    speed = (request.parent.speedup if request.parent else 1.0) * 1.1
    source = "constexpr int UNROLL = 1;  // tune: UNROLL = 1 | 2\n// factor UNROLL 2 1.5\n"
    return {"source": f"// {request.idea.title}{request.variation}\n// speed {speed:.3f}\n{source}", "notes": ""}


def test_every_event_of_a_search_has_its_own_handler() -> None:
    named = {get_args(get_type_hints(kind)["event"])[0]: kind for kind in get_args(events.SearchEvent)}
    taken = {name: get_type_hints(handler)["event"] for name, handler in Board.HANDLERS.items()}
    assert taken == named


@pytest.mark.parametrize("tune_trials", [0, 4])
async def test_a_round_ends_once_whether_it_is_tuned_or_not(search: Search, tune_trials: int) -> None:
    search.model = ScriptedModel(kernel=tunable)
    await search.run(search.context(rounds=3, tune_trials=tune_trials))
    text = io.StringIO()
    board = make_board()
    view = PlainView(board, Console(file=text, width=200))
    for event in search.events:
        view.show(event)
    assert [line.count(" done: best so far ") for line in text.getvalue().splitlines()].count(1) == 3
    assert board.rounds_over == len(board.round_s) == len(board.history) == 3
    names = [event["event"] for event in search.events]
    last_tuned = max((n for n, name in enumerate(names) if name == "tune"), default=0)
    assert last_tuned < max(n for n, name in enumerate(names) if name == "round_done")


async def test_board_names_the_idea_of_each_branch_and_of_the_best(search: Search) -> None:
    search.model = ScriptedModel(kernel=tunable)
    output = await search.run(search.context(rounds=1, tune_trials=4))
    board = make_board()
    for event in search.events:
        board.apply(event)
    best = search.archive.candidate(output["best_id"])
    assert best.idea_id is not None
    assert f"{best.id}: {search.archive.idea(best.idea_id).title}" in "\n".join(drawn(board, width=200))
    assert all(branch.is_correct for branch in board.branches.values())


async def test_board_of_a_resumed_search_shows_what_the_events_had_shown(search: Search) -> None:
    search.model = ScriptedModel(kernel=tunable)
    await search.run(search.context(rounds=2, tune_trials=4))
    search.archive.save_run(RunRecord(settings={"rounds": 5}, state=RunState.STOPPED))
    shown, resumed = make_board(), make_board()
    for event in search.events:
        shown.apply(event)
    with Archive.open_read_only(search.archive.path) as archive:
        recall(resumed, archive)
    for name in (
        "baselines_ms",
        "floor_ms",
        "compute_floor_ms",
        "baselines_stored",
        "ideas",
        "best_id",
        "best_speedup",
        "fastest",
        "verdicts",
        "tokens",
        "usd",
    ):
        assert getattr(resumed, name) == getattr(shown, name), name
    assert (resumed.history, resumed.rounds_over, resumed.round) == (shown.history, 2, 2)
    assert resumed.phase == "after round 2 of 5"
    assert resumed.left_s() is not None
    search.archive.add_ideas([dataclasses.replace(search.archive.ideas(2)[0], id="r3i0", round=3)])
    recall(resumed, search.archive)  # stopped within round 3, whose branches go on
    assert (resumed.phase, resumed.round, resumed.rounds_over) == ("going on with round 3 of 5", 3, 2)


async def test_resumed_search_that_is_over_expects_no_further_round_until_one_begins(search: Search) -> None:
    await search.run(search.context(rounds=1))
    search.archive.save_run(RunRecord(settings={"rounds": 3}, state=RunState.BUDGET))
    board = make_board()
    recall(board, search.archive)
    assert (board.phase, board.left_s()) == ("after round 1 of 3: looking for what is left to do", None)
    assert "left" not in drawn(board)[-3]
    board.apply(round_started(2))
    assert board.left_s() is not None


def test_search_that_a_stop_rule_ended_expects_no_further_round() -> None:
    clock = Clock()
    board = make_board(clock)
    board.apply(round_started(1))
    clock.now_s = 60.0
    board.apply(round_done(1))
    assert board.left_s() == 120
    board.apply({"event": "stopped", "outcome": "budget", "reason": "all 60 s of the budget's wall_s are used"})
    assert board.left_s() is None


def test_board_of_a_search_that_has_ended_says_so_and_expects_nothing() -> None:
    clock = Clock()
    board = make_board(clock)
    board.apply(certifying("other_shapes", passed=None) | {"place": (9, 9), "left_s": 10.0})
    clock.now_s = 60.0
    assert "longer than expected of the certificate" in "\n".join(drawn(board))
    board.settle("finished: every round is done")
    assert "finished: every round is done" in drawn(board)[1]
    assert "expected" not in "\n".join(drawn(board))


def test_board_of_a_search_that_had_stored_nothing_yet_is_empty(tmp_path: Path) -> None:
    board = make_board()
    with Archive.open(tmp_path / "archive.sqlite") as archive:
        recall(board, archive)
    assert (board.phase, board.best_speedup, board.left_s()) == ("measuring the reference", None, None)


def test_only_the_branch_that_asked_first_is_timed() -> None:
    board = make_board()
    for branch in ("r1i1v0", "r1i0v0", "r1i2v0"):
        board.apply(stage(branch, "benchmark"))
    assert board.timed_branch() == "r1i1v0"
    assert [line.split()[2:-1] for line in drawn(board) if "r1i" in line] == [
        ["in", "line"],
        ["timing"],
        ["in", "line"],
    ]
    board.apply(done("r1i1v0", 1.2))
    assert board.timed_branch() == "r1i0v0"
    board.apply(stage("r1i1v0", "write", attempt=1))
    assert "writing (repair 1)" in "\n".join(drawn(board, width=120))


def test_time_left_stays_once_it_is_known() -> None:
    clock = Clock()
    board = make_board(clock)
    assert board.left_s() is None
    board.apply(round_started(1))
    clock.now_s = 60.0
    board.apply(round_done(1))
    assert board.left_s() == 120
    board.apply(round_started(2))
    clock.now_s = 100.0
    assert board.left_s() == 80
    assert "about 1m20s left" in "\n".join(drawn(board))
    clock.now_s = 150.0  # the round takes longer than the one before
    assert board.left_s() == 60
    board.apply(round_done(2))
    assert board.left_s() == 75
    board.apply(round_started(3))
    assert board.left_s() == 75
    assert ", about 1m15s left of the rounds" in "\n".join(drawn(board))
    board.apply(round_done(3))
    assert board.left_s() is None
    assert not re.search(r"almost|about", "\n".join(drawn(board)))


def test_a_wait_for_another_process_stands_on_the_board_until_it_is_over() -> None:
    board = make_board()
    board.apply(waiting("pid 12 (ridgeline run softmax)", is_news=False))
    assert re.search(r"waiting +for cpu: pid 12 \(ridgeline run softmax\) holds it", "\n".join(drawn(board)))
    board.apply(waiting("", is_news=False))
    assert "pid 12" not in "\n".join(drawn(board))


def test_board_ranks_by_the_lower_end_of_the_interval() -> None:
    board = make_board()
    board.apply(done("r1i0v0", 2.0))
    board.apply(done("r1i1v0", 2.5) | {"speedup_ci95": [1.6, 3.1]})
    assert board.best_id == "r1i0v0a0"
    assert "2.00x eager (1.80 to 2.40)" in "\n".join(drawn(board))


def test_a_search_that_ended_shows_the_kernel_that_it_chose_and_notes_are_no_warnings() -> None:
    board = make_board()
    board.apply(round_started(1))
    board.apply(done("r1i0v0", 2.5))
    board.apply({"event": "note", "message": "nothing is certified"})
    best = BestKernel(
        id="r1i1v0a0", idea="one pass", origin="model", round=1, source_path="best.cpp", speedup=2.0,
        speedup_ci95=[1.9, 2.1], speedup_vs_best=2.0, baselines_failed=[], speedup_vs_seed=None,
        speedup_vs_seed_ci95=None, median_ms=5.0, reference_ms=10.0, precision_class="fp32", labels=[],
    )  # fmt: skip
    board.settle("finished", best, {"eager": 8.0, "compile": 6.0})
    text = "\n".join(drawn(board, width=100))
    assert "eager 8.000 ms, torch.compile 6.000 ms (by itself again, for the certificate)" in text
    assert "2.00x eager (1.90 to 2.10), 1.50x torch.compile" in text
    assert "2.00x eager (1.90 to 2.10)" in text and "r1i1v0a0" in text and "ranks behind" not in text
    assert re.search(r"note +nothing is certified", text) and "warning" not in text
    assert plain_line({"event": "note", "message": "nothing is certified"}, board) == "note: nothing is certified"


def test_a_replay_of_times_guesses_no_time_left() -> None:
    clock = Clock()
    board = dataclasses.replace(make_board(clock), replays_times=True)
    board.apply(round_started(1))
    clock.now_s = 1.0
    board.apply(round_done(1))
    assert board.left_s() is None
