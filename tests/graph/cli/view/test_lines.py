"""The lines that a search's events make in a log."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console
from tests.graph.cli.view.boards import (
    Clock,
    certifying,
    done,
    drawn,
    make_board,
    measured,
    round_done,
    round_started,
    waiting,
)

from ridgeline.graph.cli.view.lines import plain_line
from ridgeline.graph.cli.view.progress import PlainView


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
    assert "longer than the 4m00s expected of the certificate" in "\n".join(drawn(board))
    board.apply(round_started(2))
    assert board.ends_at is None


def test_plain_lines_tell_a_step_that_runs_from_one_that_is_not_done() -> None:
    text = io.StringIO()
    view = PlainView(make_board(), Console(file=text, width=200))
    step = {"event": "certify", "candidate_id": "a", "step": "own_work", "passed": None}
    for detail in ("", "ncu hung"):
        view.show(step | {"detail": detail})
    running, ended = text.getvalue().splitlines()
    assert running.endswith("own work … (whose code the time is spent in)")
    assert ended.endswith("own work not done (ncu hung)")


def test_plain_lines_tell_a_failure_without_the_judge_s_inner_names() -> None:
    text = io.StringIO()
    failed = done("r1i0v0", None) | {"status": "wrong", "reason": "nominal_0: error 0.5, gate 1e-05"}
    PlainView(make_board(), Console(file=text, width=200)).show(failed)
    assert "wrong: inputs like those of get_inputs(): error 0.5, limit 1e-05" in text.getvalue()


def test_plain_lines_tell_a_wait_when_it_is_news() -> None:
    text = io.StringIO()
    view = PlainView(make_board(), Console(file=text))
    view.show(waiting("pid 12 (sh)"))
    view.show(waiting(""))
    view.show(waiting("pid 12 (sh)", is_news=False))
    view.show(waiting(""))
    told, over = text.getvalue().splitlines()
    assert told.endswith("waiting for cpu: pid 12 (sh) holds it")
    assert over.endswith("cpu is free: going on")


def test_that_a_wait_is_over_is_told_below_its_line_alone_and_not_of_a_search_that_stops() -> None:
    text = io.StringIO()
    view = PlainView(make_board(), Console(file=text, width=200))
    view.show(waiting("pid 12 (sh)"))
    view.show(certifying("verify", passed=True))  # of a branch that had the device
    view.show(waiting(""))
    view.show(waiting("pid 13 (sh)"))
    view.show({"event": "stopped", "outcome": "stopping", "reason": "SIGINT"})
    view.show(waiting("") | {"device": "", "is_news": False})
    assert "is free" not in text.getvalue()


def test_the_time_left_of_a_certificate_does_not_run_out_while_another_process_is_waited_for() -> None:
    clock, text = Clock(), io.StringIO()
    board = make_board(clock)
    view = PlainView(board, Console(file=text, width=200))
    view.show({"event": "certification", "phase": "first 2 kernels, in turns", "left_s": 240.0})
    view.show(certifying("build", passed=None) | {"place": (1, 9), "left_s": 200.0})
    assert "(1 of 9, about 3m20s left)" in text.getvalue()
    view.show(waiting("pid 12 (sh)"))
    clock.now_s = 300.0
    assert board.left_s() == 200.0
    view.show(waiting(""))
    clock.now_s = 310.0
    assert board.left_s() == 190.0
    view.show(certifying("verify", passed=None) | {"place": (2, 9), "left_s": 190.0})
    assert "(2 of 9, about 3m10s and waits for other processes left)" in text.getvalue()


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
    assert (
        "timing PyTorch: torch.compile, which may take minutes unless it is stored; then max-autotune"
        in text.getvalue()
    )


def test_the_time_left_of_the_rounds_stands_apart_from_why_a_kernel_ranks_behind() -> None:
    clock, text = Clock(), io.StringIO()
    board = make_board(clock)
    view = PlainView(board, Console(file=text, width=300))
    view.show(round_started(1))
    view.show(done("r1i0v0", 2.0))
    view.show(done("r1i1v0", 2.5) | {"speedup_ci95": [1.6, 3.1]})
    clock.now_s = 60.0
    view.show(round_done(1))
    assert "lower end counts; about 2m00s left of the rounds" in text.getvalue()


@pytest.mark.parametrize(
    ("arithmetic_ms", "floors", "share"),
    [
        (0.01, "memory floor 0.054 ms", "27% of the memory floor's speed"),
        (0.18, "memory floor 0.054 ms, arithmetic floor 0.180 ms (binds)", "90% of the arithmetic floor's speed"),
        (
            0.3,
            "memory floor 0.054 ms, arithmetic floor 0.300 ms (binds)",
            "150% of the arithmetic floor's speed, which is advisory",
        ),
    ],
)
def test_the_floor_that_binds_is_told_by_name_and_the_best_kernel_s_share_of_it(
    arithmetic_ms: float, floors: str, share: str
) -> None:
    text, board = io.StringIO(), make_board()
    view = PlainView(board, Console(file=text, width=300))
    known = {"compute_floor_ms": arithmetic_ms, "bound": "told otherwise"}
    view.show(measured({"eager": 0.4}, floor_ms=0.054) | known)
    assert text.getvalue().endswith(f"PyTorch: eager 0.400 ms; {floors}\n")
    view.show(round_started(1))
    view.show(round_done(1))
    assert "round 1 done: best so far 1.50x eager" in text.getvalue() and f", {share}  " in text.getvalue()
    assert floors in "\n".join(drawn(board, width=200))


def test_a_time_of_pytorch_that_was_stored_is_told_with_its_date() -> None:
    text, board = io.StringIO(), make_board()
    view = PlainView(board, Console(file=text, width=300))
    known = measured({"eager": 0.4, "compile": 0.3})
    view.show(known | {"stored": {"eager": "2026-05-04 10:12"}})
    told = "eager 0.400 ms (stored, measured on 2026-05-04 10:12), torch.compile 0.300 ms"
    assert f"PyTorch: {told}; " in text.getvalue()
    assert told in "\n".join(drawn(board, width=120))
    view.show(known | {"stored": {"compile": ""}})
    assert "PyTorch: eager 0.400 ms, torch.compile 0.300 ms (stored); " in text.getvalue()


def test_a_ratio_near_one_has_a_third_digit() -> None:
    text, board = io.StringIO(), make_board()
    view = PlainView(board, Console(file=text, width=300))
    view.show(measured({"eager": 0.4, "compile": 0.2654}))
    view.show(round_started(1))
    view.show(round_done(1))
    assert "1.50x eager (1.40 to 1.60), 0.995x torch.compile" in text.getvalue()
