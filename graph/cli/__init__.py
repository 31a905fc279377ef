"""The command line: parse the words, run the command, and turn an error into one line and an exit code.

Each command is a module of `graph/cli/commands` with `execute(args) -> int`. The module is imported only when its
command is chosen: langgraph alone takes about a second to import.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence

from ridgeline.graph.cli.arguments import make_parser
from ridgeline.tools.errors import InputError, RidgelineError
from ridgeline.tools.machine.os_errors import is_users_to_mend

EXIT_OK, EXIT_INTERNAL, EXIT_INPUT, EXIT_INTERRUPTED = 0, 1, 2, 130

_MODULES = {"import": "import_problems"}
"""Commands whose module has another name; `import` is a keyword of Python."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    An unexpected exception leaves as it is when no run.log holds its traceback: Python prints it and exits with 1.
    """
    args = make_parser().parse_args(argv)
    if not sys.platform.startswith("linux"):
        return _complain(f"Ridgeline runs on Linux only, this is {sys.platform}: use a Linux machine or container")
    try:
        module = _MODULES.get(args.command, args.command)
        command = importlib.import_module(f"ridgeline.graph.cli.commands.{module}")
        return int(command.execute(args))
    except InputError as error:
        return _complain(str(error))
    except RidgelineError as error:
        return _complain(f"internal error, please report: {error}", EXIT_INTERNAL)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader of the output went away (`ridgeline show … | head`): nothing is left to say.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_OK
    except OSError as error:
        if is_users_to_mend(error, names_paths=True):
            return _complain(f"{error.filename or 'file system'}: {error.strerror}")
        raise


def _complain(message: str, code: int = EXIT_INPUT) -> int:
    sys.stderr.write(f"ridgeline: {' '.join(message.split())}\n")
    return code
