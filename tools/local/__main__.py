"""Serve one device: `python -m ridgeline.tools.local --device JSON --parent PID`.

Requests are JSON lines on stdin, `{"id", "task", "body"}`. Answers are JSON lines on stdout, `{"id", "result"}` or
`{"id", "error": {"type", "message"}}`. The process ends when stdin closes or the parent dies, and with it the judge and
every runner.
"""

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

from ridgeline.tools.engine import (
    BaselineTask,
    BenchmarkTask,
    CompareTask,
    DescribeTask,
    NextBaselineTask,
    ProfileTask,
    Task,
    VerifyTask,
)
from ridgeline.tools.errors import RidgelineError, TrustedProcessLost
from ridgeline.tools.local.evaluator import Evaluator
from ridgeline.tools.machine.lifeline import end_with_parent
from ridgeline.tools.machine.os_errors import LOG_FORMAT, as_told
from ridgeline.tools.records.codec import Record
from ridgeline.tools.records.problem import Device
from ridgeline.tools.records.told_error import ToldError
from ridgeline.tools.wording import FOR_COMMAND_LINE, worded_for_command_line

logger = logging.getLogger("ridgeline.tools.local")  # run as a program, this module is "__main__"

_TASKS: dict[str, tuple[type[Task[Any]], Callable[[Evaluator, Any], Record]]] = {
    DescribeTask.name: (DescribeTask, Evaluator.describe),
    BaselineTask.name: (BaselineTask, Evaluator.baseline),
    NextBaselineTask.name: (NextBaselineTask, Evaluator.next_baseline),
    VerifyTask.name: (VerifyTask, Evaluator.verify),
    BenchmarkTask.name: (BenchmarkTask, Evaluator.benchmark),
    CompareTask.name: (CompareTask, Evaluator.compare),
    ProfileTask.name: (ProfileTask, Evaluator.profile),
}

# A full disk, a program that hangs or an unexpected figure fails one task and must not end the device's evaluator. A
# fault of logic (TypeError, AttributeError, …) ends the evaluator.
_MACHINE_FAULTS = (OSError, subprocess.SubprocessError, ValueError)


def answer(evaluator: Evaluator, request: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to one request; a fault of the machine or of the problem is an answer with an error."""
    try:
        kind, handle = _TASKS[request["task"]]
        return {"id": request["id"], "result": handle(evaluator, kind.from_json(request["body"])).to_json()}
    except RidgelineError as error:
        told = error
        if isinstance(error, TrustedProcessLost):
            evaluator.forget_judge()
    except _MACHINE_FAULTS as error:
        logger.exception("%s failed", request.get("task"))
        told = as_told(error, request.get("task"))
        evaluator.forget_judge()  # its state is unknown
    return {"id": request["id"], "error": ToldError.of(told).to_json()}


def serve(evaluator: Evaluator, requests: IO[str], answers: IO[str]) -> None:
    """Answer requests until there are no more."""
    for line in requests:
        answers.write(json.dumps(answer(evaluator, json.loads(line))) + "\n")
        answers.flush()


def main() -> None:
    """Serve one device on stdin and stdout."""
    parser = argparse.ArgumentParser(prog="ridgeline.tools.local", description="one device, for the engine")
    parser.add_argument("--device", required=True, help="the device as JSON")
    parser.add_argument("--parent", type=int, help="the pid of the engine, with which this process ends")
    parser.add_argument(FOR_COMMAND_LINE, action="store_true", help="name options in messages, not arguments")
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
        with worded_for_command_line(is_so=arguments.for_command_line):
            serve(evaluator, sys.stdin, answers)
    finally:
        evaluator.close()


if __name__ == "__main__":
    main()
