"""Runs a batch of build commands side by side from one generated build.ninja.

ninja is trusted and unconfined; each command in the file is a sandboxed one. A command's exit status is written to an
output file, and ninja always sees success: no candidate stops another, and ninja's log has the time of each.
"""

from __future__ import annotations

import asyncio
import contextlib
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import ninja
from ninja import ninja_syntax

from ridgeline.tools.errors import EngineError

_TERM_GRACE_S = 3.0
_LOG_LIMIT_BYTES = 1 << 20
STATUS_FD = 3
"""The descriptor of each command's own file for status lines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildCommand:
    """One command of a batch; its messages and its status land in the batch's folder under its name."""

    name: str
    argv: tuple[str, ...]
    pool: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildOutcome:
    """Outcome of one command."""

    exit_code: int | None  # None: it never ran to an end
    status: tuple[str, ...]  # the lines that it wrote to STATUS_FD
    log: bytes
    seconds: float


async def run_batch(folder: Path, commands: Sequence[BuildCommand], pools: Mapping[str, int]) -> list[BuildOutcome]:
    """Run `commands` with at most `pools[name]` of each pool at once and return how each ended, in order.

    Cancelling ends every command.

    Raises:
        EngineError: ninja itself failed.
    """
    await asyncio.to_thread((folder / "build.ninja").write_text, _ninja_file(commands, pools), encoding="utf-8")
    await _run_ninja(folder, jobs=sum(pools.values()))
    return await asyncio.to_thread(_outcomes, folder, commands)


def _outcomes(folder: Path, commands: Sequence[BuildCommand]) -> list[BuildOutcome]:
    seconds = _durations(folder)
    return [_outcome(folder, command, seconds) for command in commands]


def _ninja_file(commands: Sequence[BuildCommand], pools: Mapping[str, int]) -> str:
    text = StringIO()
    # One line for each command, however long: ninja drops the spaces after a line break, inside quotes too.
    writer = ninja_syntax.Writer(text, width=sys.maxsize)  # type: ignore[arg-type]  # its stub calls a file a string
    writer.variable("ninja_required_version", "1.8")
    for name, depth in pools.items():
        writer.pool(name, depth)
    writer.rule("build", "$command", description="$out")
    for command in commands:
        writer.build([f"{command.name}.exit"], "build", pool=command.pool, variables={"command": _shell(command)})
    return text.getvalue()


def _shell(command: BuildCommand) -> str:
    """Return the shell line of one command, escaped for ninja."""
    name = command.name
    files = f"> {name}.log 2>&1 {STATUS_FD}> {name}.status < /dev/null"
    line = f"{shlex.join(command.argv)} {files}; echo $? > {name}.exit"
    if "\n" in line:
        raise EngineError(f"build command {name} holds a line break")
    return ninja_syntax.escape(line)


async def _run_ninja(folder: Path, jobs: int) -> None:
    program = Path(ninja.BIN_DIR) / "ninja"
    argv = [str(program), "-C", str(folder), "-k", "0", "-j", str(jobs), "--quiet"]
    setpriv = await asyncio.to_thread(shutil.which, "setpriv")
    if setpriv:  # a killed engine then leaves no builds behind
        argv = [setpriv, "--pdeathsig", "TERM", *argv]
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
    )
    try:
        # Cancelling the start would kill ninja, which may run commands by then and could no longer end them.
        process = await asyncio.shield(starting)
        output, _ = await process.communicate()
    except asyncio.CancelledError:
        await _stop(await starting)
        raise
    if process.returncode:
        said = output.decode(errors="replace").strip()[-400:]
        raise EngineError(f"ninja failed (status {process.returncode}){f': {said}' if said else ''}")


async def _stop(process: asyncio.subprocess.Process) -> None:
    """Ask ninja to end itself and its commands; kill it when it does not within the grace time."""
    if process.returncode is not None:
        return
    process.terminate()
    try:
        await asyncio.wait_for(process.wait(), _TERM_GRACE_S)
    except TimeoutError:
        process.kill()
        await process.wait()


def _outcome(folder: Path, command: BuildCommand, seconds: Mapping[str, float]) -> BuildOutcome:
    exit_code: int | None = None
    with contextlib.suppress(FileNotFoundError, ValueError):
        exit_code = int((folder / f"{command.name}.exit").read_text())
    return BuildOutcome(
        exit_code=exit_code,
        status=tuple(_beginning(folder / f"{command.name}.status").decode(errors="replace").splitlines()),
        log=_beginning(folder / f"{command.name}.log"),
        seconds=seconds.get(f"{command.name}.exit", 0.0),
    )


def _beginning(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_LOG_LIMIT_BYTES)
    except FileNotFoundError:
        return b""


def _durations(folder: Path) -> dict[str, float]:
    """Return how long each output took, from ninja's own log (columns: start ms, end ms, mtime, output, hash)."""
    durations: dict[str, float] = {}
    with contextlib.suppress(FileNotFoundError):
        for line in (folder / ".ninja_log").read_text().splitlines():
            columns = line.split("\t")
            if len(columns) >= 4 and not line.startswith("#"):
                durations[columns[3]] = (int(columns[1]) - int(columns[0])) / 1000
    return durations
