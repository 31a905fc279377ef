"""Loads one problem after the other into the real judge, each in a forked child that finds torch imported already.

One `Load` a line on standard input, as JSON; one JSON answer a line on standard output.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from typing import Any

import torch

from ridgeline.tools.judge.hang_limit import HangLimit
from ridgeline.tools.judge.messages import Load
from ridgeline.tools.judge.process import LOAD_LIMIT_S
from ridgeline.tools.judge.worker.__main__ import failure
from ridgeline.tools.judge.worker.judge import Judge
from ridgeline.tools.machine.lifeline import end_with_parent


def load(request: Load) -> dict[str, Any]:
    """Return what the judge says of a problem, or its refusal."""
    try:
        loaded = Judge(request, limit=HangLimit(seconds=request.call_limit_s)).loaded()
    except Exception as error:  # noqa: BLE001  the judge's own words for whatever a reference does
        return {"reason": str(failure(error, request)), "degenerate": "", "trials": 0}
    return {
        "reason": "",
        "degenerate": loaded.degenerate.code if loaded.degenerate else "",
        "trials": len(loaded.trials),
        "skipped": [f"{trial.name}: {trial.reason}" for trial in loaded.description.skipped_trials],
        "graph": loaded.description.graph_error or "exported",
    }


def forked(request: Load) -> dict[str, Any]:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        end_with_parent(None)
        os.dup2(2, 1)
        os.write(writing, json.dumps(load(request)).encode())
        os._exit(0)
    os.close(writing)
    until, text = time.monotonic() + LOAD_LIMIT_S, b""
    while select.select([reading], [], [], max(0.0, until - time.monotonic()))[0]:
        chunk = os.read(reading, 1 << 16)
        if not chunk:
            break
        text += chunk
    os.close(reading)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return json.loads(text) if text else {"reason": "the judge did not answer", "degenerate": "", "trials": 0}


def main() -> None:
    torch.set_num_threads(int(sys.argv[1]))
    torch.export.export(torch.nn.ReLU(), (torch.ones(2),)).run_decompositions()  # imports what each child would
    for line in sys.stdin:
        print(json.dumps(forked(Load.from_json(json.loads(line)))), flush=True)


if __name__ == "__main__":
    main()
