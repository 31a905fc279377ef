"""What the views make of a search's events."""

from __future__ import annotations

import dataclasses
import io
import re
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from tests.graph.cli.view.boards import Clock, make_board
from tests.graph.conftest import Search
from tests.graph.scripted_model import ScriptedModel

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.graph.cli.view.board import Board, recall
from ridgeline.graph.cli.view.lines import plain_line
from ridgeline.graph.cli.view.progress import Drawing, PlainView
from ridgeline.tools.records.vocabulary import RunState


def tunable(request: Any) -> dict[str, Any]:
    """Return a kernel with one value to tune."""
    speed = (request.parent.speedup if request.parent else 1.0) * 1.1
    source = "constexpr int UNROLL = 1;  // tune: UNROLL = 1 | 2\n// factor UNROLL 2 1.5\n"
    return {"source": f"// {request.idea.title}{request.variation}\n// speed {speed:.3f}\n{source}", "notes": ""}


def drawn(board: Board, *, width: int = 80, height: int = 24) -> list[str]:
    """Return the board's lines as a terminal of this size shows them."""
    text = io.StringIO()
    console = Console(file=text, force_terminal=True, color_system=None, width=width, height=height)
    console.print(Drawing(board))
    return text.getvalue().rstrip("\n").split("\n")


def stage(branch: str, name: str, attempt: int = 0) -> dict[str, Any]:
    idea_id, _, _ = branch.partition("v")
    return {
        "event": "branch_stage",
        "branch": branch,
        "idea_id": idea_id,
        "candidate_id": f"{branch}a{attempt}",
        "stage": name,
        "attempt": attempt,
        "model": "scripted",
    }


def done(branch: str, speedup: float | None) -> dict[str, Any]:
    return {
        "event": "candidate_done",
        "candidate_id": f"{branch}a0",
        "idea_id": branch.partition("v")[0],
        "branch": branch,
        "origin": "model",
        "status": "ok" if speedup else "compile_error",
        "reason": "" if speedup else "error: expected ';' before '}' token",
        "median_ms": 0.4 / speedup if speedup else None,
        "reference_ms": 0.4 if speedup else None,
        "speedup": speedup,
        "speedup_ci95": [0.9 * speedup, 1.2 * speedup] if speedup else None,
    }


def round_started(round_: int, max_rounds: int = 3) -> dict[str, Any]:
    return {"event": "round_started", "round": round_, "max_rounds": max_rounds, "ideas": 1, "branches": 1}


def round_done(round_: int, max_rounds: int = 3) -> dict[str, Any]:
    best = {
        "best_id": "r1i0v0a0",
        "best_speedup": 1.5,
        "best_speedup_ci95": [1.4, 1.6],
        "best_median_ms": 0.2,
        "elites": [],
    }
    return {"event": "round_done", "round": round_, "max_rounds": max_rounds, "tokens": 0, "usd": 0.0, **best}


BASELINES = {"eager": 0.412, "compile": 0.305, "compile_max_autotune": 0.301}


def busy_events() -> list[dict[str, Any]]:
    """Return the events of 16 branches in all stages."""
    baseline = {"event": "baseline", "baselines_ms": BASELINES, "floor_ms": 0.12, "bound": "memory", "headroom": 2.5}
    events: list[dict[str, Any]] = [baseline, round_started(2)]
    for n in range(8):
        title = f"fuse the reduction with the store, variant {n}"
        idea = {"event": "idea", "round": 2, "idea_id": f"r2i{n}", "title": title, "category": "", "model": "offline"}
        events.append(idea)
        events += [stage(f"r2i{n}v{v}", ("write", "compile", "verify", "benchmark")[(n + v) % 4]) for v in range(2)]
    events += [done("r2i0v0", 1.62), done("r2i1v1", None)]
    events += [{"event": "warning", "message": f"r2i{n}v0a0: not written: the server gave no answer"} for n in (3, 5)]
    return events


def busy_board() -> Board:
    """Return a board of 16 branches in all stages."""
    board = make_board()
    for event in busy_events():
        board.apply(event)
    return board


@pytest.mark.parametrize("tune_trials", [0, 4])
async def test_a_round_ends_once_whether_it_is_tuned_or_not(search: Search, tune_trials: int) -> None:
    search.model = ScriptedModel(kernel=tunable)
    await search.run(search.context(rounds=3, tune_trials=tune_trials))
    text = io.StringIO()
    board = make_board()
    view = PlainView(board, Console(file=text, width=200))
    for event in search.events:
        view.show(event)
    assert [line.count(" done: best") for line in text.getvalue().splitlines()].count(1) == 3
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
        "bound",
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
    board.apply({"event": "stopped", "outcome": "budget", "reason": "all 60 s of --max-wall-s are used"})
    assert board.left_s() is None


def test_board_of_a_search_that_has_ended_says_so_and_expects_nothing() -> None:
    clock = Clock()
    board = make_board(clock)
    board.apply(certifying("other_shapes", passed=None) | {"place": (9, 9), "left_s": 10.0})
    clock.now_s = 60.0
    assert "longer than expected" in "\n".join(drawn(board))
    board.settle("finished: every round is done")
    assert "finished: every round is done" in drawn(board)[1]
    assert "expected" not in "\n".join(drawn(board))


def test_phases_beside_the_rounds_have_a_line_and_stand_on_the_board() -> None:
    text, board = io.StringIO(), make_board()
    view = PlainView(board, Console(file=text, width=200))
    baseline = {"event": "baseline", "baselines_ms": BASELINES, "floor_ms": 0.1, "bound": "memory"}
    comparing = {"event": "comparing", "candidate_ids": ["r1i0v0a0", "r1i1v0a0"], "place": (1, 2)}
    for event, phase in (
        (baseline, "preparing the first round"),
        ({"event": "seeds", "kernels": 2}, "judging 2 seed kernels"),
        ({"event": "ideation", "round": 1, "max_rounds": 3}, "round 1 of 3: ideas are asked for"),
        ({"event": "timing_pytorch", "pending": ["compile"]}, "timing PyTorch: torch.compile, which may take minutes"),
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


def test_board_of_a_search_that_had_stored_nothing_yet_is_empty(tmp_path: Path) -> None:
    board = make_board()
    with Archive.open(tmp_path / "archive.sqlite") as archive:
        recall(board, archive)
    assert (board.phase, board.best_speedup, board.left_s()) == ("measuring the reference", None, None)


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
    assert "about 1m15s left of the rounds" in "\n".join(drawn(board))
    board.apply(round_done(3))
    assert board.left_s() is None
    assert not re.search(r"almost|about", "\n".join(drawn(board)))


def test_after_the_rounds_the_phases_of_the_certificate_are_told_with_their_time() -> None:
    clock, text = Clock(), io.StringIO()
    board = make_board(clock)
    view = PlainView(board, Console(file=text, width=200))
    view.show(round_started(1, 1))
    clock.now_s = 60.0
    view.show(round_done(1, 1))
    assert "almost done" not in text.getvalue()
    view.show({"event": "certification", "phase": "first 2 kernels, in turns", "left_s": 240.0})
    assert "certification begins, which may take 4m00s: first 2 kernels, in turns" in text.getvalue()
    clock.now_s = 90.0
    assert "about 3m30s left" in "\n".join(drawn(board))
    view.show(certifying("verify", passed=None) | {"place": (2, 9), "left_s": 185.0})
    assert "certify r1i0v0a0 (2 of 9, about 3m05s left): verification …" in text.getvalue()
    assert "certifying r1i0v0a0, step 2 of 9: verification" in drawn(board)[1]
    view.show(certifying("audit", passed=None) | {"place": (6, 9), "left_s": 0.0})
    assert "certify r1i0v0a0 (6 of 9): audit …" in text.getvalue()
    clock.now_s = 280.0
    assert "longer than expected" in "\n".join(drawn(board))
    board.apply(round_started(2))
    assert board.ends_at is None


def waiting(holder: str, *, is_news: bool = True) -> dict[str, Any]:
    return {"event": "waiting", "device": "cpu" if holder else "", "holder": holder, "holders": 1, "is_news": is_news}


def test_a_wait_for_another_process_stands_on_the_board_until_it_is_over() -> None:
    board = make_board()
    board.apply(waiting("pid 12 (ridgeline run softmax)", is_news=False))
    assert re.search(r"waiting +for cpu: pid 12 \(ridgeline run softmax\) holds it", "\n".join(drawn(board)))
    board.apply(waiting("", is_news=False))
    assert "pid 12" not in "\n".join(drawn(board))


def test_plain_lines_tell_a_step_that_runs_from_one_that_is_not_done() -> None:
    text = io.StringIO()
    view = PlainView(make_board(), Console(file=text, width=200))
    step = {"event": "certify", "candidate_id": "a", "step": "own_work", "passed": None}
    for detail in ("", "ncu hung"):
        view.show(step | {"detail": detail})
    running, ended = text.getvalue().splitlines()
    assert running.endswith("own work … (whose code the time is spent in)")
    assert ended.endswith("own work not done (ncu hung)")


def test_plain_lines_tell_a_wait_when_it_is_news() -> None:
    text = io.StringIO()
    view = PlainView(make_board(), Console(file=text))
    view.show(waiting("pid 12 (sh)"))
    view.show(waiting(""))
    view.show(waiting("pid 12 (sh)", is_news=False))
    [line] = text.getvalue().splitlines()
    assert line.endswith("waiting for cpu: pid 12 (sh) holds it")


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


def test_one_kernel_is_not_called_kernels() -> None:
    board, text = make_board(), io.StringIO()
    PlainView(board, Console(file=text, width=200)).show(round_started(1))
    assert "1 idea, 1 branch\n" in text.getvalue()
    board.apply(done("r1i0v0", 1.2))
    assert "1 kernel, 1 correct" in "\n".join(drawn(board))


def test_a_kernel_that_repeats_an_earlier_one_is_told_as_that() -> None:
    repeated, failed = (done("r2i0v0", speedup) | {"same_source_as": "r1i0v0a0"} for speedup in (1.5, None))
    assert plain_line(repeated, make_board()).endswith("ms, same source as r1i0v0a0")
    assert plain_line(failed, make_board()).endswith("token, same source as r1i0v0a0")
    assert "same source" not in plain_line(done("r2i0v0", 1.5) | {"same_source_as": ""}, make_board())


def test_a_kernel_s_line_has_its_interval_and_both_times_of_its_run() -> None:
    text = io.StringIO()
    view = PlainView(make_board(), Console(file=text, width=200))
    view.show(done("r1i0v0", 2.0))
    assert "r1i0v0a0     ok 2.00x eager (1.80 to 2.40), medians 0.200 against 0.400 ms" in text.getvalue()


def certifying(step: str, *, passed: bool | None, detail: str = "") -> dict[str, Any]:
    return {"event": "certify", "candidate_id": "r1i0v0a0", "step": step, "passed": passed, "detail": detail}


@pytest.mark.parametrize(
    ("event", "told"),
    [
        (certifying("verify", passed=True), "verification passed"),
        (certifying("baselines", passed=None), "PyTorch again … (every configuration of PyTorch once more"),
        (
            certifying("other_shapes", passed=True, detail="right at 1 of 3 other shapes"),
            "other shapes: right at 1 of 3",
        ),
        (certifying("time", passed=False, detail="no gain"), "re-timings FAILED (no gain)"),
        (
            certifying("sanitize", passed=None, detail="compute-sanitizer is missing") | {"skipped": True},
            "memory checks skipped: compute-sanitizer is missing",
        ),
    ],
)
def test_step_of_a_certificate_says_what_it_does_and_found(event: dict[str, Any], told: str) -> None:
    text = io.StringIO()
    PlainView(make_board(), Console(file=text, width=200)).show(event)
    assert f"certify r1i0v0a0: {told}" in text.getvalue()


def test_a_configuration_of_pytorch_is_named_while_it_is_timed() -> None:
    text = io.StringIO()
    event = {"event": "timing_pytorch", "pending": ["compile", "compile_max_autotune"]}
    PlainView(make_board(), Console(file=text, width=200)).show(event)
    assert "timing PyTorch: torch.compile, which may take minutes; then max-autotune" in text.getvalue()


def test_board_ranks_by_the_lower_end_of_the_interval() -> None:
    board = make_board()
    board.apply(done("r1i0v0", 2.0))
    board.apply(done("r1i1v0", 2.5) | {"speedup_ci95": [1.6, 3.1]})
    assert board.best_id == "r1i0v0a0"
    assert "2.00x eager (1.80 to 2.40)" in "\n".join(drawn(board))
