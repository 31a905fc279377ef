"""What the views make of a search's events."""

from __future__ import annotations

import dataclasses
import io
import os
import pty
import re
import termios
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from tests.graph.conftest import Search
from tests.graph.scripted_model import ScriptedModel

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.run_record import RunRecord
from ridgeline.graph.cli.summary import closing_lines, resume_command, resume_line
from ridgeline.graph.cli.view.board import Board, recall
from ridgeline.graph.cli.view.progress import Drawing, LiveView, PlainView, quiet_terminal
from ridgeline.graph.session.outputs import SearchResult


class Clock:
    """A clock that a test sets."""

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def tunable(request: Any) -> dict[str, Any]:
    """Return a kernel with one value to tune."""
    speed = (request.parent.speedup if request.parent else 1.0) * 1.1
    source = "constexpr int UNROLL = 1;  // tune: UNROLL = 1 | 2\n// factor UNROLL 2 1.5\n"
    return {"source": f"// {request.idea.title}{request.variation}\n// speed {speed:.3f}\n{source}", "notes": ""}


def make_board(clock: Clock | None = None) -> Board:
    return Board(problem="toy", device="cpu", models=("scripted",), clock=clock or Clock())


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
        "speedup": speedup,
    }


def round_started(round_: int, max_rounds: int = 3) -> dict[str, Any]:
    return {"event": "round_started", "round": round_, "max_rounds": max_rounds, "ideas": 1, "branches": 1}


def round_done(round_: int, max_rounds: int = 3) -> dict[str, Any]:
    best = {"best_id": "r1i0v0a0", "best_speedup": 1.5, "best_median_ms": 0.2, "elites": []}
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
    search.archive.save_run(RunRecord(settings={"rounds": 5}))
    shown, resumed = make_board(), make_board()
    for event in search.events:
        shown.apply(event)
    with Archive.open_read_only(search.archive.path) as archive:
        recall(resumed, archive)
    for name in ("baselines_ms", "floor_ms", "bound", "ideas", "best_id", "best_speedup", "verdicts", "tokens", "usd"):
        assert getattr(resumed, name) == getattr(shown, name), name
    assert (resumed.history, resumed.rounds_over, resumed.round) == (shown.history, 2, 2)
    assert resumed.phase == "after round 2 of 5"
    assert resumed.left_s() is not None
    search.archive.add_ideas([dataclasses.replace(search.archive.ideas(2)[0], id="r3i0", round=3)])
    recall(resumed, search.archive)  # stopped within round 3, whose branches go on
    assert (resumed.phase, resumed.round, resumed.rounds_over) == ("going on with round 3 of 5", 3, 2)


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
    board.apply(round_done(3))
    assert "almost done" in "\n".join(drawn(board))


def waiting(holder: str, *, is_news: bool = True) -> dict[str, Any]:
    return {"event": "waiting", "device": "cpu" if holder else "", "holder": holder, "holders": 1, "is_news": is_news}


def test_a_wait_for_another_process_stands_on_the_board_until_it_is_over() -> None:
    board = make_board()
    board.apply(waiting("pid 12 (ridgeline run softmax)", is_news=False))
    assert re.search(r"waiting +for cpu: pid 12 \(ridgeline run softmax\) holds it", "\n".join(drawn(board)))
    board.apply(waiting("", is_news=False))
    assert "pid 12" not in "\n".join(drawn(board))


def test_plain_lines_tell_a_wait_when_it_is_news() -> None:
    text = io.StringIO()
    view = PlainView(make_board(), Console(file=text))
    view.show(waiting("pid 12 (sh)"))
    view.show(waiting(""))
    view.show(waiting("pid 12 (sh)", is_news=False))
    [line] = text.getvalue().splitlines()
    assert line.endswith("waiting for cpu: pid 12 (sh) holds it")


def test_one_kernel_is_not_called_kernels() -> None:
    board, text = make_board(), io.StringIO()
    PlainView(board, Console(file=text, width=200)).show(round_started(1))
    assert "1 idea, 1 branch\n" in text.getvalue()
    board.apply(done("r1i0v0", 1.2))
    assert "1 kernel, 1 correct" in "\n".join(drawn(board))


@pytest.fixture
def terminal() -> Iterator[io.TextIOWrapper]:
    """Return a stream on a terminal that echoes; what is drawn is thrown away."""
    master, slave = pty.openpty()
    with os.fdopen(slave, "w") as stream, os.fdopen(master, "rb"):
        yield stream


def echoes(stream: io.TextIOWrapper) -> bool:
    return bool(termios.tcgetattr(stream.fileno())[3] & termios.ECHO)


def test_live_view_echoes_no_keys_and_restores_the_terminal(
    terminal: io.TextIOWrapper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "tcgetpgrp", lambda _: os.getpgrp())  # as for the terminal that a shell gave us
    before = termios.tcgetattr(terminal.fileno())
    view = LiveView(make_board(), Console(file=terminal, force_terminal=True, width=80, height=24))
    assert not echoes(terminal)
    view.close()
    view.close()
    assert termios.tcgetattr(terminal.fileno()) == before
    with pytest.raises(ZeroDivisionError), quiet_terminal(terminal):
        raise ZeroDivisionError
    assert termios.tcgetattr(terminal.fileno()) == before


def test_live_view_in_the_background_leaves_the_terminal_alone(
    terminal: io.TextIOWrapper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "tcgetpgrp", lambda _: os.getpgrp() + 1)
    with quiet_terminal(terminal):
        assert echoes(terminal)


def test_resume_command_works_where_ridgeline_is_not_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ridgeline").write_text("#!/bin/sh\n")
    (tmp_path / "ridgeline").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert resume_command(Path("runs/a b")) == "ridgeline run --resume 'runs/a b'"
    monkeypatch.setenv("PATH", "")
    monkeypatch.chdir(tmp_path)
    for executable, word in ((".venv/bin/python", ".venv/bin/python"), ("bin/python", "bin/python")):
        monkeypatch.setattr("sys.executable", str(tmp_path / executable))
        assert resume_command(Path("runs/a")) == f"{word} -m ridgeline.graph.run --resume runs/a"
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))  # as in .venv/bin after `make demo`
    assert resume_command(Path("runs/a")) == "./ridgeline run --resume runs/a"
    monkeypatch.chdir(tmp_path.parent)
    assert resume_command(Path("runs/a")) == f"{tmp_path.name}/ridgeline run --resume runs/a"


BEST = {
    "id": "r1i0v0a0", "idea": "Fuse the two passes", "origin": "model", "speedup": 2.0, "speedup_ci95": [1.9, 2.1],
    "speedup_vs_best": 1.5, "baselines_failed": [], "median_ms": 1.0, "precision_class": "fp32",
}  # fmt: skip


def end_of(run_dir: Path, *, state: str = "finished", certified: bool = True, **best: Any) -> list[str]:
    """Return the last lines of a run whose kernel is `BEST` but for `best`."""
    result = SearchResult(
        run_dir=run_dir,
        state=state,
        rounds=1,
        best_id="r1i0v0a0",
        best_source="",
        best_source_path=run_dir / "best.cpp",
        speedup=2.0,
        certified=certified,
        report={"best": BEST | best},
    )
    return closing_lines(result)


def test_end_with_a_winner_says_its_figures_and_how_to_call_it(tmp_path: Path) -> None:
    lines = end_of(tmp_path)
    assert "winner:  r1i0v0a0: Fuse the two passes" in lines
    assert "         2.00x (95 % 1.90 to 2.10) as fast as eager PyTorch, 1.50x its best configuration" in lines
    assert lines.index(f"         certified; source {tmp_path / 'best.cpp'}") + 1 == next(
        number for number, line in enumerate(lines) if "docs/use-the-kernel.md" in line
    )


def test_end_names_the_configurations_of_pytorch_that_have_no_figure(tmp_path: Path) -> None:
    lines = end_of(tmp_path, baselines_failed=["compile", "compile_max_autotune"])
    failed = "compile and compile max autotune failed: no figure"
    assert any(line.endswith(f"1.50x its best configuration ({failed})") for line in lines)


@pytest.mark.parametrize(
    ("state", "speedup", "told"),
    [
        ("stopped", 0.74, "fastest so far:  r1i0v0a0: Fuse the two passes (slower than PyTorch, not certified)"),
        ("stopped", 1.74, "fastest so far:  r1i0v0a0: Fuse the two passes (not certified)"),
        ("no_gain", 0.74, "fastest:  r1i0v0a0: Fuse the two passes (slower than PyTorch, not certified)"),
    ],
)
def test_end_calls_no_kernel_a_winner_that_is_not_certified(
    tmp_path: Path, state: str, speedup: float, told: str
) -> None:
    lines = end_of(tmp_path, state=state, certified=False, speedup=speedup)
    assert told in lines
    assert f"         source {tmp_path / 'best.cpp'}" in lines
    assert not any("winner" in line for line in lines)


@pytest.mark.parametrize(
    ("state", "origin", "told"),
    [
        ("stalled", "seed", "no kernel beat the seed that was given; this is that seed"),
        ("stopped", "seed", "no kernel beat the seed that was given yet; this is that seed"),
        ("stalled", "bank", "no kernel beat the one kept from an earlier search; this is that kernel"),
    ],
)
def test_end_says_when_no_kernel_beat_what_the_search_began_with(
    tmp_path: Path, state: str, origin: str, told: str
) -> None:
    assert f"         {told}" in end_of(tmp_path, state=state, origin=origin, idea=None)
    assert not any("no kernel beat" in line for line in end_of(tmp_path, state=state))


async def test_one_finished_round_is_not_called_rounds(search: Search) -> None:
    await search.run(search.context(rounds=1))
    assert resume_line(search.archive).startswith("skipped, because it is stored: 1 finished round, ")


@pytest.mark.parametrize(("certified", "told"), [(True, False), (False, True)])
def test_end_by_a_budget_says_when_nothing_was_gained(tmp_path: Path, certified: bool, told: bool) -> None:
    result = SearchResult(
        run_dir=tmp_path,
        state="budget",
        rounds=1,
        best_id=None,
        best_source=None,
        best_source_path=None,
        speedup=None,
        certified=certified,
        report={},
    )
    lines = closing_lines(result)
    assert "finished: the budget is spent" in lines
    assert any("no kernel was certified as faster" in line for line in lines) is told
