"""Serve a judge: `python -m ridgeline.tools.judge.worker FD PARENT`.

The process answers JSON lines on the socket FD that its parent passed it (`judge/process.py` is the parent's handle).
Each request is `{"op": name, …}`; each answer is the operation's result, or `{"error": {"type", "message"}}`. The answer
to `load` carries the arena's descriptors. The process ends when the socket closes or its parent dies.
"""

from __future__ import annotations

import array
import json
import signal
import socket
import sys
from collections.abc import Callable

from ridgeline.tools.errors import EngineError, JudgeCrashed, ProblemError, RidgelineError
from ridgeline.tools.judge.worker.device import (
    remedy_for_memory,
    settle,
)
from ridgeline.tools.judge.worker.judge import ContentsRefusedError, Judge, Reply, Request
from ridgeline.tools.judge.worker.user_code import one_line
from ridgeline.tools.machine.lifeline import end_with_parent

OPERATIONS: dict[str, Callable[[Judge, Request], Reply]] = {
    "wipe": Judge.wipe,
    "prepare": Judge.prepare,
    "poison": Judge.poison,
    "examine": Judge.examine,
    "repeated": Judge.repeated,
    "changed": Judge.changed,
    "renew": Judge.renew,
    "intact": Judge.intact,
    "copy": Judge.copy,
    "idle": Judge.idle,
    "check": Judge.check,
    "prepare_mode": Judge.prepare_mode,
    "loop": Judge.loop,
}


def serve(connection: socket.socket) -> None:
    """Answer requests until the parent closes the socket."""
    judge: Judge | None = None
    for line in connection.makefile("r", encoding="utf-8"):
        request = json.loads(line)
        try:
            if request["op"] == "load":
                judge = Judge(request)
                _answer(connection, judge.loaded(), [r.fd for r in judge.memory.regions])
                continue
            if judge is None:
                raise EngineError("the judge was asked before it loaded a problem")
            _answer(connection, OPERATIONS[request["op"]](judge, request))
        except (RidgelineError, MemoryError, RuntimeError) as error:  # RuntimeError is torch's for all of its own
            _answer(connection, {"error": _lost_gpu(error, judge) or _described(error, request["op"])})


def _lost_gpu(error: Exception, judge: Judge | None) -> dict[str, str]:
    """Return the error for the parent when this process can use the GPU no more, whatever failed first; else {}."""
    try:
        if judge is not None:
            settle(judge.memory.kind)
    except RuntimeError:
        return {"type": JudgeCrashed.__name__, "message": f"the judge lost the GPU: {one_line(error)}"}
    return {}


def _described(error: Exception, op: str) -> dict[str, str]:
    """Return the error's class and message for the parent.

    Only `load` can find the reference unusable, which ends a search, or timed contents that it refuses. One that ran
    then and fails later (out of memory, a thread that cannot start) is the machine's fault and worth another attempt.
    """
    if isinstance(error, EngineError):
        return {"type": type(error).__name__, "message": str(error)}
    known = isinstance(error, RidgelineError)
    message = str(error) if known else f"reference: {one_line(error)}{remedy_for_memory(error)}"
    if isinstance(error, ContentsRefusedError):
        return {"type": ProblemError.__name__, "message": message}
    if op == "load":
        kind = type(error) if known else ProblemError
        return {"type": kind.__name__, "message": message}
    return {"type": EngineError.__name__, "message": f"{op}: {message}"}


def _answer(connection: socket.socket, reply: Reply, fds: list[int] | None = None) -> None:
    data = (json.dumps(reply, allow_nan=False) + "\n").encode()
    sent = 0
    if fds:
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))]
        sent = connection.sendmsg([data], ancillary)
    connection.sendall(data[sent:])


def main() -> None:
    """Serve on the descriptor named by the first argument; die with the parent, whose pid is the second."""
    end_with_parent(int(sys.argv[2]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is the parent's to handle
    serve(socket.socket(fileno=int(sys.argv[1])))


if __name__ == "__main__":
    main()
