"""Requests and replies as lines, and that both ends of the socket know the same ones."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any, get_args, get_type_hints

import pytest
from tests.descriptions import description_of

from ridgeline.tools.errors import (
    BadReferenceError,
    DeviceError,
    DeviceLostError,
    EngineError,
    NoRoomError,
    ProblemError,
    RidgelineError,
    TrustedProcessLost,
)
from ridgeline.tools.judge import messages
from ridgeline.tools.judge.messages import (
    REQUESTS,
    Check,
    Copy,
    DetectChange,
    DrawNext,
    Examine,
    ExamineRepeat,
    FindUnasked,
    Idle,
    LeaveOut,
    Load,
    Loop,
    MakeRoom,
    NotAReplyError,
    Poison,
    Prepare,
    PrepareMode,
    Redraw,
    Renew,
    Request,
    Supersede,
    TimeRenewals,
    VerifyInputs,
    Wipe,
    decode_reply,
    decode_request,
    encode_reply,
    encode_request,
    operation,
)
from ridgeline.tools.judge.replies import (
    Beyond,
    Changed,
    Different,
    Done,
    Element,
    Failed,
    Graded,
    Idled,
    Intact,
    LeftOut,
    Loaded,
    Looped,
    Missing,
    ModeReady,
    PaceAlone,
    Place,
    RegionForm,
    Renewed,
    Same,
    Touched,
    Unasked,
)
from ridgeline.tools.judge.worker.__main__ import method_of
from ridgeline.tools.judge.worker.judge import Judge
from ridgeline.tools.records.codec import Record
from ridgeline.tools.records.error_map import AxisPattern, ErrorMap, LimitUse, Measure, Pattern, Relation
from ridgeline.tools.records.finding import Finding
from ridgeline.tools.records.problem import ArgSpec, SkippedTrial
from ridgeline.tools.records.reference_mode import ReferenceMode
from ridgeline.tools.records.results import Trial
from ridgeline.tools.records.told_error import ToldError
from ridgeline.tools.records.vocabulary import DeviceKind, Interface, PrecisionClass, ReasonCode, Role

_LOAD = Load(
    reference_source="class Model: ...",
    interface=Interface.C,
    tolerance=PrecisionClass.FP32,
    secret="00ff",
    call_limit_s=60.0,
    device=DeviceKind.CPU,
    cache_bytes=1 << 20,
    memory_bytes=1 << 30,
    fatal_attempts=("shifted",),
)
_TRIAL = Trial(
    name="nominal_0",
    rel_error=1e-3,
    gate=1e-5,
    passed=False,
    nearest=LimitUse(measure=Measure.ROW, figure=1e300, limit=1e-4),
)
_GRADED = Graded(
    trial=_TRIAL,
    measured=PrecisionClass.TF32,
    output="out",
    stale="nominal_1",
    non_finite=Element(index=(0, 3), got=math.inf, expected=0.1),
    worst=Element(index=(), got=-math.inf, expected=1e300),
    wrong_integers=2,
    invalid_bools=1,
    error_map=ErrorMap(
        wrong=3,
        total=64,
        axes=(AxisPattern(axis=1, size=16, pattern=Pattern.LAST, count=3, first=13, last=15),),
        relation=Relation.RATIO,
        value=-1.0,
    ),
)
_MISSING = Missing(output="out", count=3, total=64, first=5, width=16)
_LOADED = Loaded(
    description=description_of(),
    n_sets=24,
    regions=(RegionForm(size_bytes=4096, writable=True),),
    places=(
        Place(spec=ArgSpec(name="x", role=Role.INPUT, shape=(4,), strides=(1,)), region=0, offset=8, set_stride=64),
    ),
    trials=("nominal_0", "shifted"),
    degenerate=Finding(code=ReasonCode.CONSTANT_OUTPUT, reason="one number"),
    shared_outputs=((0, 1),),
)

EXCHANGES: list[tuple[Request[Any], Record]] = [
    (_LOAD, _LOADED),
    (_LOAD, dataclasses.replace(_LOADED, degenerate=None)),
    (MakeRoom(), Done()),
    (Wipe(), Done()),
    (Redraw(secret="ff00"), Done()),
    (Prepare(trial="nominal_0", set_index=1, nan=True), Done()),
    (Poison(set_index=1, nan=False), Done()),
    (Examine(trial="nominal_0", set_index=1), Touched(name="x")),
    (Examine(trial="nominal_0", set_index=1), Beyond(output="out", count=4, first=12)),
    (Examine(trial="nominal_0", set_index=1), _MISSING),
    (Examine(trial="nominal_0", set_index=1), _GRADED),
    (Examine(trial="nominal_0", set_index=1), Graded(trial=_TRIAL, measured=None)),
    (ExamineRepeat(trial="nominal_0", set_index=1), Same()),
    (ExamineRepeat(trial="nominal_0", set_index=1), Beyond(output="out", count=4, first=12)),
    (ExamineRepeat(trial="nominal_0", set_index=1), _MISSING),
    (ExamineRepeat(trial="nominal_0", set_index=1), Different(difference=0.1, graded=_GRADED)),
    (DetectChange(set_index=0), Changed(changed=True)),
    (Renew(), Renewed(slowdown=1.5)),
    (Renew(order=(1, 0)), Renewed(slowdown=0.0)),
    (TimeRenewals(), PaceAlone(slowdown=1.7)),
    (
        LeaveOut(),
        LeftOut(
            left_out=(SkippedTrial(name="timed shifted", reason="forward() raised ValueError"),),
            timed_kinds=("integers",),
        ),
    ),
    (FindUnasked(sets=(2, 1)), Unasked(written=(2,))),
    (VerifyInputs(set_index=2), Intact(intact=False)),
    (DrawNext(), Done()),
    (Supersede(set_index=2, like=3), Done()),
    (Copy(set_index=2), Done()),
    (Idle(), Idled(seconds=1e-4)),
    (Check(set_index=2), _TRIAL),
    (PrepareMode(mode=ReferenceMode.EAGER), ModeReady(rel_error=1e-7, measured=PrecisionClass.EXACT)),
    (PrepareMode(mode=ReferenceMode.EAGER_TF32), ModeReady(rel_error=0.5, measured=None)),
    (Loop(mode=ReferenceMode.EAGER, sets=(3, 21)), Looped(own_s=0.25)),
]


@pytest.mark.parametrize(("request_", "reply"), EXCHANGES)
def test_every_request_and_every_reply_survives_its_line(request_: Request[Any], reply: Record) -> None:
    asked, answered = encode_request(request_), encode_reply(reply)
    assert asked.count(b"\n") == answered.count(b"\n") == 1
    assert decode_request(asked) == request_
    assert decode_reply(answered, request_) == reply


def test_every_request_and_every_kind_of_reply_is_exchanged_above() -> None:
    assert {type(request) for request, _ in EXCHANGES} == set(REQUESTS)
    seen = {request: {type(reply) for asked, reply in EXCHANGES if type(asked) is request} for request in REQUESTS}
    assert seen == {request: set(request.replies) for request in REQUESTS}


def test_every_request_of_the_module_is_listed_under_an_operation_of_its_own() -> None:
    defined = {m for m in vars(messages).values() if isinstance(m, type) and issubclass(m, Request)} - {Request}
    assert defined == set(REQUESTS)
    assert len({operation(request) for request in REQUESTS}) == len(REQUESTS)
    assert [operation(request) for request in (Load, ExamineRepeat, VerifyInputs)] == [
        "load",
        "examine_repeat",
        "verify_inputs",
    ]


def test_the_worker_answers_every_request_with_the_replies_that_the_parent_expects() -> None:
    for request in set(REQUESTS) - {Load}:
        hints = get_type_hints(method_of(request))
        given = hints.pop("return")
        assert set(get_args(given) or (given,)) == set(request.replies)
        assert list(hints.values()) == [request]
    assert (get_type_hints(Judge.loaded)["return"],) == Load.replies


@pytest.mark.parametrize(
    "error",
    [
        NoRoomError("memory ran out"),
        ProblemError("tolerance: no"),
        BadReferenceError("reference.py: no"),
        DeviceError("no GPU"),
        DeviceLostError("integers"),
        TrustedProcessLost("gone"),
        EngineError("ours"),
    ],
)
def test_a_failure_is_raised_by_the_parent_as_the_worker_raised_it(error: RidgelineError) -> None:
    failed = decode_reply(encode_reply(Failed(error=ToldError.of(error))), Renew())
    assert isinstance(failed, Failed)
    raised = failed.error.as_exception()
    assert (type(raised), str(raised)) == (type(error), str(error))


@pytest.mark.parametrize(
    "line",
    [
        b"hello",
        b"[1]",
        b"3",
        b"{}",
        b'{"reply": "Looped", "own_s": 1.0}',
        b'{"reply": "Renewed"}',
        b'{"reply": "Failed", "error": 3}',
        b'{"reply": "Failed", "error": {"type": 3, "message": "no"}}',
    ],
)
def test_a_line_that_is_no_reply_to_the_request_is_refused(line: bytes) -> None:
    with pytest.raises(NotAReplyError, match="renew"):
        decode_reply(line, Renew())


def test_a_grade_that_passed_has_a_class() -> None:
    with pytest.raises(ValueError, match="needs a class"):
        Graded(trial=dataclasses.replace(_TRIAL, passed=True), measured=None)


def test_requests_name_their_operation_first() -> None:
    assert json.loads(encode_request(Poison(set_index=1, nan=True))) == {"op": "poison", "set_index": 1, "nan": True}
