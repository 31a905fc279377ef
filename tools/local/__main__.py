"""Serve one device slot: `python -m ridgeline.tools.local --device JSON --parent PID`, requests on stdin, answers on stdout."""

from __future__ import annotations

import argparse
import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import IO, Any

from ridgeline.tools.engine import BaselineTask, BenchmarkTask, CompareTask, DescribeTask, ProfileTask, Task, VerifyTask
from ridgeline.tools.errors import JudgeCrashed, RidgelineError
from ridgeline.tools.local.evaluator import Evaluator, logger
from ridgeline.tools.machine.lifeline import end_with_parent
from ridgeline.tools.machine.os_errors import LOG_FORMAT, as_told
from ridgeline.tools.records.codec import Record
from ridgeline.tools.records.problem import Device

_TASKS: dict[str, tuple[type[Task[Any]], Callable[[Evaluator, Any], Record]]] = {
    "DescribeTask": (DescribeTask, Evaluator.describe),
    "BaselineTask": (BaselineTask, Evaluator.baseline),
    "VerifyTask": (VerifyTask, Evaluator.verify),
    "BenchmarkTask": (BenchmarkTask, Evaluator.benchmark),
    "CompareTask": (CompareTask, Evaluator.compare),
    "ProfileTask": (ProfileTask, Evaluator.profile),
}


# What this process itself may run into: a full disk, a program that hangs, a figure nobody expected. One task's
# failure must not end the device's evaluator; a fault in its logic (TypeError, AttributeError, …) still does.
_OURS = (subprocess.SubprocessError, ValueError)


def answer(evaluator: Evaluator, request: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to one request; what can be wrong with machine or problem comes back as an error."""
    try:
        kind, handle = _TASKS[request["task"]]
        return {"id": request["id"], "result": handle(evaluator, kind.from_json(request["body"])).to_json()}
    except (RidgelineError, OSError, *_OURS) as error:
        if not isinstance(error, RidgelineError):
            logger.exception("%s failed", request.get("task"))
        if not isinstance(error, RidgelineError) or isinstance(error, JudgeCrashed):
            evaluator.forget_judge()  # whatever state it is in
        told = as_told(error, request.get("task"))
        return {"id": request["id"], "error": {"type": type(told).__name__, "message": str(told)}}


def serve(evaluator: Evaluator, requests: IO[str], answers: IO[str]) -> None:
    """Answer requests until there are no more."""
    for line in requests:
        answers.write(json.dumps(answer(evaluator, json.loads(line))) + "\n")
        answers.flush()


def main() -> None:
    """Serve one device on stdin and stdout."""
    parser = argparse.ArgumentParser(prog="ridgeline.tools.local", description="one device slot, for the engine")
    parser.add_argument("--device", required=True, help="the device as JSON")
    parser.add_argument("--parent", type=int, help="the pid of the engine, with which this process ends")
    arguments = parser.parse_args()
    end_with_parent(arguments.parent)
    device = Device.from_json(json.loads(arguments.device))
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format=LOG_FORMAT)
    logging.getLogger("ridgeline").setLevel(logging.INFO)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is the search's to handle: it closes stdin when it is done
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # nothing else may print between the answers
    evaluator = Evaluator(device)
    try:
        serve(evaluator, sys.stdin, answers)
    finally:
        evaluator.close()


if __name__ == "__main__":
    main()
