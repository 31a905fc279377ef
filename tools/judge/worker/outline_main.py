"""Outline a reference: its signature, its bytes and what keeps it from being judged, without its memory or its time.

The reference runs on PyTorch's fake tensors, which have shapes and no values. So a problem of 100 GiB is described in a
second on any machine. Only the judge can tell what depends on values: a degenerate output, a NaN, results that differ.
Where the reference itself reads values, and that is asked for, it runs for real once, so that one that raises is told.

`python -m ridgeline.tools.judge.worker.outline_main PARENT` answers one JSON line for each on its standard input;
`judge/outline_process.py` is the parent's handle. Each reference runs in a forked child of its own, since it may end its
process or never end.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import select
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import IO

import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorMode,
    UnsupportedFakeTensorException,
    UnsupportedOperatorException,
    unset_fake_temporarily,
)

from ridgeline.problems.own_state import changes_own
from ridgeline.tools.errors import NoRoomError, ProblemError, without_name
from ridgeline.tools.judge.hang_limit import HangLimit, hung_line
from ridgeline.tools.judge.outline import RUN_LIMIT_S, Outline, OutlineCode, OutlineRequest
from ridgeline.tools.judge.worker.call_watch import CallWatch
from ridgeline.tools.judge.worker.description import describe
from ridgeline.tools.judge.worker.domain.usable import check_usable, refuse_empty
from ridgeline.tools.judge.worker.reference import Reference
from ridgeline.tools.judge.worker.user_code import FILE as _FILE
from ridgeline.tools.judge.worker.user_code import lacks_a_gpu
from ridgeline.tools.machine.lifeline import end_with_parent
from ridgeline.tools.records.precision import accepted_classes
from ridgeline.tools.records.vocabulary import PrecisionClass, Role

_NEEDS_VALUES = (DataDependentOutputException, DynamicOutputShapeException, UnsupportedFakeTensorException)
_LAZY = "UninitializedParameter"
"""What fake tensors cannot make, and torch names in its error; a model that is made for real has them."""
_SHAPES = "; where a result has another shape for other values, a run refuses it: a kernel takes one form"
_SAID_BYTES = 4000
_OWN = b"\noutline: "
"""The beginning of a child's answer: a reference may write to the pipe too, as to any descriptor that it did not open."""
_FIRST = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return x @ x
def get_inputs():
    return [torch.rand(2, 2)]
"""


class _FakeReference(Reference):
    """A reference of fake tensors, which know no `.to()` of a module, nor values; they are where they are made."""

    def _place_model(self) -> None:
        pass

    def _is_same(self, copy: torch.Tensor, was: torch.Tensor) -> bool:
        return copy._version == 0  # there are no values to compare


class _RealModelReference(_FakeReference):
    """One whose constructor reads values (`torch.linspace(…).item()`): its model is made for real."""

    def _make_model(self) -> torch.nn.Module:
        with unset_fake_temporarily():
            return super()._make_model()


def outline(
    source: str,
    tolerance: PrecisionClass,
    *,
    with_graph: bool = False,
    with_call: bool = False,
    limit: HangLimit | None = None,
) -> Outline:
    """Return the signature and the peak bytes of one forward, and its graph and its call if asked; or why not."""
    asked = {"with_graph": with_graph, "with_call": with_call}
    limit = limit or HangLimit()
    try:
        try:
            return _outline(_FakeReference, source, tolerance, limit, **asked)
        except ProblemError as error:
            if not (isinstance(error.__cause__, _NEEDS_VALUES) or _LAZY in str(error.__cause__)):
                raise
            return _outline(_RealModelReference, source, tolerance, limit, **asked)
    except ProblemError as error:
        return _refused(error)


def _outline(
    kind: type[Reference],
    source: str,
    tolerance: PrecisionClass,
    limit: HangLimit,
    *,
    with_graph: bool,
    with_call: bool,
) -> Outline:
    with FakeTensorMode(allow_non_fake_inputs=True):
        reference = kind(source, limit=limit)
        outputs = reference.signature.with_role(Role.OUTPUT)
        refuse_empty(output.shape for output in outputs)
        accepted_classes(tolerance, tuple(s.dtype for s in outputs))
        inputs = reference.draw_inputs(1)
        state = reference.named_tensors()
        versions = _versions(state)
        watch = CallWatch((*inputs, *state.values()))
        with watch:
            reference.run(inputs)
        changed = [name for name, version in _versions(state).items() if version != versions[name]]
    code, reason = _objection(watch.random, changed)
    return Outline(
        code=code,
        reason=reason,
        signature=reference.signature,
        description=describe(reference, inputs, source) if with_graph else None,
        call=reference.call_form() if with_call else None,
        forward_bytes=watch.peak_bytes,
    )


def _versions(tensors: Mapping[str, torch.Tensor]) -> dict[str, int]:
    """Return how often each was written in place."""
    return {name: t._version for name, t in tensors.items()}


def _objection(random: list[str], changed: list[str]) -> tuple[OutlineCode, str]:
    """Return the code and the reason of what a call did that cannot be judged."""
    if random:
        return OutlineCode.RANDOM, f"forward() draws random numbers ({', '.join(sorted(set(random)))}): two runs differ"
    return (OutlineCode.STATE, changes_own(changed[0])) if changed else (OutlineCode.NONE, "")


def _refused(error: ProblemError) -> Outline:
    """Return what the judge would say, with a code to count it by."""
    text = without_name(error)
    cause = error.__cause__
    if isinstance(cause, ImportError):
        return Outline(code=OutlineCode.PACKAGE, reason=text)
    if isinstance(cause, UnsupportedOperatorException):  # of fake tensors
        return Outline(code=OutlineCode.VALUES, reason=f"only the judge can tell: {text}")
    if isinstance(cause, _NEEDS_VALUES):
        shapes = _SHAPES if isinstance(cause, DynamicOutputShapeException) else ""
        return Outline(code=OutlineCode.VALUES, reason=f"depends on values, so only the judge can tell: {text}{shapes}")
    if isinstance(error, NoRoomError):
        return Outline(code=OutlineCode.MEMORY, reason=text)
    return Outline(code=OutlineCode.FORM if cause is None else OutlineCode.RAISED, reason=text)


# --------------------------------------------------------------------------------------------------------- processes


def _answer(request: OutlineRequest) -> Outline:
    """Return the outline; of a reference that reads values what a run for real has against it, if that was asked for."""
    found = _understood(request, _in_child(request, _outlined, request.limit_s))
    if found.code is not OutlineCode.VALUES or not request.with_run:
        return found
    ran = _answered(_in_child(request, _run, RUN_LIMIT_S))
    return found if ran is None or ran.code in (OutlineCode.NONE, OutlineCode.MEMORY) else ran


def _outlined(request: OutlineRequest, limit: HangLimit) -> Outline:
    asked = {"with_graph": request.with_graph, "with_call": request.with_call}
    return outline(request.source, request.tolerance, **asked, limit=limit)


def _run(request: OutlineRequest, limit: HangLimit) -> Outline:
    """Return what speaks against a reference that runs for real; its signature is left to the judge, as is float64."""
    try:
        reference = Reference(request.source, limit=limit)
        check_usable(reference, in_double=False)
    except ProblemError as error:
        refused = _refused(error)
        return replace(refused, code=OutlineCode.GPU) if lacks_a_gpu(error.__cause__) else refused
    return Outline()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Told:
    """All that a child left: what it wrote before its pipe was closed, None where that took too long, and its reports."""

    written: bytes | None
    said: str
    hang_report: str


def _in_child(request: OutlineRequest, work: Callable[[OutlineRequest, HangLimit], Outline], limit_s: float) -> _Told:
    """Work in a child that may crash, hang or print; the answer comes through a pipe."""
    reading, writing = os.pipe()
    with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as hang_report:
        child = os.fork()
        if child == 0:
            os.close(reading)
            _work(request, work, writing, said.fileno(), hang_report.fileno())
        os.close(writing)
        with _ended(child, reading):
            written = _read(reading, limit_s)
        return _Told(written=written, said=_end_of(said), hang_report=_end_of(hang_report))


def _end_of(file: IO[bytes]) -> str:
    file.seek(0, os.SEEK_END)
    file.seek(max(0, file.tell() - _SAID_BYTES))
    return file.read().decode(errors="replace")


@contextlib.contextmanager
def _ended(child: int, descriptor: int) -> Iterator[None]:
    try:
        yield
    finally:
        os.close(descriptor)
        os.kill(child, signal.SIGKILL)  # not waited for yet: the number is still its own
        os.waitpid(child, 0)


def _work(
    request: OutlineRequest,
    work: Callable[[OutlineRequest, HangLimit], Outline],
    writing: int,
    said: int,
    hang_report: int,
) -> None:
    try:
        end_with_parent(None)
        quiet = os.open(os.devnull, os.O_RDWR)
        os.dup2(quiet, 0)
        os.dup2(quiet, 1)
        os.dup2(said, 2)
        _limit_memory(request.memory_bytes)
        warnings.simplefilter("ignore")
        answer = work(request, HangLimit(seconds=request.step_limit_s, report_fd=hang_report))
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(_OWN + json.dumps(answer.to_json()).encode() + b"\n")
    except Exception:  # noqa: BLE001  the parent quotes the last line of what is said here
        traceback.print_exc()
    finally:
        os._exit(0)


def _limit_memory(limit_bytes: int) -> None:
    """Limit private memory; what PyTorch has mapped already is not counted."""
    with open("/proc/self/statm", encoding="ascii") as file:
        used = int(file.read().split()[5]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_DATA, (used + limit_bytes, used + limit_bytes))


def _read(descriptor: int, limit_s: float) -> bytes | None:
    """Return what was written up to the child's answer, or until its end was closed; None when that took too long.

    A process that the reference started may hold the end open.
    """
    until, data = time.monotonic() + limit_s, b""
    while True:
        ready, _, _ = select.select([descriptor], [], [], max(0.0, until - time.monotonic()))
        if not ready:
            return None
        chunk = os.read(descriptor, 1 << 16)
        data += chunk
        if not chunk or _own_line(data) is not None:
            return data


def _own_line(data: bytes) -> bytes | None:
    """Return the child's answer among what was written, None before it is there whole."""
    answer, is_whole, _ = data.partition(_OWN)[2].partition(b"\n")
    return answer if is_whole else None


def _answered(told: _Told) -> Outline | None:
    """Return the child's own answer, None where it ended without one."""
    answer = _own_line(told.written or b"")
    if answer is not None:
        with contextlib.suppress(AttributeError, KeyError, TypeError, ValueError):  # the reference's, in the same words
            return Outline.from_json(json.loads(answer))
    return None


def _understood(request: OutlineRequest, told: _Told) -> Outline:
    answer = _answered(told)
    if answer is not None:
        return answer
    where = hung_line(told.hang_report, _FILE)
    if where is not None:
        reason = (
            f"{where or 'it'} did not end within {request.step_limit_s:.0f} s, even on tensors without values; "
            "mend an endless loop, or make its sizes smaller"
        )
        return Outline(code=OutlineCode.HUNG, reason=reason)
    if told.written is None:
        return Outline(code=OutlineCode.TIME, reason=f"not outlined within {request.limit_s:.0f} s")
    last = told.said.strip().splitlines()[-1:]
    how = f"; it last said: {last[0]}" if last else ""
    return Outline(code=OutlineCode.RAISED, reason=f"it ended the process that ran it{how}")


def main() -> None:
    """Answer requests until the parent closes the pipe; die with the parent, whose pid is the first argument."""
    end_with_parent(int(sys.argv[1]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is the parent's to handle
    # imports what the children would each import for a second
    outline(_FIRST, PrecisionClass.FP32, with_graph="--graphs" in sys.argv)
    for line in sys.stdin:
        answer = _answer(OutlineRequest.from_json(json.loads(line)))
        sys.stdout.write(json.dumps(answer.to_json()) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
