"""Serve a judge: `python -m ridgeline.tools.judge.worker FD PARENT HANG_FD [--for-command-line]`.

The process answers on the socket FD that its parent passed it; `judge/messages.py` has the requests,
`judge/process.py` is the parent's handle. The answer to `load` carries the memory's descriptors. HANG_FD gets a report
when a part of the reference takes longer than its limit. The process ends when the socket closes or its parent dies.
"""

from __future__ import annotations

import array
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from typing import Any

import torch

from ridgeline.tools.errors import (
    BadReferenceError,
    ContentsRefusedError,
    EngineError,
    JudgeShortError,
    NoRoomError,
    RidgelineError,
    TrustedProcessLost,
)
from ridgeline.tools.judge import messages
from ridgeline.tools.judge.hang_limit import HangLimit
from ridgeline.tools.judge.messages import Load, MakeRoom, Request
from ridgeline.tools.judge.replies import Failed
from ridgeline.tools.judge.worker.judge import Judge
from ridgeline.tools.judge.worker.user_code import as_problem, named_line, place_in_reference
from ridgeline.tools.machine.lifeline import end_with_parent
from ridgeline.tools.records.codec import Record
from ridgeline.tools.records.told_error import ToldError
from ridgeline.tools.wording import FOR_COMMAND_LINE, worded_for_command_line

NOT_IN_REFERENCE = "no line of the reference was running then: please report this if the reference runs by itself"


def method_of(request: type[Request[Any]]) -> Callable[[Judge, Any], Record]:
    """Return the judge's method for a request, which has the operation's name; `load` has none: it makes the judge."""
    method: Callable[[Judge, Any], Record] = getattr(Judge, messages.operation(request))
    return method


def answered(request: Request[Any]) -> tuple[type[Exception], ...]:
    """Return the errors that are an answer, all others being defects. While a judge loads, the user's classes may raise any."""
    return (Exception,) if isinstance(request, Load) else (RidgelineError, MemoryError, RuntimeError)  # torch's own


def serve(connection: socket.socket, hang_fd: int) -> None:
    """Answer requests until the parent closes the socket."""
    judge: Judge | None = None
    for line in connection.makefile("rb"):
        request = messages.decode_request(line)
        try:
            if isinstance(request, Load):
                judge = Judge(request, limit=HangLimit(seconds=request.call_limit_s, report_fd=hang_fd))
                _answer(connection, judge.loaded(), [r.fd for r in judge.memory.regions])
                continue
            if judge is None:
                raise EngineError("the judge was asked before it loaded a problem")
            _answer(connection, answer(judge, request))
        except answered(request) as error:
            told = _lost_gpu(error, judge) or failure(error, request)
            _answer(connection, Failed(error=ToldError.of(told)))


def answer(judge: Judge, request: Request[Any]) -> Record:
    """Return the judge's answer; where memory runs out, that of another try without what can be made again."""
    method = method_of(type(request))
    try:
        return method(judge, request)
    except (torch.OutOfMemoryError, NoRoomError):
        pass  # and with it the frames that hold what was made so far
    judge.make_room(MakeRoom())
    return method(judge, request)


def _lost_gpu(error: Exception, judge: Judge | None) -> TrustedProcessLost | None:
    """Return the error when this process can no longer use the GPU, whatever failed first; else None."""
    try:
        if judge is not None:
            judge.memory.device.settle()
    except RuntimeError:
        return TrustedProcessLost(f"the judge lost the GPU: {named_line(error)}")
    return None


def failure(error: Exception, request: Request[Any]) -> RidgelineError:
    """Return what the parent is told of a request that an error ended.

    Only `load` finds a reference unusable, which ends a search; so do timed contents that the reference refuses. A
    reference that ran then and fails later (out of memory, a thread that cannot start) is the machine's fault, and worth
    another attempt.
    """
    known = error if isinstance(error, RidgelineError) else as_problem(error, named_line(error))
    if isinstance(request, Load):
        return known if known is error else _unforeseen(error, known)
    if isinstance(known, EngineError | ContentsRefusedError):
        return known
    said = f"{messages.operation(type(request))}: {known}"
    if isinstance(error, torch.OutOfMemoryError | NoRoomError):
        return JudgeShortError(said)
    return EngineError(said, was_killed=known.was_killed)


def _unforeseen(error: Exception, known: RidgelineError) -> RidgelineError:
    """Return what is told of an error that may be the reference's, the machine's or a defect of ours; the log has where."""
    traceback.print_exception(error)
    if isinstance(known, NoRoomError) or known.was_killed or place_in_reference(error):
        return known
    return BadReferenceError.of_text(f"{named_line(error)}; {NOT_IN_REFERENCE}")


def _answer(connection: socket.socket, reply: Record, fds: list[int] | None = None) -> None:
    data = messages.encode_reply(reply)
    sent = 0
    if fds:
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))]
        sent = connection.sendmsg([data], ancillary)
    connection.sendall(data[sent:])


def main() -> None:
    """Serve on the descriptor named by the first argument; die with the parent, whose pid is the second.

    A last one says that messages are for the command line.
    """
    end_with_parent(int(sys.argv[2]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is the parent's to handle
    with worded_for_command_line(is_so=FOR_COMMAND_LINE in sys.argv):
        serve(socket.socket(fileno=int(sys.argv[1])), int(sys.argv[3]))


if __name__ == "__main__":
    main()
