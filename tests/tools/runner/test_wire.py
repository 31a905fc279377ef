"""The runner's wire: what the two Python ends share is what the native host's header has."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path

import pytest

from ridgeline.tools.records import tickets
from ridgeline.tools.records.module_contract import LiteralArgument, ModuleSetup, TensorArgument, TensorResult
from ridgeline.tools.records.vocabulary import DeviceKind, ReasonCode, Role
from ridgeline.tools.runner import wire
from ridgeline.tools.runner.fault import Fault
from ridgeline.tools.runner.wire import (
    Access,
    AnswerWord,
    FaultWord,
    PointerLine,
    PythonSetup,
    RegionLine,
    RequestWord,
    RunnerFailureCode,
    ScalarLine,
    Setup,
    SetupWord,
    done_ns,
    failed_line,
    mapped_line,
    ready_line,
    request_line,
)

NATIVE = Path(wire.__file__).parent / "native"
WORDS = (NATIVE / "wire_words.h").read_text()
SETUP = Setup(
    library="/a folder/kernel.so",
    n_sets=3,
    regions=(
        RegionLine(descriptor=5, size_bytes=4096, writable=False),
        RegionLine(descriptor=6, size_bytes=8192, writable=True),
    ),
    arguments=(
        PointerLine(
            role=Role.INPUT, region=0, offset=64, set_stride=128, dtype="float32", shape=(2, 4), strides=(4, 1)
        ),
        ScalarLine(dtype="float64", value=float("inf")),
        ScalarLine(dtype="int64", value=3.0),
        PointerLine(role=Role.OUTPUT, region=1, offset=0, set_stride=64, dtype="bool", shape=(), strides=()),
    ),
    workspace_bytes=1 << 30,
)
MODULE = ModuleSetup(
    init="[4]",
    first_values={"w": "0f"},
    arguments=(TensorArgument(index=0), LiteralArgument(source="2.5")),
    form=TensorResult(),
    copied=(0,),
    state={"w": 1},
    source="a = 'x\ny'\n",
)
PYTHON = PythonSetup(device=DeviceKind.CUDA, watcher="/watch.so", module=MODULE)


def native_words(group: str) -> list[str]:
    body = re.search(rf"namespace {group} {{.*?\n(.*?)\n}}", WORDS, re.DOTALL)
    assert body is not None
    return re.findall(r'\[\] = "(.*)";', body[1])


@pytest.mark.parametrize(
    ("group", "words", "left_out"),
    [
        (
            "setup",
            SetupWord,
            {
                SetupWord.DEVICE,
                SetupWord.WATCHER,
                SetupWord.UNSEEN_WEIGHTS,
                SetupWord.SHARED,
                SetupWord.MODULE,
                SetupWord.NOTHING,
            },
        ),
        ("access", Access, {Access.READ_WRITE}),
        ("request", RequestWord, {RequestWord.LOOP_EMPTY}),
        ("answer", AnswerWord, {AnswerWord.IMPORTED}),
        ("fault", FaultWord, set()),
    ],
)
def test_native_host_has_the_same_words_in_the_same_order(
    group: str, words: type[StrEnum], left_out: set[StrEnum]
) -> None:
    assert native_words(group) == [word.value for word in words if word not in left_out]


def test_native_host_has_the_first_failure_codes_in_the_same_order() -> None:
    native = native_words("failure")
    assert native == [code.value for code in RunnerFailureCode][: len(native)]


def test_native_host_has_the_same_descriptors_and_last_ticket() -> None:
    assert re.search(r"kSocket = (\d+);", WORDS)[1] == str(wire.SOCKET)
    assert re.search(r"kTickets = (\d+);", WORDS)[1] == str(wire.TICKETS)
    assert re.search(r"kEnd = (\d+);", WORDS)[1] == str(tickets.END)


@pytest.mark.parametrize("name", ["host.cpp", "host_wire.h", "host_cpu.h", "host_cuda.h", "fault_watch.h"])
def test_native_sources_take_every_word_from_the_header(name: str) -> None:
    source = (NATIVE / name).read_text()
    words = {*SetupWord, *RequestWord, *AnswerWord, *FaultWord, *RunnerFailureCode, *Access}
    assert set(re.findall(r'"(\w+) ?"', source)) & {word.value for word in words} == set()


def test_every_failure_code_is_one_of_a_verdict() -> None:
    others = {RunnerFailureCode.DEVICE: ReasonCode.CUDA_ERROR, RunnerFailureCode.PROTOCOL: ReasonCode.PROTOCOL_VIOLATED}
    assert {code: code.reason_code for code in RunnerFailureCode} == {
        code: others.get(code) or ReasonCode(code.value) for code in RunnerFailureCode
    }


@pytest.mark.parametrize(
    "python",
    [
        None,
        PYTHON,
        PythonSetup(device=DeviceKind.CPU, watcher="/watch.so"),
        PythonSetup(device=DeviceKind.CPU, watcher="/watch.so", does_nothing=True),
        PythonSetup(device=DeviceKind.CPU, watcher="/watch.so", weights_show=False),
        PythonSetup(device=DeviceKind.CPU, watcher="/watch.so", shared_outputs=((0, 1), (0, 2))),
    ],
)
def test_a_setup_arrives_as_it_was_sent(python: PythonSetup | None) -> None:
    sent = Setup(
        library=SETUP.library,
        n_sets=SETUP.n_sets,
        regions=SETUP.regions,
        arguments=SETUP.arguments,
        workspace_bytes=SETUP.workspace_bytes,
        python=python,
    )
    assert Setup.parse(iter(sent.text().split("\n"))) == sent


def test_the_lines_are_those_of_the_documented_protocol() -> None:
    assert SETUP.lines() == [
        "setup 3",
        "library /a folder/kernel.so",
        "sets 3",
        "region 5 4096 ro",
        "region 6 8192 rw",
        "pointer input 0 64 128 float32 2 2 4 4 1",
        "scalar float64 inf",
        "scalar int64 3.0",
        "pointer output 1 0 64 bool 0",
        "workspace 1073741824",
        "end",
    ]


def test_a_python_runner_is_told_its_device_before_any_region() -> None:
    words = [line.partition(" ")[0] for line in PYTHON.lines()]
    assert words == ["device", "watcher", "module"]
    assert all("\n" not in line for line in PYTHON.lines())


@pytest.mark.parametrize("text", ["setup 1\nlibrary x\n", "setup 1\nsurprise\nend\n", "end\n"])
def test_a_setup_without_an_end_a_known_word_or_a_library_is_refused(text: str) -> None:
    with pytest.raises((ValueError, KeyError)):
        Setup.parse(iter(text.splitlines()))


def test_requests_and_answers_are_those_of_the_documented_protocol() -> None:
    assert request_line(RequestWord.RUN, "ab12", 7) == "run ab12 7\n"
    assert [mapped_line(None), mapped_line(4096)] == ["mapped", "mapped 4096"]
    assert ready_line(64, 2) == "ready 64 2"
    assert failed_line(RunnerFailureCode.STALE_OUTPUT, "two calls") == "failed stale_output two calls"
    assert done_ns(["done", "ab12", "77"], "ab12") == 77


@pytest.mark.parametrize(
    "said", ["done ab12", "done ab13 7", "done ab12 7 8", "done ab12 -7", "done ab12 ７", "ready 0 2"]
)
def test_another_line_is_no_answer(said: str) -> None:
    assert done_ns(said.split(), "ab12") is None


def test_a_fault_tells_a_region_or_an_address() -> None:
    inside = Fault.parse(["11", "write", "2", "-8"])
    assert inside == Fault(signal=11, is_write=True, region=2, place="-8")
    outside = Fault.parse(["7", "read", "-", "0x10"])
    assert outside == Fault(signal=7, is_write=False, region=None, place="0x10")
    assert Fault.parse(["the", "call", "of", "forward", "raised"]) is None
    assert [fault.words().split() for fault in (inside, outside)] == [
        ["11", "write", "2", "-8"],
        ["7", "read", "-", "0x10"],
    ]
