"""`ridgeline mcp`: serve searches to a coding agent."""

from __future__ import annotations

import argparse
import importlib.util
import logging
import os
import shlex
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ridgeline.graph.cli.keyless import keyless_targets
from ridgeline.tools.errors import InputError
from ridgeline.tools.machine.os_errors import LOG_FORMAT
from ridgeline.tools.wording import worded_for_command_line

if TYPE_CHECKING:
    from ridgeline.graph.mcp.config import ServerConfig

REQUIREMENT = "mcp>=1.30,<2"
"""The extra `mcp` of pyproject.toml, without what this package brings along itself."""
TOKEN = "RIDGELINE_MCP_TOKEN"  # noqa: S105  # a variable's name

_AT_A_TERMINAL = (
    "serving on standard input and output, for a client that starts this command: docs/agents.md; Ctrl-C ends it"
)


def execute(args: argparse.Namespace) -> int:
    """Serve until the client or a signal ends it; 0 at the client's end, 128 + the signal's number else."""
    if not all(importlib.util.find_spec(name) for name in ("mcp", "uvicorn", "anyio")):
        python = shlex.quote(sys.executable)
        raise InputError(f"mcp: the package mcp is not installed; {python} -m pip install '{REQUIREMENT}'")
    token = os.environ.pop(TOKEN, "")  # no process that this one starts has it
    _refuse_misplaced(args)
    runs_dir = Path(os.path.abspath(args.runs_dir))
    if runs_dir.exists() and not runs_dir.is_dir():
        raise InputError(f"--runs-dir {args.runs_dir}: is a file; name a folder")
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format=LOG_FORMAT)

    from ridgeline.graph.mcp.config import ServerConfig

    config = ServerConfig(runs_dir=runs_dir, keyless=keyless_targets())
    with worded_for_command_line(is_so=False):  # who reads the tools' answers calls tools
        return _serve(args, config, token)


def _serve(args: argparse.Namespace, config: ServerConfig, token: str) -> int:
    if not args.http:
        return _serve_stdio(config)
    from ridgeline.graph.mcp.http import Address, serve_http

    given = {"host": args.host, "port": args.port, "names": args.allow_host}
    address = Address(
        token=_token(args.token_file, token), **{name: value for name, value in given.items() if value is not None}
    )
    return serve_http(config, address, tell=_tell)


def _serve_stdio(config: ServerConfig) -> int:
    if sys.stdin is None:
        raise InputError("mcp: standard input is closed; a client starts this command and writes to a pipe")
    mode = os.fstat(0).st_mode
    if not (os.isatty(0) or stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
        kind = "file" if stat.S_ISREG(mode) else "device"
        raise InputError(f"mcp: standard input is a {kind}; a client starts this command and writes to a pipe")
    if os.isatty(0):
        sys.stderr.write(f"ridgeline: {_AT_A_TERMINAL}\n")
    from ridgeline.graph.mcp.stdio import serve_stdio

    return serve_stdio(config)


def _refuse_misplaced(args: argparse.Namespace) -> None:
    """Refuse options of HTTP without it."""
    for name in ("host", "port", "token_file", "allow_host"):
        if getattr(args, name) is not None and not args.http:
            raise InputError(f"mcp: --{name.replace('_', '-')} needs --http")


def _token(file: str | None, stated: str) -> str:
    """Return the token that clients have to send; "" for none."""
    if file is None:
        return stated.strip()
    try:
        token = Path(file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        words = error.strerror if isinstance(error, OSError) else "is no text"
        raise InputError(f"--token-file {file}: {words}; name a file that holds the token") from None
    if not token:
        raise InputError(f"--token-file {file}: is empty; put the token into it")
    return token


def _tell(url: str) -> None:
    sys.stdout.write(f"{url}\n")
    sys.stdout.flush()
