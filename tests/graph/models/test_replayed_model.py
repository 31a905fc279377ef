"""Answers of a recording, found by call and by what the call is about."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from ridgeline.checkpoints.recording.recording import idea_key, place_of, question_of
from ridgeline.graph.models.recorded_answers import Answers
from ridgeline.graph.models.registry import make_model
from ridgeline.tools.errors import ModelError


class Recorded:
    """A recording's calls alone."""

    def __init__(self, *calls: Any) -> None:
        self.calls = calls
        self.measurements = ()


def call(call_id: str, title: str) -> Any:
    from ridgeline.checkpoints.recording.recording import RecordedCall

    question = {"idea": idea_key(title, "mechanism"), "variation": 0}
    return RecordedCall(
        call_id=call_id, model="m", prompt_sha256="0", question=question, reply={"text": title}, usage={}
    )


def asked(title: str) -> dict[str, Any]:
    found = question_of({"idea": {"title": title, "mechanism": "mechanism"}, "variation": 0})
    assert found is not None
    return found


def test_a_kernel_is_found_by_its_idea_whatever_number_that_has() -> None:
    answers = Answers(Recorded(call("r1i0v0a0:write", "first"), call("r1i1v0a0:write", "second")), where="run")  # type: ignore[arg-type]
    for call_id, title in (("r1i0v0a0:write", "first"), ("r1i0v0a0:write", "second"), ("r2i3v0a0:write", "first")):
        found = answers.find(call_id, asked(title))
        assert found is not None
        assert found.reply == {"text": title}
    assert answers.find("r1i0v0a0:write", asked("third")) is None
    assert answers.find("r1i0v1a0:write", asked("first")) is None
    assert answers.find("r1i0v0a1:write", asked("first")) is None
    assert answers.find("r9:ideate:0", None) is None


def test_a_kernel_whose_idea_was_not_recorded_is_found_by_its_call() -> None:
    older = dataclasses.replace(call("r1i0v0a0:write", "first"), question=None)
    answers = Answers(Recorded(older, call("r1i1v0a0:write", "second")), where="run")  # type: ignore[arg-type]
    assert answers.find("r1i0v0a0:write", asked("first")) == older
    assert answers.find("r1i0v0a1:write", asked("first")) is None
    found = answers.find("r1i0v0a0:write", asked("second"))
    assert found is not None
    assert found.call_id == "r1i1v0a0:write"


def test_of_an_idea_that_was_tried_twice_the_round_s_own_kernel_is_found() -> None:
    calls = [call(f"r{round_}i0v0a0:write", "same") for round_ in (1, 2, 3)]
    answers = Answers(Recorded(*calls), where="run")  # type: ignore[arg-type]
    for round_, expected in ((1, calls[0]), (2, calls[1]), (3, calls[2]), (4, calls[0])):
        assert answers.find(f"r{round_}i7v0a0:write", asked("same")) == expected


def test_a_call_for_ideas_has_no_idea_to_be_found_by() -> None:
    assert place_of("r1:ideate:0", {"round": 1}) is None
    assert question_of({"asked_in": "a task"}) is None


@pytest.mark.parametrize("name", ["replay", "replay:runs/mine"])
def test_replay_is_no_model_of_its_own(name: str) -> None:
    with pytest.raises(ModelError, match="replay='RUN', in the place of models"):
        make_model(name)
