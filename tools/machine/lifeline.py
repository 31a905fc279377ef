"""Processes that never outlive the one which started them, nor do those that they start, and that nothing stops for good."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import Any, AnyStr

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_KEEPER = ("/bin/sh", "-c", "trap '' HUP INT TERM; read _; kill -KILL 0")


def end_with_parent(parent_pid: int | None) -> None:
    """Have the kernel kill this process when its parent ends, and end now if it has ended already.

    `parent_pid` is the parent's own id: in a container the parent may be process 1, so being handed to process 1 is no
    sign that it ended. None: the check is left out.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if parent_pid is not None and os.getppid() != parent_pid:
        sys.exit("the parent ended before this process began")


def continue_stopped(pid: int) -> None:
    """Let a child of this process go on if a signal has stopped it since the last call."""
    with contextlib.suppress(ChildProcessError, ProcessLookupError):
        if os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOHANG):
            os.kill(pid, signal.SIGCONT)


class GroupProcess(subprocess.Popen[AnyStr]):
    """A process in a group of its own: what it started and left there ends when it has been waited for.

    A forked child does not inherit `end_with_parent`. So a keeper in the group, a shell (2 ms), reads from this process and
    kills the group when the pipe closes: in `wait`, and when this process ends, whichever way. What begins another session
    or group, as a daemon does, is out of its reach.
    """

    def __init__(self, command: Sequence[str], **options: Any) -> None:
        """Start `command` with the options of `subprocess.Popen`."""
        super().__init__(command, process_group=0, **options)
        try:
            self._keeper = subprocess.Popen(
                _KEEPER,
                process_group=self.pid,
                env={},
                cwd="/",
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        except BaseException:
            self.kill()
            super().wait()
            raise

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the process, then end the rest of its group."""
        code = super().wait(timeout)
        self._keeper.send_signal(signal.SIGCONT)  # a process of the group may have stopped it
        self._keeper.communicate()
        return code
