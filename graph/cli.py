"""The command line: parse, dispatch, and turn what went wrong into one line and an exit code.

Each command is a module of `graph/commands` with `execute(args) -> int`; it is imported only when chosen, since
langgraph alone takes about a second to import.
"""

from __future__ import annotations

import errno
import importlib
import logging
import os
import sys
from collections.abc import Sequence

from ridgeline.graph.arguments import make_parser
from ridgeline.tools.errors import InputError, RidgelineError

logger = logging.getLogger(__name__)

EXIT_OK, EXIT_FAULT, EXIT_INPUT = 0, 1, 2

_USERS_TO_MEND = {errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EPERM, errno.EDQUOT, errno.ENOENT, errno.EISDIR}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    args = make_parser().parse_args(argv)
    if not sys.platform.startswith("linux"):
        return _complain(f"Ridgeline runs on Linux only, this is {sys.platform}: use a Linux machine or container")
    command = importlib.import_module(f"ridgeline.graph.commands.{args.command}")
    try:
        return int(command.execute(args))
    except InputError as error:
        return _complain(str(error))
    except RidgelineError as error:
        logger.exception("stopped by a fault")
        return _complain(f"internal fault: {error}", EXIT_FAULT)
    except BrokenPipeError:
        # The reader of our output went away (`ridgeline show … | head`): nothing is left to say.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_OK
    except OSError as error:
        if error.errno in _USERS_TO_MEND:
            return _complain(f"{error.filename or 'file system'}: {error.strerror}")
        raise


def _complain(message: str, code: int = EXIT_INPUT) -> int:
    sys.stderr.write(f"ridgeline: {' '.join(message.split())}\n")
    return code
