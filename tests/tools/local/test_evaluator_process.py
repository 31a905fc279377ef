"""The handle on an evaluator, whose process is a real one."""

from __future__ import annotations

import asyncio
import os
import sys

import pytest
from tests.tools.conftest import exp_problem

from ridgeline.tools.engine import DescribeTask
from ridgeline.tools.local.evaluator_process import EvaluatorProcess


async def test_a_request_that_is_cancelled_twice_leaves_no_process_that_nobody_waits_for() -> None:
    evaluator = EvaluatorProcess([sys.executable, "-S", "-c", "import time; time.sleep(60)"], os.environ, None)
    asking = asyncio.ensure_future(evaluator.ask(DescribeTask(problem=exp_problem()), 60.0))
    while (process := evaluator._process) is None:
        await asyncio.sleep(0.01)
    for _ in range(2):
        asking.cancel()
        await asyncio.sleep(0)  # it is killed, and waited for
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert process.returncode == -9
