"""The engine's handle on one evaluator: a child process that answers one JSON line with another."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ridgeline.tools.engine import Task
from ridgeline.tools.errors import EngineError, EvaluatorKilled, TrustedProcessLost
from ridgeline.tools.machine.kills import killed_words
from ridgeline.tools.machine.lifeline import continue_stopped
from ridgeline.tools.machine.logs import logger_of
from ridgeline.tools.machine.python_env import python_command
from ridgeline.tools.records.problem import Device
from ridgeline.tools.records.told_error import ToldError
from ridgeline.tools.wording import own_wording

logger = logger_of(__name__)

_LONGEST_LINE_BYTES = 256 << 20  # a description carries the reference's whole graph
_LOOK_EVERY_S = 0.5
_END_GRACE_S = 1.0  # between the end of an evaluator's pipes and its own
_CLOSE_GRACE_S = 5.0  # for the evaluator to end its judge and runners


def evaluator_command(device: Device) -> list[str]:
    """Return the command of one device's evaluator."""
    words = ("--device", json.dumps(device.to_json()), "--parent", str(os.getpid()))
    return [*python_command("local", *words, *own_wording())]


class EvaluatorProcess:
    """One evaluator: started at the first request, and again at the next one when it has died; one request at a time."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], log: Path | None) -> None:
        self._command = list(command)
        self._environment = dict(environment)
        self._log = log
        self._process: asyncio.subprocess.Process | None = None
        self._sent = 0
        self._is_closed = False

    async def ask(self, task: Task[Any], timeout_s: float) -> dict[str, Any]:
        """Return the JSON of the task's result.

        A request that is cancelled or too late ends the evaluator, with everything it runs.

        Raises:
            InputError: the evaluator found a fault that the user can mend.
            EngineError: the evaluator died, was too late or broke the protocol, or it is closed.
        """
        process = await self._started()
        self._sent += 1
        request = {"id": self._sent, "task": task.name, "body": task.to_json()}
        try:
            async with asyncio.timeout(timeout_s):
                reply = await _exchange(process, request)
        except TimeoutError as error:
            await self.end()
            raise EngineError(f"{request['task']}: the evaluator did not answer within {timeout_s:g} s") from error
        except (asyncio.CancelledError, EngineError):
            await self.end()
            raise
        if "error" in reply:
            raise ToldError.from_json(reply["error"]).as_exception()
        result: dict[str, Any] = reply["result"]
        return result

    async def end(self) -> None:
        """End the evaluator and wait until it is gone; its children end with it."""
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await _gone(process)

    async def close(self) -> None:
        """Close the evaluator's input, at which it ends by itself; end it when it takes longer than the grace period.

        No request starts it again: one that waited for its turn until now is refused.
        """
        self._is_closed = True
        if self._process is not None and self._process.stdin is not None and self._process.returncode is None:
            self._process.stdin.close()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), _CLOSE_GRACE_S)
        await self.end()

    async def _started(self) -> asyncio.subprocess.Process:
        self._expect_open()
        if self._process is not None and self._process.returncode is None:
            return self._process
        await self.end()
        stderr = self._log.open("ab") if self._log else subprocess.DEVNULL
        try:
            self._process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=self._environment,
                cwd="/",
                start_new_session=True,  # a Ctrl-C is for the driver, which then decides
                limit=_LONGEST_LINE_BYTES,
            )
        finally:
            if not isinstance(stderr, int):
                stderr.close()
        if self._is_closed:  # while it was started
            await self.end()
        self._expect_open()
        return self._process

    def _expect_open(self) -> None:
        if self._is_closed:
            raise EngineError("the engine is closed")


async def _gone(process: asyncio.subprocess.Process) -> None:
    """Wait until a killed process is gone; a cancellation meanwhile is raised then, or after a grace period.

    The second of two cancellations would leave it behind for a loop that is closed by then, which asyncio prints.
    """
    cancelled: asyncio.CancelledError | None = None
    until: float | None = None
    while process.returncode is None:
        try:
            async with asyncio.timeout_at(until):
                await process.wait()
        except TimeoutError:
            break
        except asyncio.CancelledError as error:
            cancelled, until = error, until or asyncio.get_running_loop().time() + _CLOSE_GRACE_S
    if cancelled is not None:
        raise cancelled


@contextlib.asynccontextmanager
async def _going_on(pid: int) -> AsyncIterator[None]:
    """Let the evaluator go on where a reference, in the judge below it, stops it."""

    async def watch() -> None:
        while True:
            await asyncio.sleep(_LOOK_EVERY_S)
            continue_stopped(pid)

    watching = asyncio.ensure_future(watch())
    try:
        yield
    finally:
        watching.cancel()


async def _exchange(process: asyncio.subprocess.Process, request: dict[str, Any]) -> dict[str, Any]:
    if process.stdin is None or process.stdout is None:
        raise EngineError("the evaluator was started without pipes")
    try:
        process.stdin.write(json.dumps(request).encode() + b"\n")
        await process.stdin.drain()
        async with _going_on(process.pid):
            line = await process.stdout.readline()
    except (BrokenPipeError, ConnectionResetError, ValueError) as error:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), _END_GRACE_S)
        raise _loss(request["task"], process.returncode, f"broke off: {error}") from error
    if not line.endswith(b"\n"):
        code = await process.wait()
        raise _loss(request["task"], code, f"ended with status {code}")
    return _parse(line, request["id"])


def _loss(task: str, code: int | None, how: str) -> TrustedProcessLost:
    """Return the error of an evaluator that went away; `code` is its status, None while it is there."""
    killed = killed_words(code)
    if killed is not None:
        return EvaluatorKilled(f"the evaluator {killed}")
    return TrustedProcessLost(f"{task}: the evaluator {how}")


def _parse(line: bytes, expected_id: int) -> dict[str, Any]:
    try:
        reply = json.loads(line)
        is_whole = reply["id"] == expected_id and ("result" in reply) != ("error" in reply)
    except (ValueError, KeyError, TypeError) as error:
        raise EngineError(f"the evaluator answered with {line[:200]!r}") from error
    if not is_whole:
        raise EngineError(f"the evaluator answered request {expected_id} with {line[:200]!r}")
    parsed: dict[str, Any] = reply
    return parsed
