"""Reasons why a build's command left no library: by how it ended, and by its compiler's messages."""

from __future__ import annotations

import signal

from ridgeline.tools.build.messages import (
    NO_MESSAGE,
    explain_limit,
    explain_log,
    tells_of_cpu_limit,
    tells_of_error,
)
from ridgeline.tools.build.ninja_batch import BuildOutcome
from ridgeline.tools.build.recipe import Recipe
from ridgeline.tools.errors import EngineError
from ridgeline.tools.machine.kills import tells_of_kill
from ridgeline.tools.records.finding import Finding
from ridgeline.tools.records.vocabulary import ReasonCode
from ridgeline.tools.sandbox.process import Limit, parse_status

KILLED = "the compiler was killed: by the kernel, which was short of memory, or by somebody"
"""No limit of a build ends in SIGKILL: it refuses memory, or it is told in the status."""
_KILLED_CODE = 128 + signal.SIGKILL  # of nvcc, whose programs are run by a shell


class KilledError(EngineError):
    """SIGKILL that no limit sent ended a program of the compiler, which says nothing of the source."""


def find_failure(
    outcome: BuildOutcome, messages: str, log: str, recipe: Recipe, arch: str, *, file_bytes: int
) -> Finding:
    """Return why a command left no library; `log` is what is kept of its messages.

    `file_bytes` is what one of its files may have.

    Raises:
        KilledError: the compiler was killed.
        EngineError: the sandbox failed, which no source can cause.
    """
    if outcome.exit_code is None:
        last = outcome.log.rstrip().rsplit(b"\n", 1)[-1].decode(errors="replace")
        raise EngineError(f"a build could not be run: {last or 'no exit status'}")
    ended = parse_status(outcome.status, outcome.exit_code)
    if not ended.was_started:
        raise EngineError(f"a build could not be run: sandbox: {ended.message}")
    if tells_of_cpu_limit(log):
        return _too_long(f"the compiler was stopped after {recipe.cpu_s:g} s: simplify the source")
    if ended.limit is Limit.WALL:
        return _too_long(_unfinished(recipe))
    if ended.limit is not Limit.NONE:
        what = "the process that builds the file" if recipe.runs_source else "the compiler"
        return _failed(f"{what} was stopped: {ended.message.removeprefix('killed: ')}")
    if limit := explain_limit(log, file_bytes=file_bytes, memory_bytes=recipe.memory_bytes):
        return limit
    is_killed = ended.was_killed or ended.code == _KILLED_CODE or tells_of_kill(messages)
    if is_killed and not tells_of_error(messages):
        raise KilledError(KILLED)
    found = explain_log(log, recipe.entry, arch)
    if found.reason == NO_MESSAGE and recipe.runs_source:
        return _failed(f"the file ended the process that imports and builds it: {ended.message}")
    return found


def _unfinished(recipe: Recipe) -> str:
    """Return what is said where the clock ended a build: nothing tells a slow compiler from a file that sleeps."""
    if recipe.runs_source:
        steps = "it is imported, its ModelNew is made and what they compile is built"
        return f"the file did not come to an end within {recipe.wall_s:g} s, in which {steps}"
    return f"the compiler was stopped after {recipe.wall_s:g} s: simplify the source"


def _failed(reason: str) -> Finding:
    return Finding(code=ReasonCode.COMPILER_FAILED, reason=reason)


def _too_long(reason: str) -> Finding:
    return Finding(code=ReasonCode.COMPILER_TIMEOUT, reason=reason)
