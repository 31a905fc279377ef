"""A process that never outlives the one which started it."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def end_with_parent(parent_pid: int | None) -> None:
    """Have the kernel kill this process when its parent ends, and end now if it has ended already.

    `parent_pid` is the parent's own id: in a container the parent may be process 1, so being handed to process 1 is no
    sign that it ended. None: the check is left out.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if parent_pid is not None and os.getppid() != parent_pid:
        sys.exit("the parent ended before this process began")
