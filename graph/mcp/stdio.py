"""The server on standard input and output, as a client starts it.

Standard output is the protocol. So the process's descriptors 0 and 1 are taken away from everything else before anything
runs: what a library or a process prints goes to standard error, and nothing but the server reads the client's lines.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator
from typing import IO, cast

import anyio
from mcp.server.stdio import stdio_server

from ridgeline.graph.mcp.config import ServerConfig
from ridgeline.graph.mcp.messages import MOST_BYTES, refusal_line
from ridgeline.graph.mcp.server import RidgelineServer
from ridgeline.tools.errors import InputError

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def serve_stdio(config: ServerConfig) -> int:
    """Serve one client until it closes standard input or a signal comes; return the exit code.

    A kernel that is being judged then is given up with its processes. Searches go on.
    """
    given, taken = _take_over()
    server = RidgelineServer(config)
    replies = open(taken, "w", encoding="utf-8", newline="\n")  # noqa: SIM115  # closed where its reader may be gone
    try:
        with open(given, "rb", buffering=0) as lines:
            return asyncio.run(_serve(server, lines, replies))
    finally:
        with contextlib.suppress(BrokenPipeError):  # what is still buffered for a client that went away
            replies.close()


def _take_over() -> tuple[int, int]:
    """Return descriptors of the client's streams that no other process gets."""
    given, taken = os.dup(0), os.dup(1)  # closed on exec, as all that dup returns
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return given, taken


async def _serve(server: RidgelineServer, given: IO[bytes], taken: IO[str]) -> int:
    """Serve until the client or a signal ends it."""
    loop = asyncio.get_running_loop()
    serving = loop.create_task(_session(server, given, taken))
    received: list[int] = []

    def end(number: int) -> None:
        received.append(number)
        for each in _SIGNALS:  # a second one ends the process as it is
            loop.remove_signal_handler(each)
            signal.signal(each, signal.SIG_DFL)
        serving.cancel()

    for number in _SIGNALS:
        loop.add_signal_handler(number, end, number)
    try:
        await serving
    except asyncio.CancelledError:
        if not received:
            raise
    return 128 + received[0] if received else 0


async def _session(server: RidgelineServer, given: IO[bytes], taken: IO[str]) -> None:
    reader = asyncio.StreamReader(limit=MOST_BYTES)
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), given)
    replies = _Replies(taken)
    given_lines = _Lines(reader, replies)
    lines, answers = cast("anyio.AsyncFile[str]", given_lines), cast("anyio.AsyncFile[str]", replies)
    own = server._mcp_server  # noqa: SLF001  # FastMCP serves the process's own streams alone
    try:
        async with stdio_server(lines, answers) as (read, write):
            await own.run(read, write, own.create_initialization_options())
    except* BrokenPipeError:  # the client went away without a word
        pass
    finally:
        transport.close()
    if given_lines.has_too_long:
        raise InputError(f"mcp: the client sent a line of more than {MOST_BYTES >> 20} MiB")


class _Replies:
    """The client's end of standard output: each line is written whole, by whomever."""

    def __init__(self, taken: IO[str]) -> None:
        self._taken = anyio.wrap_file(taken)
        self._lock = asyncio.Lock()

    async def write(self, line: str) -> None:
        async with self._lock:
            await self._taken.write(line)
            await self._taken.flush()

    async def flush(self) -> None:
        """Do nothing: a line is flushed as it is written."""


class _Lines:
    """The client's messages; reading them can be cancelled, which a thread that reads standard input cannot.

    A line that is no message is answered here, and the next one is read.
    """

    def __init__(self, reader: asyncio.StreamReader, replies: _Replies) -> None:
        self._reader, self._replies = reader, replies
        self.has_too_long = False
        """Whether the last line was longer than MOST_BYTES; none is read after it."""

    def __aiter__(self) -> AsyncIterator[str]:
        return self._all()

    async def _all(self) -> AsyncIterator[str]:
        try:
            while line := await self._reader.readline():
                if not line.strip():
                    continue
                refusal = refusal_line(line)
                if refusal is None:
                    yield line.decode("utf-8")
                else:
                    await self._replies.write(refusal + "\n")
        except ConnectionError:
            return
        except ValueError:
            self.has_too_long = True
