"""What the views draw and print of a search's events."""

from __future__ import annotations

import dataclasses
import io
import re
from typing import Any

import pytest
from rich.console import Console
from tests.graph.cli.view.boards import (
    BASELINES,
    busy_board,
    certifying,
    done,
    drawn,
    make_board,
    measured,
    round_done,
    round_started,
)

from ridgeline.graph.cli.view.figures import format_behind, format_judged
from ridgeline.graph.cli.view.lines import plain_line
from ridgeline.graph.cli.view.progress import PlainView


def test_phases_beside_the_rounds_have_a_line_and_stand_on_the_board() -> None:
    text, board = io.StringIO(), make_board()
    view = PlainView(board, Console(file=text, width=200))
    baseline = measured(BASELINES)
    comparing = {"event": "comparing", "candidate_ids": ["r1i0v0a0", "r1i1v0a0"], "place": (1, 2)}
    for event, phase in (
        (baseline, "preparing the first round"),
        ({"event": "seeds", "kernels": 2, "banked": 0}, "judging 2 seed kernels"),
        (
            {"event": "seeds", "kernels": 4, "banked": 3},
            "judging 4 seed kernels, 3 of them of earlier searches (the seed bank)",
        ),
        ({"event": "ideation", "round": 1, "max_rounds": 3}, "round 1 of 3: ideas are asked for"),
        (
            {"event": "timing_pytorch", "pending": ["compile"]},
            "timing PyTorch: torch.compile, which may take minutes unless it is stored",
        ),
        (baseline, "PyTorch's configurations are timed"),
        (comparing, "timing r1i0v0a0 and r1i1v0a0 in turns, 1 of 2: the search could not tell them apart"),
    ):
        view.show(event)
        assert phase in " ".join(drawn(board, width=120))
        assert event is baseline or f"] {phase}\n" in text.getvalue()
    keyless = dataclasses.replace(board, models=("offline",))
    assert plain_line({"event": "ideation", "round": 1, "max_rounds": 3}, keyless) == ""


def test_why_a_kernel_with_a_higher_figure_ranks_behind_is_said_where_it_is_shown() -> None:
    text, board = io.StringIO(), make_board()
    view = PlainView(board, Console(file=text, width=300))
    view.show(round_started(1))
    view.show(done("r1i0v0", 2.07))
    assert "ranks behind" not in "\n".join(drawn(board))
    view.show(done("r1i1v0", 2.14) | {"speedup_ci95": [1.2, 2.9]})
    said = "2.14x (1.20 to 2.90) of r1i1v0a0 ranks behind: the interval's lower end counts"
    assert board.best_id == "r1i0v0a0"
    assert said in "\n".join(drawn(board, width=120))
    view.show(round_done(1) | {"best_id": "r1i0v0a0", "best_speedup": 2.07})
    assert said in text.getvalue()
    view.show(done("r1i2v0", 3.0))
    assert "ranks behind" not in "\n".join(drawn(board))


@pytest.mark.parametrize(
    "over", [round_done(1) | {"best_id": "r1i0v0a0", "best_speedup": 2.07}, certifying("build", passed=None)]
)
def test_which_of_two_kernels_is_faster_in_turns_is_said_once_they_were_timed(over: dict[str, Any]) -> None:
    board = make_board()
    wide = done("r1i1v0", 2.14) | {"speedup_ci95": [1.2, 2.9]}
    comparing = {"event": "comparing", "candidate_ids": ["r1i0v0a0", "r1i1v0a0"], "place": (1, 1)}
    for event in (round_started(1), done("r1i0v0", 2.07), wide, comparing):
        board.apply(event)
    assert format_behind(board).endswith("of r1i1v0a0 ranks behind: the interval's lower end counts")
    board.apply(over)
    assert format_behind(board).endswith("of r1i1v0a0 ranks behind: timed in turns, r1i0v0a0 was faster")


BEST, HIGHER, THIRD, FOURTH = "r1i0v0a0", "r1i1v0a0", "r1i2v0a0", "r1i3v0a0"


@pytest.mark.parametrize(
    ("pairs", "why"),
    [
        ([(THIRD, BEST), (THIRD, HIGHER)], f"timed in turns, {BEST} was faster"),
        ([(THIRD, HIGHER), (FOURTH, BEST)], "the interval's lower end counts"),
        ([(THIRD, BEST), (FOURTH, THIRD)], "the interval's lower end counts"),
    ],
    ids=["both beside a third", "each beside another", "one alone"],
)
def test_only_kernels_whose_turns_have_a_kernel_in_common_are_said_to_be_timed_in_turns(
    pairs: list[tuple[str, str]], why: str
) -> None:
    board = make_board()
    wide = done("r1i1v0", 2.14) | {"speedup_ci95": [1.2, 2.9]}
    for event in (round_started(1), done("r1i0v0", 2.07), wide):
        board.apply(event)
    for round_, pair in enumerate(pairs, start=1):
        board.apply({"event": "comparing", "candidate_ids": list(pair), "place": (1, 1)})
        board.apply(round_done(round_) | {"best_id": BEST, "best_speedup": 2.07})
    assert format_behind(board).endswith(f"of {HIGHER} ranks behind: {why}")


@pytest.mark.parametrize(
    ("failed", "why"),
    [
        (None, "the interval's lower end counts"),
        (HIGHER, f"it failed where it was timed in turns with {BEST}"),
    ],
    ids=["the engine failed", "one of the two failed"],
)
def test_kernels_whose_turns_failed_are_not_said_to_be_timed_in_turns(failed: str | None, why: str) -> None:
    board = make_board()
    wide = done("r1i1v0", 2.14) | {"speedup_ci95": [1.2, 2.9]}
    pair = {"candidate_ids": [BEST, HIGHER]}
    for event in (round_started(1), done("r1i0v0", 2.07), wide, {"event": "comparing", "place": (1, 1), **pair}):
        board.apply(event)
    board.apply({"event": "not_compared", "failed": failed, **pair})
    board.apply(round_done(1) | {"best_id": BEST, "best_speedup": 2.07})
    assert format_behind(board).endswith(f"of {HIGHER} ranks behind: {why}")


def test_the_kernel_that_is_certified_is_shown_as_best_and_why_not_the_one_of_the_higher_figure() -> None:
    board = make_board()
    for event in (round_started(1), done("r1i0v0", 2.39), done("r1i1v0", 2.45), done("r1i2v0", 1.1)):
        board.apply(event)
    assert board.best_id == "r1i1v0a0"
    board.apply({"event": "comparing", "candidate_ids": ["r1i1v0a0", "r1i0v0a0"], "place": (1, 1)})
    board.apply(certifying("build", passed=None) | {"place": (1, 9), "left_s": 100.0})
    shown = "\n".join(drawn(board, width=120))
    assert re.search(r"best +2.39x eager", shown)
    assert "2.45x (2.21 to 2.94) of r1i1v0a0 ranks behind: timed in turns, r1i0v0a0 was faster" in shown
    board.apply(certifying("verify", passed=False, detail="a wrong value"))
    board.apply(certifying("build", passed=None) | {"candidate_id": "r1i1v0a0"})
    assert "ranks behind" not in "\n".join(drawn(board))
    board.apply(certifying("verify", passed=False) | {"candidate_id": "r1i1v0a0"})
    board.apply(certifying("build", passed=None) | {"candidate_id": "r1i2v0a0"})
    shown = "\n".join(drawn(board, width=120))
    assert re.search(r"best +1.10x eager", shown)
    assert "of r1i1v0a0 ranks behind: its certificate failed at verification" in shown


@pytest.mark.parametrize(("width", "height"), [(80, 24), (80, 16), (80, 10), (120, 40)])
def test_board_fits_the_terminal_and_keeps_phase_and_newest_warning(width: int, height: int) -> None:
    lines = drawn(busy_board(), width=width, height=height)
    assert len(lines) < max(height, 15)  # the summary itself is never cut
    assert all(len(line) <= width for line in lines)
    assert "round 2 of 3" in lines[1]
    assert "r2i5v0a0: not written" in lines[2]
    assert lines[-1].startswith("╰")


def test_branches_that_are_at_work_are_shown_first_and_the_others_counted() -> None:
    text = "\n".join(drawn(busy_board()))
    assert "r2i1v0" in text
    assert "r2i0v0 " not in text  # is done
    assert "more: " in text
    assert "2 done" in text
    everything = "\n".join(drawn(busy_board(), width=120, height=40))
    assert "more: " not in everything
    assert "r2i3v0a0: not written" in everything  # the earlier warning too


def test_phase_of_a_search_that_was_stopped_does_not_say_finished() -> None:
    board, text = make_board(), io.StringIO()
    view = PlainView(board, Console(file=text, width=200))
    view.show({"event": "stopped", "outcome": "stopping", "reason": "SIGINT: stopping after the steps in flight"})
    view.show({"event": "stopped", "outcome": "finished", "reason": "2 rounds are over"})
    assert "finished" not in text.getvalue() + "\n".join(drawn(board))
    assert "SIGINT: stopping" in text.getvalue()
    board.settle("stopped, and can be resumed")
    assert "stopped, and can be resumed" in drawn(board)[1]
    assert "stopping" not in "\n".join(drawn(board))


def test_requests_that_wait_for_an_answer_are_told_and_stand_on_the_board_until_they_are_answered() -> None:
    text, board = io.StringIO(), make_board()
    view = PlainView(board, Console(file=text, width=200))
    view.show({"event": "mailbox", "waiting": ["r1:ideate:0"], "folder": "runs/x/mailbox"})
    assert "1 request waiting for an answer in runs/x/mailbox" in "\n".join(drawn(board))
    view.show({"event": "mailbox", "waiting": [], "folder": "runs/x/mailbox"})
    [line] = text.getvalue().splitlines()
    assert line.endswith("1 request waiting for an answer in runs/x/mailbox")
    assert "waiting for an answer" not in "\n".join(drawn(board))


def test_requests_in_a_batch_are_told_and_stand_on_the_board_until_they_are_answered() -> None:
    text, board = io.StringIO(), make_board()
    view = PlainView(board, Console(file=text, width=200))
    view.show({"event": "batch", "waiting": ["r1i0v0a0:write", "r1i1v0a0:write"]})
    assert "2 requests waiting in a batch at the provider" in "\n".join(drawn(board))
    view.show({"event": "batch", "waiting": []})
    [line] = text.getvalue().splitlines()
    assert line.endswith("2 requests waiting in a batch at the provider")
    assert "in a batch" not in "\n".join(drawn(board))


def test_a_given_kernel_that_is_not_correct_is_named_where_the_correct_ones_are_counted() -> None:
    board = make_board()
    board.apply(done("r1i0v0", None))
    board.apply(done("r1i0v1", 1.2))
    assert format_judged(board) == "2 kernels (seeds and tuned ones too), 1 correct"
    for number in range(4):
        board.apply(done("", None) | {"candidate_id": f"bank-{number}", "idea_id": None})
    told = "6 kernels (seeds and tuned ones too), 1 correct (of the seeds not bank-0, bank-1, …)"
    assert format_judged(board) == told
    assert "of the seeds not" in "\n".join(drawn(board))


def test_one_kernel_is_not_called_kernels() -> None:
    board, text = make_board(), io.StringIO()
    PlainView(board, Console(file=text, width=200)).show(round_started(1))
    assert "1 idea, 1 branch\n" in text.getvalue()
    board.apply(done("r1i0v0", 1.2))
    assert "1 kernel (seeds and tuned ones too), 1 correct" in "\n".join(drawn(board))
