"""The command line: parse the words, run the command, and turn an error into one line and an exit code.

Each command is a module of `graph/cli/commands` with `execute(args) -> int`. The module is imported only when its
command is chosen: langgraph alone takes about a second to import.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib
import io
import os
import select
import sys
from collections.abc import Sequence
from typing import TextIO

from ridgeline.graph.cli.arguments import make_parser
from ridgeline.tools.errors import EvaluatorKilled, InputError, JudgeKilled, MachineBusyError, RidgelineError, SearchCut
from ridgeline.tools.machine.os_errors import is_users_to_mend
from ridgeline.tools.records.printable import printable
from ridgeline.tools.wording import CALLER, PROGRAM, worded_for_command_line

EXIT_OK, EXIT_INTERNAL, EXIT_INPUT, EXIT_CUT, EXIT_PARKED, EXIT_INTERRUPTED, EXIT_UNREAD = 0, 1, 2, 69, 75, 130, 141
"""EXIT_CUT is EX_UNAVAILABLE of sysexits.h, for what a provider or a disk ended; EXIT_PARKED is EX_TEMPFAIL, for what goes on
later. EXIT_UNREAD is 128 + SIGPIPE: what a shell reports of a
tool whose reader went away (`ridgeline show … | head`)."""

_MODULES = {"import": "import_problems", **dict.fromkeys(("idea", "seed", "stop"), "steer")}
"""Commands whose module has another name; `import` is a keyword of Python."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    An unexpected exception leaves as it is when no run.log holds its traceback: Python prints it and exits with 1.
    """
    with worded_for_command_line(is_so=os.environ.get(CALLER) != PROGRAM):
        return _main(argv)


def _main(argv: Sequence[str] | None) -> int:
    if sys.stdout is None:  # the first file to be opened would take its number, and get what is printed
        return _complain("standard output is closed; send it to a file, or to /dev/null")
    if _is_for_reading_alone(sys.stdout):
        return _complain("standard output is open for reading alone; send it to a file, or to /dev/null")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a path may hold bytes that are no text
    try:
        return _written(_run(argv))
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        unread = [stream for stream in (sys.stdout, sys.stderr) if _is_unread(stream)]
        if not unread:
            raise
        _drop(*unread)
        return EXIT_UNREAD


def _run(argv: Sequence[str] | None) -> int:
    try:
        args = make_parser().parse_args(argv)
    except SystemExit as ended:  # after the help, the version, or words that are no command
        return int(ended.code or 0)
    if not sys.platform.startswith("linux"):
        return _complain(f"Ridgeline runs on Linux only, this is {sys.platform}: use a Linux machine or container")
    try:
        module = _MODULES.get(args.command, args.command)
        command = importlib.import_module(f"ridgeline.graph.cli.commands.{module}")
        return int(command.execute(args))
    except SearchCut as error:
        return _complain(str(error), EXIT_CUT)
    except InputError as error:
        return _complain(str(error))
    except (MachineBusyError, EvaluatorKilled, JudgeKilled) as error:
        return _complain(str(error), EXIT_INTERNAL)
    except RidgelineError as error:
        return _complain(f"internal error, please report: {error}", EXIT_INTERNAL)
    except OSError as error:
        if is_users_to_mend(error, names_paths=True):
            return _complain(f"{error.filename or 'standard output, or a file'}: {error.strerror}")
        raise


def _written(code: int) -> int:
    """Write out what is still buffered; at the interpreter's end a failure would be a traceback.

    Raises:
        BrokenPipeError: the reader went away.
    """
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        _drop(sys.stdout)
        return code or _complain(f"standard output: {error.strerror}; send it where there is room")
    return code


def _is_for_reading_alone(stream: TextIO) -> bool:
    """Say whether nothing can be written to a stream, as after `1< FILE`."""
    try:
        return fcntl.fcntl(stream.fileno(), fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY
    except (OSError, ValueError):  # it has no descriptor: a program put another one in its place
        return False


def _is_unread(stream: TextIO) -> bool:
    """Say whether a stream is a pipe or a socket whose reader went away."""
    poller = select.poll()
    poller.register(stream.fileno(), 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poller.poll(0))


def _drop(*streams: TextIO) -> None:
    """Send nowhere what is still buffered for these streams."""
    with open(os.devnull, "wb") as nowhere:
        for stream in streams:
            os.dup2(nowhere.fileno(), stream.fileno())


def _complain(message: str, code: int = EXIT_INPUT) -> int:
    with contextlib.suppress(AttributeError):  # standard error is closed: the exit code is all that is left
        sys.stderr.write(f"ridgeline: {printable(' '.join(message.split()))}\n")
    return code
