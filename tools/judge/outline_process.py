"""The parent's handle on the process that outlines references (no torch here)."""

from __future__ import annotations

import json
import os
import select
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from ridgeline.tools.errors import EngineError
from ridgeline.tools.judge.memory_check import in_gb, smaller_sizes
from ridgeline.tools.judge.outline import LIMIT_S, MEMORY_BYTES, RUN_LIMIT_S, Outline, OutlineRequest
from ridgeline.tools.machine.lifeline import GroupProcess, continue_stopped
from ridgeline.tools.machine.places import default_cache_dir, why_unwritable
from ridgeline.tools.machine.python_env import clean_environment, python_command, python_path
from ridgeline.tools.records.problem import Device
from ridgeline.tools.records.vocabulary import PrecisionClass

TELL_AFTER_S = 10.0
"""A wait for one reference of which a person is told: the first one waits for the import of torch too."""
_LOOK_EVERY_S = 0.25
_GRACE_S = 120.0  # of the process beyond a reference's limit: the first answer waits for the import of torch


class OutlineProcess:
    """A process that outlines one reference after the other; ends with the block and with this process, as do its children."""

    def __init__(
        self,
        *,
        limit_s: float = LIMIT_S,
        memory_bytes: int = MEMORY_BYTES,
        with_graphs: bool = False,
        with_calls: bool = False,
        niceness: int = 0,
        on_wait: Callable[[float], object] = lambda _left_s: None,
    ) -> None:
        """Start the process, which imports torch for seconds; each reference then takes a fraction of one.

        `limit_s` and `memory_bytes` hold for each reference; `with_graphs` describes each too, `with_calls` says how it is
        called; `niceness` is that of nice(1). `on_wait` is called once of a reference that takes long, with the seconds
        that it may still take.
        """
        self._terms = OutlineRequest(
            source="", limit_s=limit_s, memory_bytes=memory_bytes, with_graph=with_graphs, with_call=with_calls
        )
        self._on_wait = on_wait
        self._process: GroupProcess[str] = GroupProcess(
            python_command("judge.worker.outline_main", str(os.getpid()), *(["--graphs"] if with_graphs else [])),
            env=_environment(default_cache_dir()),
            cwd="/",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        if niceness:
            os.setpriority(os.PRIO_PROCESS, self._process.pid, niceness)

    def outline(
        self, reference_source: str, tolerance: PrecisionClass = PrecisionClass.FP32, *, with_run: bool = False
    ) -> Outline:
        """Return what can be told of a reference without running it for real.

        With `with_run` one that reads values runs for real on the CPU, for RUN_LIMIT_S at most, to tell what raises.

        Raises:
            EngineError: the process went away, or did not answer.
        """
        assert self._process.stdin is not None  # noqa: S101  both are pipes
        assert self._process.stdout is not None  # noqa: S101
        request = replace(self._terms, source=reference_source, tolerance=tolerance, with_run=with_run)
        try:
            self._process.stdin.write(json.dumps(request.to_json()) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # the empty line below says the same
        self._await_answer(self._process.stdout, request.limit_s + (RUN_LIMIT_S if with_run else 0.0))
        line = self._process.stdout.readline()
        if not line:
            raise EngineError(f"the process that outlines references ended with status {self._process.wait()}")
        return Outline.from_json(json.loads(line))

    def _await_answer(self, answers: IO[str], limit_s: float) -> None:
        """Return once there is an answer, or the end of answers; a process that a reference stopped goes on.

        The process keeps to the limit itself, unless a process that the reference started stops it again and again.
        """
        since, is_told = time.monotonic(), False
        while not select.select([answers], [], [], _LOOK_EVERY_S)[0]:
            continue_stopped(self._process.pid)
            waited_s = time.monotonic() - since
            if waited_s > TELL_AFTER_S and not is_told:
                is_told = True
                self._on_wait(limit_s)
            if waited_s > limit_s + _GRACE_S:
                self._process.kill()
                raise EngineError("the process that outlines references did not answer: it is stopped again and again")

    def close(self) -> None:
        """End the process; its children end with it."""
        self._process.kill()
        self._process.communicate()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def _environment(cache_dir: Path) -> dict[str, str]:
    """Return a judge's environment, without a key of a provider's, and with a judge's folder for what PyTorch keeps.

    Without that PyTorch makes one beside the temporary files, and leaves it there.
    """
    own = {"PYTHONPATH": python_path(), "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
    if not why_unwritable(cache_dir):  # else PyTorch would fail to make its folder, where nothing has to be kept
        own["TORCHINDUCTOR_CACHE_DIR"] = str(cache_dir / "inductor")
    return clean_environment(os.environ, cache_dir=cache_dir) | own


def explain_no_room(reference_source: str, tolerance: PrecisionClass, device: Device) -> str:
    """Return how much memory judging takes, for a reference for which it ran out; "" when that is not the reason."""
    with OutlineProcess() as outlines:
        found = outlines.outline(reference_source, tolerance)
    needed = found.judge_bytes(device) if found.signature else 0
    if needed <= device.memory_bytes:
        return ""
    return smaller_sizes(device.kind, f"about {in_gb(needed)}", device.memory_bytes)
