"""Processes of ours that a signal from outside has ended, in words."""

from __future__ import annotations

import signal

import pytest

from ridgeline.tools.machine.kills import killed_words


def test_the_kernel_is_suspected_of_its_own_signal_alone() -> None:
    killed = killed_words(-signal.SIGKILL)
    assert killed == "was killed (signal 9): by the kernel, which was short of memory, or by somebody"
    assert killed_words(-signal.SIGTERM) == "was killed (signal 15): by somebody"


@pytest.mark.parametrize("returncode", [None, 0, 1, -signal.SIGSEGV])
def test_one_that_is_there_or_ended_by_itself_was_not_killed(returncode: int | None) -> None:
    assert killed_words(returncode) is None
