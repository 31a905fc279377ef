"""A judge whose memory runs out tries once more without what it can make again."""

from __future__ import annotations

from typing import Any, cast

import pytest
import torch
from tests.tools.judge.worker.made import made

from ridgeline.tools.errors import EngineError, JudgeShortError, NoRoomError
from ridgeline.tools.judge.messages import Idle, MakeRoom, PrepareMode
from ridgeline.tools.judge.replies import Idled
from ridgeline.tools.judge.worker.__main__ import answer, failure
from ridgeline.tools.records.reference_mode import ReferenceMode


class Full:
    """A judge that finds room in its second try, or never."""

    def __init__(self, error: Exception, *, tries: int) -> None:
        self.error = error
        self.tries = tries
        self.done: list[str] = []

    def idle(self, _request: Idle) -> Idled:
        self.done.append("idle")
        if self.done.count("idle") < self.tries:
            raise self.error
        return Idled(seconds=1.0)

    def make_room(self, _request: MakeRoom) -> None:
        self.done.append("make_room")


def asked(judge: Full, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr("ridgeline.tools.judge.worker.__main__.method_of", lambda _request: Full.idle)
    return answer(cast("Any", judge), Idle())


@pytest.mark.parametrize("error", [torch.OutOfMemoryError("CUDA out of memory"), NoRoomError("no room")])
def test_memory_that_runs_out_is_made_room_in_once(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    judge = Full(error, tries=2)
    assert asked(judge, monkeypatch) == Idled(seconds=1.0)
    assert judge.done == ["idle", "make_room", "idle"]


def test_memory_that_runs_out_again_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(torch.OutOfMemoryError):
        asked(Full(torch.OutOfMemoryError("CUDA out of memory"), tries=3), monkeypatch)


@pytest.mark.parametrize("error", [torch.OutOfMemoryError("CUDA out of memory"), NoRoomError("no room")])
def test_memory_that_runs_out_while_a_problem_is_judged_may_be_a_candidates_doing(error: Exception) -> None:
    told = failure(error, Idle())
    assert isinstance(told, JudgeShortError)
    assert str(told).startswith("idle: ")


@pytest.mark.parametrize(
    ("words", "was_killed"),
    [("PTXAS error: `ptxas` failed with error code -9", True), ("C++ compile error: expected ';'", False)],
)
def test_a_compiler_of_pytorchs_that_was_killed_is_told_as_such(words: str, was_killed: bool) -> None:
    told = failure(RuntimeError(words), PrepareMode(mode=ReferenceMode.COMPILE))
    assert type(told) is EngineError and told.was_killed is was_killed


def test_another_error_is_no_reason_to_try_again(monkeypatch: pytest.MonkeyPatch) -> None:
    judge = Full(RuntimeError("bad"), tries=2)
    with pytest.raises(RuntimeError):
        asked(judge, monkeypatch)
    assert judge.done == ["idle"]


def test_cases_that_are_freed_are_made_again_with_the_errors_that_are_known() -> None:
    book = made("x", "torch.randn(64, 64)", "return x @ x").book
    case = book.case("nominal_0")
    known = dict(case.own)
    book.free()
    again = book.case("nominal_0")
    assert again is not case
    assert again.own == known
    assert torch.equal(again.expected[0].values, case.expected[0].values)
