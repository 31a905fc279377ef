"""Explanations of a runner's failure: by its `failed` line, by its process's end, by what it printed on stderr."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO

from ridgeline.tools.build.messages import explain_unmapped
from ridgeline.tools.judge.process import LoadedProblem
from ridgeline.tools.records.finding import CandidateFault
from ridgeline.tools.records.printable import printable
from ridgeline.tools.records.vocabulary import ReasonCode
from ridgeline.tools.runner.fault import Fault
from ridgeline.tools.runner.fault_address import locate
from ridgeline.tools.runner.wire import RunnerFailureCode
from ridgeline.tools.sandbox.process import ExitStatus, Limit

_MESSAGE = "what():"  # before an exception's message, whose lines after the first follow by themselves
_ADDRESS_FINDING = re.compile(r"AddressSanitizer: ([\w-]+)(?= on )")
_POISON = "use-after-poison"  # what lies between tensors is closed to a sanitizer's build
_ACCESS = ("READ of size ", "WRITE of size ")
_SANITIZERS_SAY = ("Sanitizer", "runtime error:")  # AddressSanitizer's and UndefinedBehaviorSanitizer's own words
_FAULTS = (RunnerFailureCode.CRASHED, RunnerFailureCode.INPUT_WRITTEN)
_SIGNALS: dict[int, str] = {signal.SIGSEGV: "SIGSEGV", signal.SIGBUS: "SIGBUS"}  # those that the fault handler catches
_AROUND_REGION = 1 << 20  # kGuard of native/host_cpu.h
_ADDRESS = re.compile(r"0|0x[0-9a-f]{1,16}")
_STDERR_BYTES, _QUOTED_CHARACTERS = 1 << 16, 300
_BY_LIMIT = {Limit.MEMORY: ReasonCode.OUT_OF_MEMORY, Limit.WALL: ReasonCode.CALL_TIMEOUT}
_BY_SIGNAL: dict[int, ReasonCode] = {
    signal.SIGXCPU: ReasonCode.CALL_TIMEOUT,
    signal.SIGSYS: ReasonCode.SANDBOX_VIOLATION,
    signal.SIGXFSZ: ReasonCode.SANDBOX_VIOLATION,
}


class RunnerFailure(CandidateFault):
    """A candidate's runner died, hung or broke the protocol.

    `was_killed` says that SIGKILL ended it which no limit of ours sent.
    """

    def __init__(self, code: ReasonCode, reason: str, *, was_killed: bool = False) -> None:
        super().__init__(code, reason)
        self.was_killed = was_killed


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """Activity of a runner at its failure."""

    phase: str  # "while it was loaded", "during a call"
    called_set: int | None = None  # of the last request, when it was for one set only


def violation(what: str) -> RunnerFailure:
    """Return the failure of a runner that said something else than its answer."""
    reason = f"the candidate wrote to the host's connection: {what}"
    return RunnerFailure(ReasonCode.PROTOCOL_VIOLATED, reason)


def explain_failed(words: Sequence[str], problem: LoadedProblem, moment: Moment) -> RunnerFailure:
    """Return the failure that a `failed` line tells; `words` are what follows the line's first word."""
    code, detail = _code(words), words[1:]
    if code is None:
        return violation(f"failed {' '.join(words)!r}")
    fault = Fault.parse(detail) if code in _FAULTS else None
    if fault is not None and not _can_be(fault, problem):
        return violation(f"failed {' '.join(words)!r}")
    if fault is not None:
        return RunnerFailure(code.reason_code, _explain_fault(fault, problem, moment))
    return RunnerFailure(code.reason_code, explain_unmapped(" ".join(detail)) or code.replace("_", " "))


def explain_end(ended: ExitStatus, said: str, moment: Moment) -> RunnerFailure:
    """Return the failure of a runner whose process ended without a word; `said` is from its stderr."""
    reason = f"{ended.message} {moment.phase}{_quoted(said)}"
    if ended.limit is not Limit.NONE:
        return RunnerFailure(_BY_LIMIT.get(ended.limit, ReasonCode.SANDBOX_VIOLATION), reason)
    if ended.signal is not None:
        code = _BY_SIGNAL.get(ended.signal, ReasonCode.CRASHED)
        return RunnerFailure(code, reason, was_killed=ended.was_killed)
    code = ReasonCode.CRASHED if _is_of_a_sanitizer(said) else ReasonCode.EXITED
    how = "" if ended.code is None else "the process ended by itself: "
    return RunnerFailure(code, how + reason, was_killed=ended.was_killed)


def _quoted(said: str) -> str:
    """Return a candidate's own words as such, so that nobody takes them for the judge's; a sanitizer's as they are."""
    if not said or _is_of_a_sanitizer(said):
        return f": {said}" if said else ""
    return f": its process printed {json.dumps(said, ensure_ascii=False)}"


def last_words(stderr: IO[bytes]) -> str:
    """Return what is worth quoting of a runner's stderr: a sanitizer's finding, an exception's message, or the last line."""
    stderr.seek(0)
    lines = stderr.read(_STDERR_BYTES).decode(errors="replace").strip().splitlines()
    at = next((i for i, line in enumerate(lines) if _is_of_a_sanitizer(line)), None)
    found = [] if at is None else [_with_access(lines[at], lines[at + 1 :])]
    thrown = next((i for i, line in enumerate(lines) if line.lstrip().startswith(_MESSAGE)), None)
    message = [] if thrown is None else [" ".join(" ".join(lines[thrown:]).split())]
    return printable((found or message or lines[-1:] or [""])[0]).strip()[:_QUOTED_CHARACTERS]


def _with_access(line: str, below: Sequence[str]) -> str:
    """Return a sanitizer's line without addresses and folders, with the access and the source's line that stand below it."""
    kind = _ADDRESS_FINDING.search(line)
    if kind is None:
        return " ".join(map(_without_folder, line.split()))
    words = f"{kind[1]} (memory that is no tensor's)" if kind[1] == _POISON else kind[1]
    access = next((line.partition(" at ")[0] for line in below if line.startswith(_ACCESS)), "")
    place = next((f" in {place}" for line in below if (place := _place_of(line))), "")
    return f"AddressSanitizer: {words}{f': {access}{place}' if access else ''}"


def _place_of(frame: str) -> str:
    """Return "run, kernel.cpp:15" of a line of a sanitizer's stack, "" of any other and of code without lines."""
    words = frame.split()
    is_frame = len(words) > 4 and words[0].startswith("#") and words[2] == "in"
    if not is_frame or not words[-1].rpartition(":")[2].isdigit():
        return ""
    return f"{' '.join(words[3:-1])}, {_without_folder(words[-1])}"


def _without_folder(word: str) -> str:
    """Return "kernel.cpp:3:14:" of the place with its folder; any other word as it is."""
    return word.rpartition("/")[2] if word.startswith("/") and ":" in word else word


def _code(words: Sequence[str]) -> RunnerFailureCode | None:
    """Return the code of a `failed` line, None where a runner of ours would not say it of a candidate."""
    code = next((code for code in RunnerFailureCode if [code] == list(words[:1])), None)
    return None if code is RunnerFailureCode.PROTOCOL else code


def _is_of_a_sanitizer(text: str) -> bool:
    return any(words in text for words in _SANITIZERS_SAY)


def _can_be(fault: Fault, problem: LoadedProblem) -> bool:
    """Say whether the fault handler could have told this: a candidate may write a line of its own."""
    if fault.signal not in _SIGNALS:
        return False
    if fault.region is None:
        return _ADDRESS.fullmatch(fault.place) is not None
    if fault.region >= len(problem.regions):
        return False
    return -_AROUND_REGION <= int(fault.place) < problem.regions[fault.region].size_bytes + _AROUND_REGION


def _explain_fault(fault: Fault, problem: LoadedProblem, moment: Moment) -> str:
    how = f"killed by {_SIGNALS[fault.signal]} {moment.phase}, {'writing' if fault.is_write else 'reading'}"
    if fault.region is None:
        is_null = fault.place.removeprefix("0x") == "0"
        return f"{how} address {fault.place}{' (a null pointer; a failed allocation?)' if is_null else ''}"
    places = [place for place in problem.places if place.region == fault.region]
    spot = locate(places, int(fault.place), n_sets=problem.n_sets, called_set=moment.called_set)
    if fault.is_write and spot.is_inside and not problem.regions[fault.region].writable:
        return f"it wrote to {spot.words}, which is read-only"
    return f"{how} {spot.words}"
